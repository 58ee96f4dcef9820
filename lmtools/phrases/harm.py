"""What phrases bring and harm on a development set, and the weight that balances both.

The other weights are tuned as without the glossary, so that weight 0 is the system that one has
otherwise; then the weight of the phrases alone is searched, exactly. A phrase word gained counts as
much as another word harmed: the least errors in all win, which are never more than that system has.
Where lists have new hypotheses with phrases (the score NEAR), that system is of the lists without
them, and the weight of NEAR, the margin of new hypotheses, is searched in turn with that of the
phrases.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmtools.phrases.evaluate import PLACES, PhraseAlignment, false_alarms
from lmtools.phrases.glossary import Glossary
from lmtools.rescoring.features import NEAR, Features, best, deviate, own_hypotheses
from lmtools.rescoring.search import sweep
from lmtools.types import PHRASES, NBest

COUNTED = ("phrase_errors", "other_errors", "false_alarms")
STEPS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the chosen weight, of the curve that is told
CI = 1.96  # standard errors (the root of the sum of squared changes by list) to an end of 95%
TURNS = 3  # searches of the margin and of the weight of phrases
SURE = 2.0  # standard errors by which new hypotheses have to save errors, else none ever wins
NEVER = 200.0  # times the greatest difference of totals in a list: the margin where none may win
STEEP = 6.0  # margin by the weight of PHRASES from which both are searched else


def measure_harm(
    nbests: Sequence[NBest], column: Sequence[Sequence[float]], glossary: Glossary
) -> np.ndarray:
    """Return each hypothesis' errors in phrase words, in others, and false alarms (., ., 3)."""
    depth = max(1, *(len(nbest.hyps) for nbest in nbests))
    harm = np.zeros((len(nbests), depth, 3), dtype=np.int64)
    for row, (nbest, values) in enumerate(zip(nbests, column, strict=True)):
        if len(values) and np.ptp(values) > 0:
            automaton = glossary.unweighted(nbest.utt)
            counts = np.stack(
                [PhraseAlignment.of(nbest.ref, hyp.text, automaton).count() for hyp in nbest.hyps]
            )
            errors = counts[:, PLACES["phrase errors"]], counts[:, PLACES["other errors"]]
            harm[row, : len(counts)] = np.stack([*errors, false_alarms(counts)], axis=1)
    return harm


@dataclass(frozen=True)
class Found:
    """The weight that a search chose, where what it chooses begins, sums (3,) of `measure_harm` and
    of the squared changes in errors there, and rows [weight, *sums (3,)] beside it.
    """

    weight: float
    begin: float
    counts: np.ndarray
    curve: list[list[float]]


