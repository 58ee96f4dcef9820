"""Costs in the place of scores: features that grow from better to worse hypotheses."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lmtools.evaluate import METRICS, evaluate, fill_empty, reference
from lmtools.rescoring.weights import Weights
from lmtools.types import NBest

RISING = 0.6  # share of lists whose last hypothesis has more than the first


def find_costs(
    nbests: Sequence[NBest], columns: Mapping[str, Sequence[np.ndarray]], weights: Weights
) -> Iterator[tuple[str, float]]:
    """Yield the features of `nbests` and `columns` that look like costs and have a weight of at
    least 0 in `weights`, each with the metric of the hypotheses that have the least of it.

    They grow from the first to the last hypothesis of most lists, and that metric is better than
    what the weights reach.
    """
    filled = [fill_empty(nbest) for nbest in nbests]
    for name in (name for name, weight in weights.features.items() if weight >= 0):
        values = columns.get(name) or own_values(nbests, name)
        many = [row for row in values if len(row) > 1]
        if not many or np.mean([row[-1] > row[0] for row in many]) <= RISING:
            continue
        places = [int(np.argmin(row)) if len(row) else 0 for row in values]
        chosen = {
            nbest.utt: nbest.hyps[place].text for nbest, place in zip(filled, places, strict=True)
        }
        refs = {nbest.utt: reference(nbest) for nbest in nbests}
        score = evaluate(refs, chosen, weights.metric).score
        least = METRICS[weights.metric].lower_is_better
        if score < weights.dev.score if least else score > weights.dev.score:
            yield name, score


def own_values(nbests: Sequence[NBest], name: str) -> list[np.ndarray]:
    """Return the lists' own score of that name, (hypotheses,) a list; nothing if they have none."""
    if not all(name in hyp.scores for nbest in nbests for hyp in nbest.hyps):
        return []
    return [np.array([hyp.scores[name] for hyp in nbest.hyps]) for nbest in nbests]
