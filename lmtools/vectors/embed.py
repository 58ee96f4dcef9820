"""lmtools embed: vectors of sentences, or of the words of a text."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.log import say, track
from lmtools.base.options import fill
from lmtools.base.seal import read_json
from lmtools.base.specs import HF, find_model
from lmtools.formats import kaldi_text
from lmtools.score.cache import cache_directory
from lmtools.text.blocks import read_text
from lmtools.vectors.files import SentenceVectors, write_sentences, write_words
from lmtools.vectors.static import LAST_MEAN, Encoder, PoolingOptions
from lmtools.verbs.experiment import split_vectors
from lmtools.verbs.options import COMPUTING, EMBED_POOL, ENCODER, WORDS
from lmtools.verbs.parser import add_vectors

EXAMPLES = (
    "lmtools embed --lm tfidf --text text.txt --out vectors.npz",
    "lmtools embed --lm lstm --layer all --pool mean --text dev.txt --out vectors.npz",
)


# sentence-transformers: the file that names a directory's modules, and how its pooling is ours
MODULES = "modules.json"
MODES = {
    "mean": LAST_MEAN._replace(boundaries=True),
    "max": LAST_MEAN._replace(pool="max", boundaries=True),
    "cls": LAST_MEAN._replace(pool="cls"),
    "lasttoken": LAST_MEAN._replace(pool="eos"),
}
POOL_YOURSELF = "say how to pool (--pool mean --boundaries), or use sentence-transformers"
# what else such a directory says of the text: file, key, what it does
UNFOLLOWED = (
    ("config_sentence_transformers.json", "default_prompt_name", "has a prompt before each text"),
    ("sentence_bert_config.json", "do_lower_case", "lower-cases its text"),
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
    from lmtools.models.checkpoint import CONFIG, WEIGHTS, read_settings

    return (
        all((Path(lm) / name).exists() for name in (CONFIG, WEIGHTS))
        and read_settings(lm)[0].objective == "two-way"
    )


def embed_words(args, texts):
    from lmtools.vectors.words import load_word_vectors

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
    from lmtools.vectors.encoders import load_encoder

    chosen = bool(args.pool or args.boundaries or args.masked)
    lm, pooling = find_pooling(args.lm, follow=not chosen)
    if chosen:
        pooling = PoolingOptions("last", args.pool or "mean", args.boundaries, args.masked)
    return load_encoder(lm, pooling._replace(layers=args.layers or "last"), fill(Computing, args))


def find_pooling(lm: str, follow: bool = True) -> tuple[str, PoolingOptions]:
    """Return the model in a directory of sentence-transformers and, to `follow`, its own pooling;
    of any other, itself and the mean of the last layer. UserError for modules that are not
    followed.
    """
    path = Path(find_model(lm.removeprefix(HF)))
    names = path / MODULES
    if lm.startswith(("tfidf", "words:")) or not names.is_file():
        return lm, LAST_MEAN
    place, pooling = path, None
    for kind, name in list_modules(names):
        if kind == "Transformer":
            place = path / name
        elif not follow:
            break
        elif kind == "Pooling":
            pooling = read_pooling(path / name / "config.json")
        elif kind == "Normalize" and pooling:
            pooling = pooling._replace(unit=True)
        else:
            raise UserError(f"{names}: the module {kind} is not followed; {POOL_YOURSELF}")
    if follow and pooling is None:
        raise UserError(f"{names}: names no Pooling; {POOL_YOURSELF}")
    for file, key, what in UNFOLLOWED if follow else ():
        if (path / file).is_file() and read_json(path / file, POOL_YOURSELF).get(key):
            raise UserError(f"{path / file}: {key} {what}; {POOL_YOURSELF}")
    return f"{HF}{place}", pooling or LAST_MEAN


def list_modules(path: Path) -> list[tuple[str, str]]:
    """Return kind and folder of the modules that a file names; UserError for what it is not."""
    try:
        rows = json.loads(path.read_bytes())
        modules = [(row["type"].rpartition(".")[2], row["path"]) for row in rows]
        if all(name in ("", Path(name).name) for _, name in modules):
            return modules
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise UserError(f"{path}: lists no modules with type and path; write it again")


def read_pooling(path: Path) -> PoolingOptions:
    """Return the pooling of a module's configuration; UserError for one that is not ours."""
    tree, begin = read_json(path, POOL_YOURSELF), "pooling_mode_"
    modes = [
        re.sub("_tokens?$", "", key[len(begin) :])
        for key, on in tree.items()
        if on and key.startswith(begin)
    ]
    modes = modes or [tree.get("pooling_mode", "mean")]
    if len(modes) > 1 or str(modes[0]) not in MODES:
        raise UserError(
            f"{path}: pooling {' and '.join(map(str, modes))} is not followed; {POOL_YOURSELF}"
        )
    return MODES[modes[0]]


def encode_texts(args, encoder: Encoder, texts: Sequence[str]) -> SentenceVectors:
    """Return the vectors of texts; says on standard error which words static vectors lack."""
    from lmtools.vectors.encoders import encode

    values = encode(texts, encoder, cache_directory(args.cache))
    if missing := encoder.describe_missing():
        say(f"{args.lm}: {missing}")
    return SentenceVectors(texts, values, encoder.layers, encoder.signature)
