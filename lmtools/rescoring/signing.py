"""The line of a rescoring, which `lmtools verify` checks: of which lists, scores and weights a text
was chosen, and what was chosen, each by a hash.

It shows that files belong together, not who wrote it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence

import msgspec

from lmtools.formats.scores import hash_lists
from lmtools.rescoring.features import ScoreColumns
from lmtools.rescoring.lists import ROUNDING
from lmtools.rescoring.weights import Weights
from lmtools.types import NBest
from lmtools.version import __version__

BEGIN = "rescoring|"
DIGITS = 16  # of a hash


def sign(
    nbests: Sequence[NBest], columns: ScoreColumns, weights: Weights, texts: Mapping[str, str]
) -> str:
    """Return the line of a rescoring of lists with score `columns` by weights to texts."""
    first = [[nbest.utt, [sorted(hyp.scores.items()) for hyp in nbest.hyps]] for nbest in nbests]
    lms = {
        name: {key: value for key, value in signature.items() if key not in ROUNDING}
        for name, signature in columns.signatures.items()
        if name in weights.features
    }
    parts = {
        "lists": hash_lists(nbests)[:DIGITS],
        "first": digest(sorted(first, key=lambda row: row[0])),
        "lms": digest(lms),
        "weights": digest(
            [
                dict(weights.features),
                weights.folds and msgspec.to_builtins(weights.folds),
                *([msgspec.to_builtins(weights.reranker)] if weights.reranker else []),
            ]
        ),
        "text": digest(sorted([utt, " ".join(text.split())] for utt, text in texts.items())),
        "metric": weights.metric,
        "version": f"lmtools-{__version__}",
    }
    return BEGIN + "|".join(f"{name}:{value}" for name, value in parts.items())


def digest(tree) -> str:
    """Return the beginning of the hexadecimal SHA-256 of plain values."""
    content = json.dumps(tree, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
