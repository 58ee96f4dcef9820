"""Lazy rescoring: a language model scores the hypotheses that may still win, best first.

What its score of a hypothesis is expected to be is a line through features of the hypothesis that
are known before, learnt on the development set from the differences within its lists. Where a list
lies as a whole, its scored hypotheses say. A list is done when its best hypothesis is ahead of what
is expected of all others by a margin. That is the smallest with which the development set's lists
keep their winners: a quantile of what each list needs, as in conformal prediction (Vovk, Gammerman
and Shafer 2005, Algorithmic Learning in a Random World), so that k lists of n that need more stand
for a share of (k + 1) / (n + 1) among lists of the same kind.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.grammar import Finite, fit
from lmtools.rescoring.features import Features, ScoreColumns, combine, measure_lengths
from lmtools.rescoring.weights import Weights
from lmtools.types import NBest

LAZY = "lazy"  # among the notes of weights
TEXT = ("words", "characters")  # lengths that a score goes with, features or not
SLOWER = 4  # a round scores one hypothesis of a list, and one more for as many scored before


class Bound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Expectation of a column of a language model's scores, and a bound on how much more it may be.

    `slopes` are nats by unit of each feature, `tokens` by token. `margin` is in units of the total;
    without it by `tolerance`, the share of the development set's lists that may get another winner.
    `scored` and `changed` are the shares of its hypotheses scored and of its winners changed;
    `expected` is that of lists of the same kind.
    """

    slopes: dict[str, Finite]
    tokens: Finite
    margin: Finite
    scored: Finite
    changed: Finite
    expected: Finite
    tolerance: Finite = 0.0


@dataclass(frozen=True)
class LazyScores:
    """Column (utterances, hypotheses), 0 where nothing was scored, and where something was."""

    values: np.ndarray
    scored: np.ndarray


def learn_bounds(
    nbests: Sequence[NBest], features: Features, columns: ScoreColumns, weights: Weights
) -> dict[str, dict]:
    """Learn the Bound of each of `columns`, on the lists that `weights` were tuned on."""
    return {
        name: msgspec.structs.asdict(learn_bound(nbests, features, columns, weights, name=name))
        for name in columns.values
    }


def learn_bound(
    nbests: Sequence[NBest], features: Features, columns: ScoreColumns, weights: Weights, name: str
) -> Bound:
    tokens = pad([columns.tokens[name].get(nbest.utt, ()) for nbest in nbests], features)
    known = features.select([other for other in weights.features if other != name])
    names, inputs = predictors(nbests, known, tokens)
    valid, column, weight = features.valid, features.column(name), weights.features[name]
    slopes = fit_slopes(inputs, column, valid)
    rest = combine([weights.features[other] for other in known.names], known.values)
    line, totals = rest + weight * combine(slopes, inputs), rest + weight * column
    needed = needed_margins(line, totals, valid)
    margin = max(0.0, float(np.nextafter(needed.max(), np.inf)))
    scored = score_lazily(
        rest, line, weight, valid, margin=margin, score=lambda rows, places: column[rows, places]
    ).scored
    chosen = np.where(scored, totals, -np.inf).max(1)
    changed = chosen < np.where(valid, totals, -np.inf).max(1)
    return Bound(
        dict(zip(names, slopes[:-1].tolist(), strict=True)),
        tokens=float(slopes[-1]),
        margin=margin,
        scored=float(scored.sum() / valid.sum()),
        changed=float(changed.mean()),
        expected=1 / (len(needed) + 1),
    )


def read_bound(weights: Weights, name: str, path) -> Bound:
    """Read the bound of the column `name` in `weights` of the file `path`; UserError without."""
    notes = weights.search.get(LAZY) or {}
    if name not in notes:
        raise UserError(
            f"{path}: no bound for {name!r}, without which nothing says when to stop; tune again"
            " with this version of lmtools, or score all hypotheses: --margin inf"
        )
    return fit(notes[name], Bound, f"{path}: the bound of {name!r}", remedy="tune again")


