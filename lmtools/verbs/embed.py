"""lmtools embed: vectors of sentences, or of the words of a text."""

import sys
from pathlib import Path

from tqdm import tqdm

from lmtools.embed import WordVectors, writing
from lmtools.embed.encoders import Encoder, How, load_encoder
from lmtools.embed.pooling import POOLS
from lmtools.embed.sentences import encode
from lmtools.embed.stores import checked
from lmtools.errors import UserError
from lmtools.files import read_lines
from lmtools.formats import kaldi_text, vectors
from lmtools.score.cache import cache_directory
from lmtools.verbs.subword import positive

WORDS = "words"
MODELS = (
    "directory of a neural model, hf:DIR (a Hugging Face model), words:F (word vectors in a GloVe or word2vec text file, averaged), tfidf "
    "(tf-idf counted on the texts themselves) or tfidf:TEXT"
)


def arguments(parser):
    parser.epilog = (
        "F.npz of sentences: vectors (lines, values), or (lines, layers, values) for several layers, float32; texts; layers; signature. "
        "Each line of the text has one, an empty one zeros. --pool words, which two-way models have: for each word between the spaces of a "
        "line, normalised as in training, one vector a layer, the state of the left-to-right LSTM, then that of the right-to-left one. "
        "F.npz: vectors (words of all lines, layers, values), offsets (where each line's words begin, and the end), words, layers. F.h5: a "
        "dataset a line, named 0, 1 ..., of (layers, words, values), and sentence_to_index, as ELMo's own tools write it."
    )
    parser.add_argument("--lm", required=True, metavar="LM", help=MODELS)
    parser.add_argument("--text", required=True, metavar="F", help="one sentence a line; - is standard input")
    parser.add_argument("--kaldi", action="store_true", help="the text is in Kaldi's format: drop the utterance id")
    parser.add_argument("--out", required=True, metavar="F.npz|F.h5", help="the vectors, float32; .h5 for vectors of words only")
    add_options(parser, [*POOLS, WORDS], "words for a two-way model, else mean")


def add_options(parser, pools, default: str):
    """The options that say how vectors are made, shared with `lmtools sts`."""
    about = "0 (the embedding layer), 1 ..., numbers with commas between them, last or all (default: last; of words all)"
    parser.add_argument("--layer", "--layers", type=layers, dest="layers", metavar="L", help=about)
    about = f"mean or maximum over tokens, the end of sentence (eos) or its beginning (cls) (default: {default})"
    parser.add_argument("--pool", choices=pools, help=about)
    parser.add_argument("--boundaries", action="store_true", help="mean and max take the boundary tokens in, as BERT's [CLS] and [SEP]")
    about = "of masked models: each token's state from a copy in which it alone is masked, one pass a token (default: the intact input)"
    parser.add_argument("--masked", action="store_true", help=about)
    parser.add_argument("--cache", default="default", metavar="DIR", help="keeps vectors between runs; or none (default: ~/.cache/lmtools)")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1 ... (default: %(default)s)")
    parser.add_argument("--precision", default="float32", help="of matrix products: float32, bfloat16, auto (default: %(default)s)")
    parser.add_argument("--batch-rows", type=positive, default=4096, metavar="N", help="tokens a batch (default: %(default)s)")


def layers(text: str) -> str | tuple[int, ...]:
    """The numbers in `0,1,2`; `last` and `all` as they are."""
    return text if text in ("last", "all") else tuple(map(int, text.split(",")))


def loaded(args) -> Encoder:
    """The encoder that the options say."""
    how = How(args.layers or "last", args.pool or "mean", args.boundaries, args.masked)
    return load_encoder(args.lm, *how, args.device, args.precision)


def encoded(args, encoder: Encoder, texts) -> vectors.SentenceVectors:
    """The vectors of texts; says on standard error what static vectors lack."""
    made = encode(texts, encoder, cache_directory(args.cache), args.batch_rows)
    if missing := getattr(encoder, "missing", None):
        share = f"{missing.total():,} of {encoder.words:,} words of distinct texts have no vector"
        print(f"{args.lm}: {share}, most often {', '.join(word for word, _ in missing.most_common(5))}", file=sys.stderr)
    return vectors.SentenceVectors(texts, made, encoder.layers, encoder.signature)


def run(args):
    """Embed line by line; say on standard error how many there were."""
    texts = (row[-1] for row in (kaldi_text.rows if args.kaldi else read_lines)(args.text))
    if args.pool == WORDS or (args.pool is None and two_way(args.lm)):
        words(args, texts)
    else:
        sentences(args, list(texts))


def sentences(args, texts: list[str]):
    """Vectors of whole lines."""
    encoder = loaded(args)
    if Path(args.out).suffix != ".npz":
        raise UserError(f"{args.out}: sentence vectors go to a name that ends in .npz; give one")
    if not texts:
        raise UserError(f"{args.text}:1: no lines; give text")
    made = encoded(args, encoder, texts)
    vectors.write(made, args.out)
    which = ", ".join(map(str, made.layers))
    print(f"{args.out}: {len(texts):,} sentences, {made.vectors.shape[2]:,} values in each of the layers {which}", file=sys.stderr)


def two_way(lm: str) -> bool:
    """Whether the directory is of a two-way model."""
    from lmtools.checkpoint import CONFIG, WEIGHTS, read_settings

    return all((Path(lm) / name).exists() for name in (CONFIG, WEIGHTS)) and read_settings(lm)[0].objective == "two-way"


def words(args, texts):
    """Vectors of words, lazily."""
    checked(args.out)
    if args.boundaries or args.masked:
        raise UserError("--pool words: vectors of words know no --boundaries and no --masked; leave them out")
    chosen = {"all": None, "last": None}.get(args.layers, args.layers)
    embed = WordVectors(args.lm, chosen, args.device, args.precision, args.batch_rows)
    if args.layers == "last":
        embed.layers = embed.layers[-1:]
    lines = count = 0
    with writing(args.out, embed.layers, embed.width) as add:
        for line in tqdm(embed(texts), desc=f"embed {args.lm}", unit="line", disable=None, dynamic_ncols=True):
            add(line)
            lines, count = lines + 1, count + len(line.words)
        if not lines:
            raise UserError(f"{args.text}:1: no lines; give text")
    which = ", ".join(map(str, embed.layers))
    print(f"{args.out}: {count:,} words of {lines:,} lines, {embed.width:,} values in each of the layers {which}", file=sys.stderr)
