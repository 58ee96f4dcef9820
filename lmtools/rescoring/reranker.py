"""Rerankers: what a development set taught beyond weights.

Weights choose a hypothesis; a reranker looks at the others of the list and says of each how sure it
is better than the chosen one. The surest takes its place if it is beyond the threshold that the
development set earned. Inputs are differences from the chosen hypothesis: of all columns, of the
total, of posteriors, expected errors and confidences of words, of likeness to the recogniser's own
answer; beside them how long and how certain the list is, alone (`boosting`) or times the
differences (`logistic`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
import numpy as np

from lmtools.base.doors import open_door
from lmtools.base.errors import UserError
from lmtools.base.grammar import Finite
from lmtools.evaluate.pairs import pair_gains
from lmtools.rescoring.features import LENGTHS, Features, best, combine
from lmtools.types import TOTAL, NBest

KINDS = LOGISTIC, BOOSTING = ("logistic", "boosting")
DEPTH = 10  # hypotheses of a list that may be chosen, by their totals, and the first
SHARP = 2.0  # posteriors are softmax(SHARP * total / its spread)
MOST_TREES, MOST_NODES = 1000, 255
OF_TEXTS = ("posterior", "risk", "confidence", "doubt", "likeness")
MANY, UNLIKE = 20, 1.25  # lists, and times their size, from which a doubt is said
LEAF = -1


class RegressionTree(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A regression tree by node, the root first: the input that it asks for (LEAF: none), up to
    which threshold it goes left, where left and right lead, and the value of a leaf.
    """

    inputs: tuple[int, ...]
    thresholds: tuple[Finite, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    values: tuple[Finite, ...]

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Return the value of each row (N, inputs)."""
        inputs, thresholds, left, right = map(
            np.array, (self.inputs, self.thresholds, self.left, self.right)
        )
        nodes = np.zeros(len(rows), np.int64)
        while len(open_ := np.flatnonzero(inputs[nodes] != LEAF)):
            at = nodes[open_]
            goes_left = rows[open_, inputs[at]] <= thresholds[at]
            nodes[open_] = np.where(goes_left, left[at], right[at])
        return np.array(self.values)[nodes]


class Reranker(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What says how much better a hypothesis is than the chosen one, from `inputs` by name.

    `spreads` are the units of columns and the total. LOGISTIC has `weights` of inputs and a
    `constant`, which give the log-odds of better to worse; BOOSTING the sum of `constant` and
    `trees`, errors saved. `size` is the mean number of hypotheses of the lists that taught it. Only
    beyond `threshold` a hypothesis takes the chosen one's place.
    """

    kind: Literal["logistic", "boosting"]
    inputs: tuple[str, ...]
    spreads: dict[str, Finite]
    threshold: Finite
    constant: Finite
    size: Finite
    weights: tuple[Finite, ...] = ()
    trees: tuple[RegressionTree, ...] = ()

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Return the score of each row (N, inputs), to the bit the same in any company."""
        if self.kind == LOGISTIC:
            return combine(self.weights, rows.T[:, None])[0] + self.constant
        scores = np.full(len(rows), self.constant)
        for tree in self.trees:
            scores += tree.predict(rows)
        return scores


def check_reranker(reranker: Reranker, features: Sequence[str], path) -> None:
    """Raise UserError about `path` for a reranker that tuning cannot have written."""
    remedy = "write it again with lmtools tune"
    if {*reranker.spreads} != {TOTAL, *features} or min(reranker.spreads.values()) <= 0:
        raise UserError(f"{path}: the reranker is not of the features; {remedy}")
    if [*reranker.inputs] != name_inputs([*features], reranker.kind):
        raise UserError(f"{path}: the reranker has other inputs than this version's; {remedy}")
    width = len(reranker.inputs)
    right = len(reranker.weights) == (width if reranker.kind == LOGISTIC else 0)
    right &= len(reranker.trees) <= (0 if reranker.kind == LOGISTIC else MOST_TREES)
    right &= reranker.threshold >= 0 and reranker.size > 0
    for tree in reranker.trees:
        size = len(tree.inputs)
        columns = (tree.thresholds, tree.left, tree.right, tree.values)
        right &= 0 < size <= MOST_NODES and all(len(column) == size for column in columns)
        # ways lead down alone, so that each ends
        right &= all(
            asked == LEAF or (0 <= asked < width and node < min(ways) and max(ways) < size)
            for node, (asked, *ways) in enumerate(
                zip(tree.inputs, tree.left, tree.right, strict=False)
            )
        )
    if not right:
        raise UserError(f"{path}: no reranker: numbers of its parts do not fit together; {remedy}")


@dataclass(frozen=True)
class Candidates:
    """Hypotheses that may take the place of the chosen ones: of which lists, their `places`, and
    `inputs` (N, names); `chosen` (lists,) are the places of the chosen ones.
    """

    lists: np.ndarray
    places: np.ndarray
    inputs: np.ndarray
    chosen: np.ndarray

    def find_surest(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return of each list the place and score of the candidate with the highest of `scores`
        (N,), the earlier one of equals; -inf without candidates.
        """
        places, highest = self.chosen.copy(), np.full(len(self.chosen), -np.inf)
        order = np.lexsort((-self.places, scores))  # the last of a list stays
        places[self.lists[order]], highest[self.lists[order]] = self.places[order], scores[order]
        return places, highest


def doubt_reranker(reranker: Reranker | None, nbests: Sequence[NBest], path) -> list[str]:
    """Return a warning on weights of `path` where lists are of another size than its reranker's."""
    size = np.mean([len(nbest.hyps) for nbest in nbests]) if nbests else 0
    if not reranker or len(nbests) < MANY or 1 / UNLIKE < size / reranker.size < UNLIKE:
        return []
    return [
        f"warning: {path}: its reranker was learnt on lists of {reranker.size:.1f} hypotheses,"
        f" these have {size:.1f}: it may do harm there; tune on lists made as these"
    ]


def name_inputs(features: Sequence[str], kind: str) -> list[str]:
    """Return the names of inputs for these features."""
    others = [name for name in ("words",) if name not in features]
    differences = [f"{TOTAL} by weights", *features, *others, "first", "place", *OF_TEXTS]
    context = ["list: length", "list: certainty", "list: size", "list: first is chosen"]
    if kind == BOOSTING:
        return [*differences, *context]
    return [
        *(f"{name}{times}" for times in ("", " x length", " x certainty") for name in differences),
        *context,
    ]


@dataclass(frozen=True)
class KnownLists:
    """Lists, their features, and the metric that they are chosen for."""

    nbests: Sequence[NBest]
    features: Features
    metric: str

    def switch(self, totals: np.ndarray, rows: np.ndarray, reranker: Reranker) -> None:
        """Raise totals (in place) of the utterances `rows`, so that what the reranker chooses is
        first: by its score beyond the threshold above what was chosen.
        """
        nbests = [self.nbests[row] for row in rows]
        own, some = totals[rows], KnownLists(nbests, self.features.take(rows), self.metric)
        candidates = list_candidates(some, own, reranker.spreads, reranker.kind)
        places, scores = candidates.find_surest(reranker.predict(candidates.inputs))
        here = np.flatnonzero(scores > reranker.threshold)
        top = own[here, candidates.chosen[here]]
        raised = np.maximum(top + scores[here] - reranker.threshold, np.nextafter(top, np.inf))
        totals[rows[here], places[here]] = raised


def list_candidates(
    known: KnownLists, totals: np.ndarray, spreads: Mapping[str, float], kind: str
) -> Candidates:
    """Return the candidates of lists whose hypotheses have these totals (utterances, hypotheses),
    and their inputs, in the order of `name_inputs`.
    """
    nbests, features = known.nbests, known.features
    rows = np.arange(len(totals))
    taken = take_first(totals, features.valid)
    chosen = best(totals, features.valid)
    places = np.broadcast_to(np.arange(totals.shape[1]), totals.shape)
    words = np.zeros(totals.shape)
    for row, nbest in zip(words, nbests, strict=True):
        row[: len(nbest.hyps)] = [LENGTHS["words"](hyp) for hyp in nbest.hyps]
    judged = judge_texts(nbests, totals * (SHARP / spreads[TOTAL]), taken, known.metric)
    columns = [
        totals / spreads[TOTAL],
        *(features.column(name) / spreads[name] for name in features.names),
        *([] if "words" in features.names else [words]),
        *(places == 0, np.log1p(places)),
        *judged,
    ]
    values = np.stack(columns).astype(float)
    taken[rows, chosen] = False
    lists, at = np.nonzero(taken)
    # (inputs, N)
    differences = values[:, lists, at] - values[:, rows, chosen][:, lists]
    context = np.stack(
        [
            np.log1p(words[rows, chosen]),
            judged[0][rows, chosen],
            np.log1p(features.valid.sum(1)),
            chosen == 0,
        ]
    ).astype(float)[:, lists]
    parts = [differences, context]
    if kind == LOGISTIC:
        parts[1:1] = [differences * context[0], differences * context[1]]
    return Candidates(lists, at, np.concatenate(parts).T, chosen)


def take_first(totals: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return which hypotheses are a list's first, or among the DEPTH of the highest totals."""
    order = np.argsort(np.where(valid, -totals, np.inf), axis=1, kind="stable")
    taken = np.zeros(totals.shape, bool)
    np.put_along_axis(taken, order[:, :DEPTH], True, axis=1)
    taken[:, 0] = True
    return taken & valid


def judge_texts(
    nbests: Sequence[NBest], logs: np.ndarray, taken: np.ndarray, metric: str
) -> np.ndarray:
    """Return OF_TEXTS (5, utterances, hypotheses) of the taken hypotheses: posterior, expected
    quality if any may be right, mean and least confidence of its words in the list's network,
    quality if the first were right.
    """
    align = open_door("networks", "lists:align_list", "a reranker")
    judged = np.zeros((len(OF_TEXTS), *logs.shape))
    for row, nbest in enumerate(nbests):
        places = np.flatnonzero(taken[row])
        if len(places) < 2:
            continue
        hyps = [nbest.hyps[place] for place in places]
        shares = np.exp(logs[row, places] - logs[row, places].max())
        shares /= shares.sum()
        gains = pair_gains(metric, [hyp.text for hyp in hyps], range(len(hyps)))
        builder, placed = align(replace(nbest, hyps=tuple(hyps)), shares)
        confidences = np.zeros((2, len(hyps)))
        for column, hyp in zip(confidences.T, hyps, strict=True):
            words = hyp.text.split()
            mass = [
                builder.mass[builder.rows[word], slot] / builder.total
                for word, slot in zip(words, placed.get(" ".join(words), ()), strict=False)
            ]
            column[:] = (np.mean(mass), min(mass)) if mass else 0.0
        judged[:, row, places] = [shares, gains @ shares, *confidences, gains[:, 0]]
    return judged
