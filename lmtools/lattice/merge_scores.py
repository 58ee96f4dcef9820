"""Several scores in one, for formats that hold one or two a lattice arc."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lmtools.base.errors import UserError
from lmtools.lattice.weights import total
from lmtools.types import Lattice


def merge_scores(
    lattice: Lattice, weights: Mapping[str, float], into: str = "lm", keep: Sequence[str] = ("am",)
) -> Lattice:
    """Return the lattice with scores `keep` and `into`, whose plain sum ranks paths as the weights
    say.

    The sum is the weighted total (with `words`, where it has a weight) over the weight of the first
    of `keep`, which must be above 0; if nothing is kept, the total itself. Arcs that a kept score
    makes impossible have 0. UserError for other weights and for names that the lattice does not
    have.
    """
    unit = weights.get(keep[0], 0.0) if keep else 1.0
    if unit <= 0 or into in keep:
        raise UserError(
            f"{lattice.utt}: scores can be folded into {into!r} only where {keep[0]!r} stays apart"
            " with a weight above 0; change the weights, or write slf"
        )
    if missing := [name for name in keep if name not in lattice.scores]:
        raise UserError(
            f"{lattice.utt}: no score {missing[0]!r} in the lattice; keep some of:"
            f" {', '.join(lattice.scores)}"
        )
    sides = zip((lattice.scores, lattice.final_scores), total(lattice, weights), strict=True)
    arcs, finals = (merge_columns(columns, sums / unit, into, keep) for columns, sums in sides)
    return replace(lattice, scores=arcs, final_scores=finals)


def merge_columns(
    columns: Mapping[str, np.ndarray], sums: np.ndarray, into: str, keep: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the kept columns, and what they lack of `sums` (N,)."""
    kept = {name: columns[name] for name in keep}
    there = np.sum([np.zeros(len(sums)), *kept.values()], axis=0)
    possible = there > -np.inf
    return {**kept, into: np.where(possible, sums - np.where(possible, there, 0.0), 0.0)}
