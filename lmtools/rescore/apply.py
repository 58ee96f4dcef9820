"""Rescoring: lists in the order of tuned totals."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lmtools.errors import UserError
from lmtools.rescore.features import Features, combine
from lmtools.rescore.weights import Weights
from lmtools.types import TOTAL, Hypothesis, NBest


def rescore(nbests: Sequence[NBest], features: Features, weights: Weights, source) -> list[NBest]:
    """The lists, best total first and equals in their old order; scores are all features and `total`.

    UserError about `source` unless the features are exactly those of the weights.
    """
    check(features, weights, source)
    totals = combine([weights.features[name] for name in features.names], features.values)
    return [reordered(nbest, features, row, totals[row]) for row, nbest in enumerate(nbests)]


def check(features: Features, weights: Weights, source) -> None:
    """UserError that names features without weight and weights without feature."""
    missing = [name for name in weights.features if name not in features.names]
    extra = [name for name in features.names if name not in weights.features]
    tuned = f"the weights were tuned on {weights.dev.path} with {', '.join(weights.features)}"
    if missing:
        raise UserError(f"{source}: no feature {', '.join(missing)}: {tuned}; give --scores NAME=FILE for each that the lists lack")
    if extra:
        remedy = "leave it out, or tune with it (there --fix NAME=0 ignores it)"
        raise UserError(f"{source}: no weight for {', '.join(extra)}: {tuned}; {remedy}")


def reordered(nbest: NBest, features: Features, row: int, totals: np.ndarray) -> NBest:
    """One list sorted by total."""
    order = np.argsort(-totals[: len(nbest.hyps)], kind="stable")
    return replace(nbest, hyps=tuple(rescored(nbest.hyps[place], features, row, place, totals) for place in order))


def rescored(hyp: Hypothesis, features: Features, row: int, place: int, totals: np.ndarray) -> Hypothesis:
    """One hypothesis with all its features and their weighted sum."""
    scores = dict(zip(features.names, map(float, features.values[:, row, place]), strict=True))
    return replace(hyp, scores=scores | {TOTAL: float(totals[place])})
