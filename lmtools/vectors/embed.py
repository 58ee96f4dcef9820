"""lmtools embed: vectors of sentences, or of the words of a text."""

from collections.abc import Sequence
from pathlib import Path

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.log import say, track
from lmtools.base.options import fill
from lmtools.base.specs import find_model
from lmtools.formats import kaldi_text
from lmtools.models.checkpoint import CONFIG, WEIGHTS, read_settings
from lmtools.score.cache import cache_directory
from lmtools.text.blocks import read_text
from lmtools.vectors.encoders import PoolingOptions, encode, load_encoder
from lmtools.vectors.files import SentenceVectors, write_sentences, write_words
from lmtools.vectors.static import Encoder
from lmtools.vectors.words import load_word_vectors
from lmtools.verbs.experiment import split_vectors
from lmtools.verbs.options import COMPUTING, EMBED_POOL, ENCODER, WORDS
from lmtools.verbs.parser import add_vectors

EXAMPLES = (
    "lmtools embed --lm tfidf --text text.txt --out vectors.npz",
    "lmtools embed --lm lstm --layer all --pool mean --text dev.txt --out vectors.npz",
)


def arguments(parser):
    parser.epilog = (
        "F.npz of sentences: vectors (lines, values), or (lines, layers, values) for several"
        " layers, float32; texts; layers; signature. Each line of the text has one, an empty one"
        " zeros. --pool words: for each word between the spaces of a line, normalised as in"
        " training, one vector a layer: of a two-way model the state of the left-to-right LSTM,"
        " then that of the right-to-left one, of other models the mean of the states at its"
        " pieces. F.npz: vectors (words of all lines, layers, values),"
        " offsets (where each line's words begin, and the end), words, layers."
    )
    parser.add("--text", required=True)
    parser.add("--kaldi", "--experiment")
    parser.add("--lm", **ENCODER)
    add_vectors(parser, **EMBED_POOL)
    parser.add("--out", metavar="F.npz", help="vectors to write, float32")
    parser.add(*COMPUTING)


def run(args):
    """Embed line by line, or with every entry of an experiment; say how many."""
    for each in split_vectors(args) if args.experiment else [args]:
        if Path(each.out).suffix != ".npz":
            raise UserError(f"{each.out}: vectors go to a name that ends in .npz; give one")
        texts = (row[-1] for row in (kaldi_text.rows if each.kaldi else read_text)(each.text))
        if each.pool == WORDS or (each.pool is None and is_two_way(find_model(each.lm))):
            embed_words(each, texts)
        else:
            embed_lines(each, list(texts))


def embed_lines(args, texts: list[str]) -> None:
    encoder = encoder_of(args)
    if not texts:
        raise UserError(f"{args.text}:1: no lines; give text")
    sentences = encode_texts(args, encoder, texts)
    write_sentences(sentences, args.out)
    report_vectors(args, f"{len(texts):,} sentences", sentences.layers, sentences.vectors.shape[2])


def report_vectors(args, count: str, layers, width: int) -> None:
    which = ", ".join(map(str, layers))
    say(f"{args.out}: {count}, {width:,} values in each of the layers {which}")


def is_two_way(lm: str) -> bool:
    return (
        all((Path(lm) / name).exists() for name in (CONFIG, WEIGHTS))
        and read_settings(lm)[0].objective == "two-way"
    )


def embed_words(args, texts):
    if args.engine == "prepared":
        raise UserError("--pool words: vectors of words are made in torch; leave --engine out")
    if args.boundaries or args.masked:
        raise UserError(
            "--pool words: vectors of words know no --boundaries and no --masked; leave them out"
        )
    chosen = {"all": None, "last": None}.get(args.layers, args.layers)
    embed = load_word_vectors(args.lm, chosen, fill(Computing, args))
    if args.layers == "last":
        embed.layers = embed.layers[-1:]
    lines = list(track(embed(texts), f"embed {args.lm}", None, "line"))
    if not lines:
        raise UserError(f"{args.text}:1: no lines; give text")
    count = write_words(args.out, embed.layers, embed.width, lines)
    report_vectors(args, f"{count:,} words of {len(lines):,} lines", embed.layers, embed.width)


def encoder_of(args) -> Encoder:
    """Return the encoder that the options of `lmtools embed` and `lmtools sts` say."""
    pooling = PoolingOptions(
        args.layers or "last", args.pool or "mean", args.boundaries, args.masked
    )
    return load_encoder(args.lm, pooling, fill(Computing, args))


def encode_texts(args, encoder: Encoder, texts: Sequence[str]) -> SentenceVectors:
    """Return the vectors of texts; says on standard error which words static vectors lack."""
    values = encode(texts, encoder, cache_directory(args.cache))
    if missing := encoder.describe_missing():
        say(f"{args.lm}: {missing}")
    return SentenceVectors(texts, values, encoder.layers, encoder.signature)