@dataclass(frozen=True)
class HarmBound:
    """Counts of `measure_harm`, and those of each list without phrases (utterances, 1, 3)."""

    harm: np.ndarray
    usual: np.ndarray

    def search(self, rest: np.ndarray, column: np.ndarray, valid: np.ndarray) -> Found:
        """Search the weight, from 0 on, of a column beside the totals `rest` (utterances,
        hypotheses). Within the bound the fewest errors count, then in phrase words, then the least
        weight, half as much again where as good.
        """
        totals, begins, ends = self.trace(rest, column, valid, self.usual)
        order = np.lexsort((totals[:, 0], totals[:, :2].sum(1), ~self.allow(totals)))
        place = int(order[0])
        begin, end = merge_equal(totals, begins, ends, place)
        weight = min(1.5 * begin, (begin + end) / 2)
        if begin == 0 and (totals[place, :3] != self.usual.sum((0, 1))).any():  # a tie at 0
            weight = min(1.0, end / 2)
        return Found(weight, begin, totals[place], self.draw(weight, totals, begins))

    def search_margin(self, rest: np.ndarray, features: Features) -> Found:
        """Search the weight of NEAR beside the totals `rest` under the same bound; of the best the
        middle of the greatest, and inf, by which no new hypothesis wins, unless others save errors
        beyond SURE.
        """
        own = best(rest, own_hypotheses(features).valid)
        kept = self.harm[np.arange(len(self.harm)), own][:, None]
        totals, begins, ends = self.trace(rest, features.column(NEAR), features.valid, kept)
        errors = totals[:, :2].sum(1)
        sure = errors[-1] - errors >= SURE * np.sqrt(totals[:, 3])
        sure[-1] = True
        order = np.lexsort((-ends, totals[:, 0], errors, ~(self.allow(totals) & sure)))
        place = int(order[0])
        begin, end = merge_equal(totals, begins, ends, place)
        weight = (begin + end) / 2
        return Found(weight, begin, totals[place], self.draw(weight, totals, begins))

    def trace(
        self, rest: np.ndarray, column: np.ndarray, valid: np.ndarray, kept: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sums (intervals, 4) along the weights from 0 on, of `harm`, and of the squared
        changes in errors of all words from `kept` (utterances, 1, 3); begins and ends.
        """
        errors, usual = (counts[..., :2].sum(-1, keepdims=True) for counts in (self.harm, kept))
        curve = sweep(rest, column, valid, np.concatenate([self.harm, (errors - usual) ** 2], -1))
        inside = curve.ends > 0
        return curve.totals[inside], np.maximum(curve.edges[inside], 0), curve.ends[inside]

    def allow(self, totals: np.ndarray) -> np.ndarray:
        """Return which intervals of `trace` have no more errors in all than without phrases."""
        usual = self.usual.sum((0, 1))
        return totals[:, :2].sum(1) <= usual[:2].sum()

    def draw(self, weight: float, totals: np.ndarray, begins: np.ndarray) -> list[list[float]]:
        """Return rows [weight, *counts (3,)] of weight 0 and of STEPS that change counts."""
        later = begins[begins > 0]
        edges = np.append(later[len(later) // 2 :], later[-1:] * 2)[:2]
        middle = float(edges.mean()) if len(edges) else 1.0  # inside an interval, no tie
        scale = weight if 0 < weight < np.inf else middle
        places = np.searchsorted(begins, [scale * step for step in STEPS], side="right") - 1
        rows = [[0.0, *self.usual.sum((0, 1)).tolist()]]
        for step, row in zip(STEPS, totals[places, :3].tolist(), strict=True):
            if row != rows[-1][1:] or step * scale == weight:
                rows.append([step * scale, *row])
        return rows


def merge_equal(
    totals: np.ndarray, begins: np.ndarray, ends: np.ndarray, place: int
) -> tuple[float, float]:
    """Return begin and end of an interval with those neighbours of it that have the same sums."""
    differ = (totals != totals[place]).any(1)
    first = place - int(np.append(differ[:place][::-1], True).argmax())
    last = place + int(np.append(differ[place:], True).argmax()) - 1
    return float(begins[first]), float(ends[last])


def bound_weights(rest: np.ndarray, features: Features, harm: np.ndarray) -> dict:
    """Return the weight of PHRASES beside the totals `rest` (utterances, hypotheses), with the
    counts of `harm` at 0 and there, and `margin`, the weight of NEAR, where lists have it. Of
    equals the cautious side: the least of PHRASES, the greatest of NEAR.
    """
    own, column = own_hypotheses(features), features.column(PHRASES)
    usual = harm[np.arange(len(harm)), best(rest, own.valid)][:, None]
    bound = HarmBound(harm, usual)
    found, margin = bound.search(rest, column, own.valid), {}
    if own is not features:
        found, margin = bound_new(bound, rest, features, found)
    rows = {"without": usual.sum((0, 1)), "with": found.counts[:3]}
    counts = {key: dict(zip(COUNTED, map(int, row), strict=True)) for key, row in rows.items()}
    change = sum((row[:2].sum() for row in (rows["with"], -rows["without"])), 0.0)
    apart = CI * float(np.sqrt(found.counts[3]))
    counts["change"] = [float(change) - apart, float(change) + apart]
    lists = int(deviate(column, features.valid)[1].sum())  # that differ in PHRASES
    note = {"weight": found.weight, "from": found.begin, "lists": lists}
    return {**note, **margin, **counts, "curve": found.curve}


def bound_new(
    bound: HarmBound, rest: np.ndarray, features: Features, alone: Found
) -> tuple[Found, dict]:
    """Return what is found of PHRASES, and the `margin` by which a `new` hypothesis wins."""
    column = features.column(PHRASES)
    settled = settle(bound, rest, features, alone.weight)
    if not settled:  # a phrase that no list holds has a weight only with new hypotheses
        steep = bound.search(rest, column + STEEP * features.column(NEAR), features.valid)
        settled = settle(bound, rest, features, steep.weight)
    if settled:
        found, margin = settled
        return found, {"margin": margin.weight, "new": True, "margins": margin.curve}
    totals = rest + alone.weight * column
    apart = np.ptp(np.where(features.valid, totals, totals[:, :1]), axis=1).max()
    return alone, {"margin": NEVER * float(apart or 1.0), "new": False}


def settle(
    bound: HarmBound, rest: np.ndarray, features: Features, weight: float
) -> tuple[Found, Found] | None:
    """Search margin and weight of PHRASES in turn; None where no new hypothesis should win."""
    column, found = features.column(PHRASES), None
    for _ in range(TURNS):
        margin = bound.search_margin(rest + weight * column, features)
        if np.isinf(margin.weight):
            return None
        found = bound.search(rest + margin.weight * features.column(NEAR), column, features.valid)
        weight = found.weight
    return found, margin
