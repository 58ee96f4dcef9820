"""One line that signs a rescoring: of which lists, scores and weights a text was chosen, and what
was chosen, each by a hash, so that whoever has the files can check that a figure is of them.

A line shows that files belong together, not who wrote it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from lmtools.base.errors import UserError
from lmtools.formats.scores import hash_lists
from lmtools.rescoring.features import ScoreColumns
from lmtools.rescoring.lists import ROUNDING
from lmtools.rescoring.weights import Weights
from lmtools.types import NBest
from lmtools.version import __version__

BEGIN = "rescoring"
DIGITS = 16  # of a hash
PARTS = ("lists", "first", "lms", "weights", "text")  # what is hashed, in the order of the line
SAID = {
    "lists": "utterances, hypotheses and their order",
    "first": "first-pass scores",
    "lms": "language models, their vocabularies, normalisers and options",
    "weights": "weights of features",
    "text": "chosen hypotheses",
    "metric": "what the weights were tuned for, and the normalisation of the count",
    "version": "the version of lmtools",
}


def sign(
    nbests: Sequence[NBest], columns: ScoreColumns, weights: Weights, texts: Mapping[str, str]
) -> str:
    """Return the line of a rescoring: of lists with score `columns` by weights to the texts of
    utterances.
    """
    first = [[nbest.utt, [sorted(hyp.scores.items()) for hyp in nbest.hyps]] for nbest in nbests]
    lms = {
        name: {key: value for key, value in signature.items() if key not in ROUNDING}
        for name, signature in columns.signatures.items()
        if name in weights.features
    }
    hashes = {
        "lists": hash_lists(nbests)[:DIGITS],
        "first": digest(sorted(first, key=lambda row: row[0])),
        "lms": digest(lms),
        "weights": digest([dict(weights.features), weights.folds and asdict(weights.folds)]),
        "text": digest(sorted([utt, " ".join(text.split())] for utt, text in texts.items())),
    }
    parts = [f"{name}:{hashes[name]}" for name in PARTS]
    return "|".join([BEGIN, *parts, f"metric:{weights.metric}", f"version:lmtools-{__version__}"])


def digest(tree) -> str:
    """Return the beginning of the hexadecimal SHA-256 of plain values."""
    content = json.dumps(tree, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def parse_line(line: str) -> dict[str, str]:
    """Return the parts of a line by name; UserError for what is none."""
    begin, *rest = line.strip().split("|")
    # the metric may have colons of its own
    parts = dict(part.partition(":")[::2] for part in rest)
    if begin != BEGIN or not {*PARTS, "metric", "version"} <= parts.keys():
        raise UserError(
            f"{line.strip()[:60]!r}: no line of a rescoring; give what `lmtools rescore --verbose`"
            f" printed, {BEGIN}|lists:...|version:..."
        )
    return parts


def compare_lines(signed: str, found: str) -> list[tuple[str, bool]]:
    """Return of each part of a line whether another line has the same, in order."""
    left, right = parse_line(signed), parse_line(found)
    return [(name, left[name] == right[name]) for name in SAID]
