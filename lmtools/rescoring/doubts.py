"""Warnings on input by tuned weights: scores of the wrong sign, and a feature that alone chooses
because its weight ran away.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from lmtools.evaluate import METRICS
from lmtools.evaluate.signs import are_costs, are_positive, is_indicator
from lmtools.rescoring.features import Features
from lmtools.rescoring.weights import Weights

# Times that a feature's part of the totals is the reference's: on ten real sets 10 at most, 80 and
# more where the references were of other utterances
RUNAWAY = 40.0


def find_costs(
    features: Features, names: list[str], statistics: np.ndarray, metric: str
) -> list[str]:
    """Find those of the features `names` whose values are positive, and the lowest the best."""
    columns = {name: features.column(name) for name in names}
    columns = {n: column for n, column in columns.items() if are_positive(column[features.valid])}
    if not columns:
        return []
    gains = METRICS[metric].gain(statistics)
    return [n for n, column in columns.items() if are_costs(column, features.valid, gains)]


def find_runaway(
    features: Features, parts: Mapping[str, float], reference: str
) -> dict[str, float]:
    """Find the features that outweigh the reference by RUNAWAY, with how many times, by the parts
    that features have of the totals' spread inside lists; none in a pool of systems, which differ
    in how far they are trusted.
    """
    if any(is_indicator(features.column(name)[features.valid]) for name in features.names):
        return {}
    due = parts[reference]
    return {name: part / due for name, part in parts.items() if part > RUNAWAY * due > 0}


def find_useless(weights: Weights) -> Iterator[str]:
    """Yield a warning on each language model that tuning gave the weight 0."""
    for name in weights.signatures:
        if weights.features.get(name) == 0 and name not in weights.search.get("fixed", {}):
            yield f"warning: {name} has the weight 0: it is of no use on {weights.dev.path}"


def describe_doubts(weights: Weights) -> Iterator[str]:
    """Yield warnings about weights, with what to do."""
    yield from find_useless(weights)
    for name in weights.search.get("costs", ()):
        remedy = f"--fix {name}=-1" if name == weights.reference else f"--set negative={name}"
        yield (
            f"warning: {name!r} has the sign of costs: its values are positive, and the lowest"
            f" choose better than the highest; {remedy} turns it round"
        )
    for name, times in weights.search.get("runaway", {}).items():
        yield (
            f"warning: the weights ran away: {name} {weights.features[name]:.4g} outweighs"
            f" {weights.reference} {times:.0f} to 1; see whether the references fit (lmtools"
            f" doctor), or leave it out: --fix {name}=0"
        )