def expect(
    nbests: Sequence[NBest], known: Features, tokens: np.ndarray, bound: Bound, path
) -> np.ndarray:
    """Return the expected nats (utterances, hypotheses); UserError for other features."""
    names, inputs = predictors(nbests, known, tokens)
    if {*names} != {*bound.slopes}:
        raise UserError(
            f"{path}: its bound is of {', '.join(bound.slopes)}, not {', '.join(names)}; tune again"
        )
    return combine([*(bound.slopes[name] for name in names), bound.tokens], inputs)


def score_lazily(
    rest: np.ndarray,
    line: np.ndarray,
    weight: float,
    valid: np.ndarray,
    margin: float,
    score: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> LazyScores:
    """Score the hypotheses that have to be, in rounds over all open lists; return their column.
    `rest` are the other totals, `line` these with what is expected of the column of that `weight`,
    (utterances, hypotheses). `score` takes rows and places. Margin infinity: all.
    """
    order = np.argsort(np.where(valid, -line, np.inf), axis=1, kind="stable")
    counts, done = valid.sum(1), np.zeros(len(valid), int)
    values, scored = np.zeros(valid.shape), np.zeros(valid.shape, bool)
    best, surplus = np.full(len(valid), -np.inf), np.zeros(len(valid))
    rows = np.flatnonzero(counts > 0)
    while len(rows):
        steps = np.minimum(1 + done[rows] // SLOWER, counts[rows] - done[rows])
        which = np.repeat(rows, steps)
        ranks = np.concatenate(
            [np.arange(done[row], done[row] + step) for row, step in zip(rows, steps, strict=True)]
        )
        places = order[which, ranks]
        values[which, places] = score(which, places)
        scored[which, places] = True
        totals = rest[which, places] + weight * values[which, places]
        np.maximum.at(best, which, totals)
        np.add.at(surplus, which, totals - line[which, places])
        done[rows] += steps
        rows = rows[done[rows] < counts[rows]]
        ahead = best[rows] - line[rows, order[rows, done[rows]]] - surplus[rows] / done[rows]
        rows = rows[ahead < margin]
    return LazyScores(values, scored)


def needed_margins(line: np.ndarray, totals: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return by how much each list (utterances,) is ahead while another wins; -inf if none does."""
    order = np.argsort(np.where(valid, -line, np.inf), axis=1, kind="stable")
    exists = np.take_along_axis(valid, order, 1)
    line = np.where(exists, np.take_along_axis(line, order, 1), 0.0)
    totals = np.where(exists, np.take_along_axis(totals, order, 1), 0.0)
    surplus = (totals - line).cumsum(1) / np.arange(1, line.shape[1] + 1)
    best = np.maximum.accumulate(np.where(exists, totals, -np.inf), axis=1)
    ahead = best[:, :-1] - line[:, 1:] - surplus[:, :-1]
    open_ = exists[:, 1:] & (best[:, :-1] < best[:, -1:])
    return np.where(open_, ahead, -np.inf).max(1, initial=-np.inf)


def fit_slopes(inputs: np.ndarray, column: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Fit the least-squares slopes (inputs,) of the column on `inputs`, each list less its mean."""
    centred = np.stack([centre(row, valid)[valid] for row in inputs], 1)
    scale = centred.std(0)
    scale[scale == 0] = 1.0
    return np.linalg.lstsq(centred / scale, centre(column, valid)[valid], rcond=1e-6)[0] / scale


def centre(column: np.ndarray, valid: np.ndarray) -> np.ndarray:
    mean = np.where(valid, column, 0).sum(1) / np.maximum(valid.sum(1), 1)
    return column - mean[:, None]


def predictors(
    nbests: Sequence[NBest], known: Features, tokens: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Return the names of known quantities of hypotheses, and their values, the tokens last."""
    lengths = [name for name in TEXT if name not in known.names]
    values = [pad(measure_lengths(nbests, name), known) for name in lengths]
    return [*known.names, *lengths], np.stack([*known.values, *values, tokens])


def pad(lists: Sequence[Sequence[float]], features: Features) -> np.ndarray:
    """Pad values of lists as features are (utterances, hypotheses), with 0 at each list's end."""
    padded = np.zeros(features.valid.shape)
    for row, values in zip(padded, lists, strict=True):
        row[: len(values)] = values
    return padded
