"""What phrases bring and harm on a development set, and their weight under a bound on harm.

The other weights are tuned as without the glossary, so that weight 0 is the system that one has
otherwise; then the weight of the phrases alone is searched, exactly, where the development set has
no more false alarms and no more errors in other words than that system. Where lists have new
hypotheses with phrases (the score NEAR), that system is of the lists without them, and the weight
of NEAR, the margin of new hypotheses, is searched in turn with that of the phrases.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmtools.evaluate.phrases import PLACES, PhraseAlignment, false_alarms
from lmtools.rescoring.envelope import sweep
from lmtools.rescoring.features import NEAR, PHRASES, Features, best, deviate
from lmtools.text.phrases import Glossary
from lmtools.types import NBest

COUNTED = ("phrase_errors", "other_errors", "false_alarms")
# standard errors of the change in errors of other words: the root of the sum of its squares by list
NOISE = 1.0
TURNS = 3  # searches of the margin and of the weight of phrases
SURE = 2.0  # standard errors by which new hypotheses have to save errors, else none ever wins
NEVER = 200.0  # times the greatest difference of totals in a list: the margin where none may win
STEEP = 6.0  # margin by the weight of PHRASES from which both are searched else


def measure_harm(
    nbests: Sequence[NBest], column: Sequence[Sequence[float]], glossary: Glossary
) -> np.ndarray:
    """Return errors in phrase words, errors in others, and false alarms of each hypothesis
    (utterances, hypotheses, 3): 0 in lists whose `column` is everywhere the same.
    """
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
    """The weight that a search chose, where what it chooses begins, and sums (3,) of
    `measure_harm`.
    """

    weight: float
    begin: float
    counts: np.ndarray


@dataclass(frozen=True)
class HarmBound:
    """Counts of `measure_harm`, those of each list without phrases (utterances, 1, 3), and how many
    more false alarms are allowed.
    """

    harm: np.ndarray
    usual: np.ndarray
    more: int

    def search(self, rest: np.ndarray, column: np.ndarray, valid: np.ndarray) -> Found:
        """Search the weight, from 0 on, of a column beside the totals `rest` (all (utterances,
        hypotheses)).

        Of the weights with at most `more` false alarms more, and with no more errors in other words
        or within NOISE of it, the best have the fewest errors in all, then in phrase words; of
        these the least, half as much again where that is as good.
        """
        totals, begins, ends = self.trace(rest, column, valid, self.usual[..., 1:2])
        order = np.lexsort((totals[:, 0], totals[:, :2].sum(1), ~self.allow(totals)))
        place = int(order[0])
        begin, end = merge_equal(totals, begins, ends, place)
        weight = min(1.5 * begin, (begin + end) / 2)
        if begin == 0 and (totals[place, :3] != self.usual.sum((0, 1))).any():  # a tie at 0
            weight = min(1.0, end / 2)
        return Found(weight, begin, totals[place, :3])

    def search_margin(self, rest: np.ndarray, features: Features) -> Found:
        """Search the weight of NEAR beside the totals `rest` under the same bound; of the best the
        middle of the greatest, and inf, by which no new hypothesis wins, unless others save errors
        beyond SURE.
        """
        own = best(rest, own_hypotheses(features).valid)
        kept = self.harm[np.arange(len(self.harm)), own][:, None, :2].sum(-1, keepdims=True)
        totals, begins, ends = self.trace(rest, features.column(NEAR), features.valid, kept)
        errors = totals[:, :2].sum(1)
        sure = errors[-1] - errors >= SURE * np.sqrt(totals[:, 4])
        sure[-1] = True
        order = np.lexsort((-ends, totals[:, 0], errors, ~(self.allow(totals) & sure)))
        place = int(order[0])
        begin, end = merge_equal(totals, begins, ends, place)
        return Found((begin + end) / 2, begin, totals[place, :3])

    def trace(
        self, rest: np.ndarray, column: np.ndarray, valid: np.ndarray, kept: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sums (intervals, 5) along the weights from 0 on, of `harm`, of the squared
        changes in errors of other words, and in errors of all from `kept`; begins and ends.
        """
        changes = (
            self.harm[..., 1:2] - self.usual[..., 1:2],
            self.harm[..., :2].sum(-1, keepdims=True) - kept,
        )
        squares = [change**2 for change in changes]
        curve = sweep(rest, column, valid, np.concatenate([self.harm, *squares], axis=-1))
        inside = curve.ends > 0
        return curve.totals[inside], np.maximum(curve.edges[inside], 0), curve.ends[inside]

    def allow(self, totals: np.ndarray) -> np.ndarray:
        """Return which intervals (intervals,) of `trace` are within the bound."""
        usual = self.usual.sum((0, 1))
        harmless = totals[:, 1] - usual[1] <= NOISE * np.sqrt(totals[:, 3])
        return harmless & (totals[:, 2] <= usual[2] + self.more)


