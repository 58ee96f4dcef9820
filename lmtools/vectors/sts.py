"""lmtools sts: how well cosines of sentence vectors agree with people's judgements of
similarity.
"""

from pathlib import Path

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import sha256
from lmtools.base.log import say, say_lines
from lmtools.base.seal import write_json
from lmtools.formats import registry
from lmtools.rescoring.experiment import of_system
from lmtools.vectors import pairs
from lmtools.vectors.embed import encode_texts, encoder_of
from lmtools.vectors.files import SentenceVectors, read_sentences
from lmtools.vectors.similarity import compare_rows, correlate_layers, describe_row
from lmtools.verbs.options import COMPUTING, ENCODER
from lmtools.verbs.parser import add_vectors

EXAMPLES = (
    "lmtools sts --pairs pairs.tsv --lm tfidf --out tfidf.json",
    "lmtools sts --pairs pairs.tsv --lm lstm --layer all --against tfidf.json",
)


def arguments(parser):
    parser.epilog = (
        f"Formats of pairs:\n{registry.describe_formats(pairs.PAIRS)}\n\nCorrelations are printed"
        " times 100, with 95% intervals by Fisher's z; F.json has them as they are, and every"
        " cosine. A sentence without any known word has the cosine 0 with all others."
    )
    group = parser.groups["input"]
    text = "sentence pairs with the similarity that people gave them"
    group.add_argument("--pairs", required=True, metavar="F", help=text)
    parser.add("--format")
    text = (
        "columns of the two sentences and of their similarity, if there is one: numbers from 1, or"
        " names in the first line (default: recognised)"
    )
    parser.add_argument("--columns", nargs="+", metavar="N", help=text)
    text = "figures of another system, to test whether the difference is significant"
    parser.add("--against", metavar="F.json", help=text)
    source = parser.groups["language model"].add_mutually_exclusive_group(required=True)
    parser.add("--lm", among=source, required=False, **ENCODER)
    text = (
        "vectors of the sentences, which lmtools embed wrote; several files are systems, and"
        " {system} in --out stands for a file's name"
    )
    source.add_argument("--vectors", nargs="+", metavar="F.npz", help=text)
    add_vectors(parser)
    parser.add(
        "--out", required=False, metavar="F.json", help="write correlations and cosines as JSON"
    )
    parser.add(*COMPUTING)


def run(args):
    """Correlate, print a line a layer, and write, system by system."""
    given = pairs.read(args.pairs, args.format, args.columns or ())
    if not args.vectors:
        correlate(args, given, *embed_pairs(args, given), args.out)
        return
    several = len(args.vectors) > 1
    names = [Path(path).stem for path in args.vectors]
    outs = [of_system(args.out, name) if several and args.out else args.out for name in names]
    for path, name, out in zip(args.vectors, names, outs, strict=True):
        if several:
            print(name)
        correlate(args, given, *look_up_pairs(args, given, path), out)


def correlate(args, given, embedded, places, out):
    """Correlate, print a line a layer, and write, for one system."""
    gold = None if given[0].similarity is None else np.array([pair.similarity for pair in given])
    rows, messages = correlate_layers(embedded, places, gold, args.pairs)
    say_lines(messages)
    tree = {
        "pairs": args.pairs, "sha256": sha256(args.pairs), "count": len(given),
        "signature": dict(embedded.signature),
        "similarity": None if gold is None else gold.tolist(), "rows": rows,
    }  # fmt: skip
    lines = [describe_row(row, len(given)) for row in rows]
    if args.against:
        p, beside = compare_rows(tree, args.against)
        shown = "<0.0001" if p < 5e-5 else f"{p:.4f}"
        lines.append(
            f"last layer against that of {args.against}: p {shown} (Williams' test,"
            f" two-sided){beside}"
        )
    if out:
        write_json(tree, out, indent=None)
    print("\n".join(lines))
    if empty := int((~embedded.vectors.any(axis=(1, 2))[places]).any(axis=0).sum()):
        cause = "pairs have a sentence without any known word, and the cosine 0"
        say(f"{args.pairs}: {empty} {cause}")


def embed_pairs(args, given) -> tuple[SentenceVectors, np.ndarray]:
    """Return the vectors of distinct sentences, and where each pair's two are, (2, N)."""
    texts = list(dict.fromkeys(text for pair in given for text in (pair.left, pair.right)))
    place = {text: i for i, text in enumerate(texts)}
    return encode_texts(args, encoder_of(args), texts), index_pairs(given, place)


def look_up_pairs(args, given, path) -> tuple[SentenceVectors, np.ndarray]:
    """Return the vectors of a file, and where each pair's two are, (2, N)."""
    embedded = read_sentences(path)
    place = {text: i for i, text in enumerate(embedded.texts)}
    for pair in given:
        for text in (pair.left, pair.right):
            if text not in place:
                raise UserError(
                    f"{path}: no vector of {text[:60]!r}, which {args.pairs} has; embed the"
                    " sentences of these pairs"
                )
    return embedded, index_pairs(given, place)


def index_pairs(given, place) -> np.ndarray:
    return np.array([[place[pair.left] for pair in given], [place[pair.right] for pair in given]])
