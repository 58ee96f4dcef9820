"""Warnings on input by tuned weights: scores of the wrong sign, and a feature that alone chooses
because its weight ran away; and on posteriors of a single score.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from lmtools.evaluate import METRICS
from lmtools.evaluate.fit import are_costs, are_positive, is_indicator
from lmtools.rescoring.features import FAR, Features
from lmtools.rescoring.weights import Weights
from lmtools.types import NBest

# Times that a feature's part of the totals is the reference's: on ten real sets 10 at most, 80 and
# more where the references were of other utterances
RUNAWAY = 40.0


RISING = 0.6  # share of lists whose last score is higher than the first, if scores are costs


@dataclass
class PosteriorDoubts:
    """What lists say against the score of their own that makes the posterior, one by one."""

    name: str = ""
    alone: bool = False
    signs: list[bool] = field(default_factory=list)
    rising: list[bool] = field(default_factory=list)
    far: list[str] = field(default_factory=list)

    def add(self, nbest: NBest, name: str, values: np.ndarray) -> None:
        """Look at a list as it was read and the values of the score `name`."""
        self.name = name
        self.alone |= name == "am" and "graph" in nbest.hyps[0].scores
        self.signs.append(are_positive(values))
        self.far += [nbest.utt for hyp in nbest.hyps if abs(hyp.scores.get(name, 0)) > FAR]
        if len(values) > 1:
            self.rising.append(bool(values[-1] > values[0]))

    def describe(self, source) -> Iterator[str]:
        """Yield warnings about the lists read from `source`, with what to do."""
        tune = "lmtools tune --nbest DEV --out W.json"
        use = "give --weights W.json, or lists that lmtools rescore --nbest-out wrote with them"
        if self.rising and all(self.signs) and np.mean(self.rising) > RISING:
            yield (
                f"warning: {source}: {self.name!r} has the sign of costs: its values are positive,"
                " and grow down the lists, whose last hypotheses so are the most probable; turn it"
                f" round: {tune} --fix {self.name}=-1, and {use}"
            )
        if self.far:
            yield (
                f"warning: {source}: {len(self.far):,} values of {self.name!r} (first in"
                f" {self.far[0]!r}) are beyond {FAR:g}: no score; each counts as the least (or"
                " greatest) other one of its list"
            )
        if self.alone:
            yield (
                f"warning: {source}: posteriors are of 'am' alone, without 'graph'; weigh both:"
                f" {tune}, and {use}"
            )


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