def merge_equal(
    totals: np.ndarray, begins: np.ndarray, ends: np.ndarray, place: int
) -> tuple[float, float]:
    """Return begin and end of an interval with those neighbours of it that have the same sums."""
    differ = (totals != totals[place]).any(1)
    first = place - int(np.append(differ[:place][::-1], True).argmax())
    last = place + int(np.append(differ[place:], True).argmax()) - 1
    return float(begins[first]), float(ends[last])


def bound_weights(rest: np.ndarray, features: Features, harm: np.ndarray, more: int) -> dict:
    """Return the weight of PHRASES beside the totals `rest` (utterances, hypotheses) of all else,
    with the counts of `harm` at weight 0 and there; and the `margin`, the weight of NEAR, where
    lists have it and `rest` has none of it.

    Of weights that are as good the cautious side is taken: of PHRASES the least, half as much again
    where that is as good; of NEAR the greatest.
    """
    own, column = own_hypotheses(features), features.column(PHRASES)
    usual = harm[np.arange(len(harm)), best(rest, own.valid)][:, None]
    bound = HarmBound(harm, usual, more)
    found, margin = bound.search(rest, column, own.valid), {}
    if own is not features:
        found, margin = bound_new(bound, rest, features, found)
    rows = {"without": usual.sum((0, 1)), "with": found.counts}
    counts = {key: dict(zip(COUNTED, map(int, row), strict=True)) for key, row in rows.items()}
    lists = int(varying(features))
    note = {"weight": found.weight, "more": more, "from": found.begin, "lists": lists}
    return {**note, **margin, **counts}


def bound_new(
    bound: HarmBound, rest: np.ndarray, features: Features, alone: Found
) -> tuple[Found, dict]:
    """Return the weights of PHRASES where lists have new hypotheses, of which `alone` are those
    without them; and the `margin`, and whether any `new` one should win by it.
    """
    column = features.column(PHRASES)
    settled = settle(bound, rest, features, alone.weight)
    if not settled:  # a phrase that no list holds has a weight only with new hypotheses
        steep = bound.search(rest, column + STEEP * features.column(NEAR), features.valid)
        settled = settle(bound, rest, features, steep.weight)
    if settled:
        return settled[0], {"margin": settled[1], "new": True}
    totals = rest + alone.weight * column
    apart = np.ptp(np.where(features.valid, totals, totals[:, :1]), axis=1).max()
    return alone, {"margin": NEVER * float(apart or 1.0), "new": False}


def settle(
    bound: HarmBound, rest: np.ndarray, features: Features, weight: float
) -> tuple[Found, float] | None:
    """Search the margin and the weight of PHRASES in turn, from a weight on; return the weights of
    PHRASES and the margin, or None where no new hypothesis should win.
    """
    column, found = features.column(PHRASES), None
    for _ in range(TURNS):
        margin = bound.search_margin(rest + weight * column, features).weight
        if np.isinf(margin):
            return None
        found = bound.search(rest + margin * features.column(NEAR), column, features.valid)
        weight = found.weight
    return found, margin


def own_hypotheses(features: Features) -> Features:
    """Return features in which only the first pass's own hypotheses exist; themselves without
    NEAR.
    """
    if NEAR not in features.names:
        return features
    return replace(features, valid=features.valid & (features.column(NEAR) >= 0))


def varying(features: Features) -> int:
    """Return the number of lists whose hypotheses differ in PHRASES."""
    return deviate(features.column(PHRASES), features.valid)[1].sum()
