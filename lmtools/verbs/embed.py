"""lmtools embed: vectors of sentences, or of the words of a text."""

from pathlib import Path

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.installed import find_model
from lmtools.base.log import say, track
from lmtools.base.options import fill
from lmtools.formats import kaldi_text, vectors
from lmtools.text.blocks import read_text
from lmtools.vectors import load_word_vectors, open_vectors
from lmtools.vectors.vector_files import check_suffix
from lmtools.verbs.encoding import encode_texts, encoder_of
from lmtools.verbs.experiment import split_vectors
from lmtools.verbs.options import COMPUTING, EMBED_POOL, ENCODER, WORDS
from lmtools.verbs.parser import add_vectors


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = (
        "F.npz of sentences: vectors (lines, values), or (lines, layers, values) for several"
        " layers, float32; texts; layers; signature. Each line of the text has one, an empty one"
        " zeros. --pool words: for each word between the spaces of a line, normalised as in"
        " training, one vector a layer: of a two-way model the state of the left-to-right LSTM,"
        " then that of the right-to-left one, of other models the mean of the states at its"
        " pieces. F.npz: vectors (words of all lines, layers, values),"
        " offsets (where each line's words begin, and the end), words, layers. F.h5: a dataset a"
        " line, named 0, 1 ..., of (layers, words, values), and sentence_to_index, as ELMo's own"
        " tools write it."
    )
    parser.add("--text", required=True)
    parser.add("--kaldi", "--experiment")
    parser.add("--lm", **ENCODER)
    add_vectors(parser, **EMBED_POOL)
    text = "the vectors, float32; .h5 for vectors of words only"
    parser.add("--out", metavar="F.npz|F.h5", help=text)
    parser.add(*COMPUTING)


def run(args):
    """Embed line by line, or with every entry of an experiment; say on standard error how many
    there were.
    """
    for each in split_vectors(args) if args.experiment else [args]:
        embed(each)


def embed(args):
    """Embed with one model in one way."""
    texts = (row[-1] for row in (kaldi_text.rows if args.kaldi else read_text)(args.text))
    if args.pool == WORDS or (args.pool is None and is_two_way(find_model(args.lm))):
        embed_words(args, texts)
    else:
        embed_lines(args, list(texts))


def embed_lines(args, texts: list[str]) -> None:
    """Write vectors of whole lines."""
    encoder = encoder_of(args)
    if Path(args.out).suffix != ".npz":
        raise UserError(f"{args.out}: sentence vectors go to a name that ends in .npz; give one")
    if not texts:
        raise UserError(f"{args.text}:1: no lines; give text")
    sentences = encode_texts(args, encoder, texts)
    vectors.write(sentences, args.out)
    report_vectors(args, f"{len(texts):,} sentences", sentences.layers, sentences.vectors.shape[2])


def report_vectors(args, count: str, layers, width: int) -> None:
    """Print on standard error what was written."""
    which = ", ".join(map(str, layers))
    say(f"{args.out}: {count}, {width:,} values in each of the layers {which}")


def is_two_way(lm: str) -> bool:
    """Return whether the directory is of a two-way model."""
    from lmtools.models.checkpoint import CONFIG, WEIGHTS, read_settings

    return (
        all((Path(lm) / name).exists() for name in (CONFIG, WEIGHTS))
        and read_settings(lm)[0].objective == "two-way"
    )


def embed_words(args, texts):
    """Write vectors of words, line by line."""
    check_suffix(args.out)
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
    lines = count = 0
    with open_vectors(args.out, embed.layers, embed.width) as add:
        for line in track(embed(texts), f"embed {args.lm}", None, "line"):
            add(line)
            lines, count = lines + 1, count + len(line.words)
        if not lines:
            raise UserError(f"{args.text}:1: no lines; give text")
    report_vectors(args, f"{count:,} words of {lines:,} lines", embed.layers, embed.width)
