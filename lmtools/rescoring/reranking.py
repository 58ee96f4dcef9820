"""Rerankers learnt on a development set, and judged where they did not see the utterances.

Each fold has the weights and the reranker that were learnt without it; the threshold of a fold's
reranker comes from a division of the other folds. A reranker is taken where what it saves in the
folds is beyond two standard errors; else weights do as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from lmtools.base.errors import UserError, explain_missing
from lmtools.evaluate.metrics import METRICS
from lmtools.rescoring.features import best, combine
from lmtools.rescoring.folds import Folds
from lmtools.rescoring.margins import SURE
from lmtools.rescoring.reranker import (
    LEAF,
    LOGISTIC,
    Candidates,
    KnownLists,
    RegressionTree,
    Reranker,
    list_candidates,
    name_inputs,
)
from lmtools.rescoring.tuning import DevSet, before_and_after, spread
from lmtools.rescoring.weights import RERANKER, Weights
from lmtools.types import TOTAL

INNER = 5  # parts, at most, that a threshold is found by
PENALTY = 0.1  # `C` of the logistic regression
TINY = 1e-9
CAUTION = 1.0  # standard errors that a threshold must save in the inner division
FEWEST = 50  # candidates that are better or worse, to learn from
BOOSTING = {  # of HistGradientBoostingRegressor
    "learning_rate": 0.05,
    "max_iter": 80,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 60,
    "l2_regularization": 10.0,
    "early_stopping": False,
    "random_state": 0,
}


@dataclass(frozen=True)
class Lesson:
    """Candidates of all lists for given weights, what each saves, and units of their inputs."""

    candidates: Candidates
    gains: np.ndarray
    spreads: dict[str, float]
    names: tuple[str, ...]
    size: float

    def among(self, rows: np.ndarray) -> np.ndarray:
        """Return which candidates are of the lists `rows` (a mask of lists)."""
        return rows[self.candidates.lists]


def rerank(
    known: KnownLists, dev_set: DevSet, weights: Weights, kind: str, groups: Sequence[str]
) -> Weights:
    """Return cross-validated `weights` with a reranker of that kind for the whole set and each
    fold, and a note on what it saves; with the note alone where that is not sure, the errors of
    each group of utterances (a speaker's) being one draw.
    """
    folds, valid, everyone = weights.folds, known.features.valid, np.arange(len(groups))
    places = {nbest.utt: row for row, nbest in enumerate(known.nbests)}
    rows = [np.array([places[utt] for utt in part.utterances]) for part in folds.parts]
    measure = METRICS[weights.metric]
    gains = measure.gain(measure.cap(dev_set.statistics))
    totals, parts = np.zeros(valid.shape), []
    kept = np.zeros(len(groups), int)
    for fold, here in zip(folds.parts, rows, strict=True):
        own = combine(fold.features.values(), known.features.values)
        rest = [part for part in rows if part is not here]
        learnt = learn_cautiously(prepare(known, own, gains, kind), rest, kind)
        parts.append(msgspec.structs.replace(fold, reranker=learnt))
        kept[here] = best(own, valid)[here]
        if learnt:
            known.switch(own, here, learnt)
        totals[here] = own[here]
    chosen = best(totals, valid)
    changes = gains[everyone, chosen] - gains[everyone, kept]
    score = before_and_after(dev_set.statistics, chosen, weights.metric)[1]
    totals = combine(weights.features.values(), known.features.values)
    learnt = learn_cautiously(prepare(known, totals, gains, kind), rows, kind)
    note = {"kind": kind, "without": folds.score, "with": score, "saved": float(changes.sum())}
    note |= {"switched": int((chosen != kept).sum()), **judge(changes, groups)}
    better = score < folds.score if measure.lower_is_better else score > folds.score
    note["taken"] = bool(note.pop("sure") and better and learnt is not None)
    weights = replace(weights, search={**weights.search, RERANKER: note})
    if not note["taken"]:
        return weights
    known.switch(totals, everyone, learnt)
    after = before_and_after(dev_set.statistics, best(totals, valid), weights.metric)[1]
    facts = {"dev": replace(weights.dev, score=after), "folds": Folds(folds.by, score, (*parts,))}
    return replace(weights, reranker=learnt, **facts)


def judge(changes: np.ndarray, groups: Sequence[str]) -> dict:
    """Return the standard error of the sum of changes, and whether it is surely above 0."""
    of_groups = np.bincount(np.unique(groups, return_inverse=True)[1], changes)
    error = float(np.sqrt((of_groups**2).sum()))
    return {"error": error, "sure": bool(changes.sum() >= SURE * error > 0)}


def prepare(known: KnownLists, totals: np.ndarray, gains: np.ndarray, kind: str) -> Lesson:
    """Prepare what is learnt from lists of these totals and gains (utterances, hypotheses)."""
    features = known.features
    columns = {TOTAL: totals} | {name: features.column(name) for name in features.names}
    spreads = {name: spread(column, features.valid) or 1.0 for name, column in columns.items()}
    candidates = list_candidates(known, totals, spreads, kind)
    of_chosen = gains[candidates.lists, candidates.chosen[candidates.lists]]
    saved = gains[candidates.lists, candidates.places] - of_chosen
    names = tuple(name_inputs(features.names, kind))
    return Lesson(candidates, saved, spreads, names, size=float(features.valid.sum(1).mean()))


def learn_cautiously(lesson: Lesson, parts: Sequence[np.ndarray], kind: str) -> Reranker | None:
    """Learn a reranker on the lists of all `parts`, with the threshold that saves most on each part
    by what was learnt of the others; None where none saves anything surely.
    """
    candidates, lists = lesson.candidates, len(lesson.candidates.chosen)
    scores = np.full(len(lesson.gains), -np.inf)
    whole = np.isin(np.arange(lists), np.concatenate(parts))
    for first in range(min(INNER, len(parts))):
        held_out = np.isin(np.arange(lists), np.concatenate(parts[first::INNER]))
        learnt = fit(lesson, whole & ~held_out, kind)
        if learnt is None:
            return None
        here = lesson.among(held_out)
        scores[here] = learnt.predict(candidates.inputs[here])
    saved = np.zeros((lists, int(candidates.places.max(initial=0)) + 1))
    saved[candidates.lists, candidates.places] = lesson.gains
    surest, highest = candidates.find_surest(scores)
    surest = np.where(highest > -np.inf, surest, 0)
    gained = np.where(highest > -np.inf, saved[np.arange(lists), surest], 0)
    threshold = find_threshold(highest, gained)
    learnt = None if threshold is None else fit(lesson, whole, kind)
    return learnt and msgspec.structs.replace(learnt, threshold=threshold)


def find_threshold(scores: np.ndarray, gains: np.ndarray) -> float | None:
    """Find the threshold, at least 0, of scores (lists,) beyond which the lists gain most, between
    two scores; None where that is not beyond CAUTION standard errors.
    """
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > 0]
    if not len(order):
        return None
    gained, squares = gains[order].cumsum(), (gains[order] ** 2).cumsum()
    ends = np.append(scores[order][1:], 0.0)
    apart = ends < scores[order]  # equal scores switch together
    sure = apart & (gained > 0) & (gained >= CAUTION * np.sqrt(squares))
    if not sure.any():
        return None
    place = int(np.where(sure, gained, -np.inf).argmax())
    return float((scores[order][place] + ends[place]) / 2)


def fit(lesson: Lesson, rows: np.ndarray, kind: str) -> Reranker | None:
    """Fit a reranker of threshold 0 on some of the lists (a mask) by scikit-learn; None where too
    few candidates are better or worse than the chosen.
    """
    here = lesson.among(rows)
    inputs, gains = lesson.candidates.inputs[here], lesson.gains[here]
    if min((gains > 0).sum(), (gains < 0).sum()) < FEWEST:
        return None
    facts = {"inputs": lesson.names, "spreads": lesson.spreads, "threshold": 0.0}
    facts["size"] = lesson.size
    try:
        return (fit_logistic if kind == LOGISTIC else fit_boosting)(inputs, gains, facts)
    except ImportError as error:
        raise explain_missing(error, "--reranker") from None


def fit_logistic(inputs: np.ndarray, gains: np.ndarray, facts: dict) -> Reranker:
    """Fit the log-odds that a candidate is better, each counting as much as it saves or harms."""
    from sklearn.linear_model import LogisticRegression

    known = gains != 0
    units = inputs[known].std(0)
    units[units < TINY] = 1.0  # what differs by rounding alone
    model = LogisticRegression(C=PENALTY, max_iter=2000)
    counts = np.abs(gains[known])
    model.fit(inputs[known] / units, gains[known] > 0, sample_weight=counts / counts.mean())
    weights = tuple((model.coef_[0] / units).tolist())
    return Reranker(LOGISTIC, **facts, constant=float(model.intercept_[0]), weights=weights)


def fit_boosting(inputs: np.ndarray, gains: np.ndarray, facts: dict) -> Reranker:
    """Fit what a candidate saves, by gradient boosting of trees over histograms."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # more threads wait for each other more than they do
        model = HistGradientBoostingRegressor(**BOOSTING).fit(inputs, gains)
    trees = tuple(read_tree(predictor.nodes) for (predictor,) in model._predictors)
    constant = float(np.squeeze(model._baseline_prediction))
    learnt = Reranker("boosting", **facts, constant=constant, trees=trees)
    if np.abs(learnt.predict(inputs) - model.predict(inputs)).max() > 1e-9:
        raise UserError(
            "--reranker boosting: this scikit-learn keeps its trees otherwise; install the version"
            " of utils/constraints.txt, or take logistic"
        )
    return learnt


def read_tree(nodes: np.ndarray) -> RegressionTree:
    """Return a tree of scikit-learn's nodes."""
    leaf = nodes["is_leaf"].astype(bool)
    return RegressionTree(
        inputs=tuple(np.where(leaf, LEAF, nodes["feature_idx"].astype(int)).tolist()),
        thresholds=tuple(np.where(leaf, 0.0, nodes["num_threshold"]).tolist()),
        left=tuple(np.where(leaf, 0, nodes["left"].astype(int)).tolist()),
        right=tuple(np.where(leaf, 0, nodes["right"].astype(int)).tolist()),
        values=tuple(nodes["value"].tolist()),
    )
