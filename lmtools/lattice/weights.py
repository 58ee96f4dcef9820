"""The score that paths are compared by: the weighted sum of an arc's named scores."""

from collections.abc import Mapping

import numpy as np

from lmtools.base.errors import UserError
from lmtools.types import Lattice

# the built-in feature: 1 for each word, so that its weight is the word insertion bonus
WORDS = "words"


def total(lattice: Lattice, weights: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted scores of the arcs (A,) and of ending in each final state (F,).

    A score with weight 0 is not looked at; one of -inf with any other weight, also a negative one,
    makes the sum -inf. A score column called `words` takes the place of the built-in feature.
    UserError for an unknown name and for NaN and +inf.
    """
    arcs, finals = np.zeros(len(lattice.words)), np.zeros(len(lattice.finals))
    for name, weight in weights.items():
        for sums, column in zip((arcs, finals), columns(lattice, name), strict=True):
            if weight:
                sums += np.where(column == -np.inf, -np.inf, weight * column)
    for sums, what in ((arcs, "an arc"), (finals, "a final state")):
        if not (sums < np.inf).all():
            raise UserError(
                f"{lattice.utt}: a score of {what} is NaN or too high; drop it with lmtools lattice"
                " info --repair"
            )
    return arcs, finals


def columns(lattice: Lattice, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a feature on arcs (A,) and finals (F,); UserError if none has the name.

    A lattice without arcs and scores (of an empty line, say) has 0 of every name.
    """
    if name in lattice.scores:
        return lattice.scores[name], lattice.final_scores[name]
    if name == WORDS:
        return np.array([word is not None for word in lattice.words], dtype=np.float64), np.zeros(
            len(lattice.finals)
        )
    if not lattice.words and not lattice.scores:
        return np.zeros(0), np.zeros(len(lattice.finals))
    names = ", ".join([*lattice.scores, WORDS])
    raise UserError(
        f"{lattice.utt}: no score {name!r} in the lattice; give weights to some of: {names}"
    )
