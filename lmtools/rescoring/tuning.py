"""Tuning: from features and references of a development set to weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmtools.base.doors import open_door
from lmtools.base.errors import UserError
from lmtools.evaluate.fit import are_costs, are_positive, grow_down, is_indicator
from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.nbest import fill_empty, nbest_statistics
from lmtools.formats.kaldi_text import list_speakers
from lmtools.formats.scores import hash_lists
from lmtools.rescoring.expected import RIDGE, minimise_expected, sharpen
from lmtools.rescoring.features import NEAR, Features, best, combine, deviate, own_hypotheses
from lmtools.rescoring.folds import Fold, Folds, assign_folds
from lmtools.rescoring.margins import find_margin
from lmtools.rescoring.search import SearchSpace, flat_region, search, sweep
from lmtools.rescoring.tuning_options import (
    EXACT,
    EXPECTED,
    INTERPOLATION,
    TuningOptions,
    check_fit,
)
from lmtools.rescoring.weights import Dev, Weights
from lmtools.types import PHRASES, NBest

FLAT = 0.1  # absolute: scales within this of the best metric are as good for all one knows
# times that a feature's part of the totals is the reference's: on ten real sets 10 at most, 80
# and more where the references were of other utterances
RUNAWAY = 40.0
NOTHING = 1e-12  # of the largest part: what a bounded search leaves of a weight that is 0
POINTS = 400  # at most, of a stored curve


def loss_of(metric: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function to minimise of summed statistics (..., width)."""
    measure = METRICS[metric]
    return measure.score if measure.lower_is_better else lambda totals: -measure.score(totals)


def spread(column: np.ndarray, valid: np.ndarray) -> float:
    """Return a column's standard deviation inside lists, pooled; 0 where none varies."""
    deviations, varies = deviate(column, valid)
    return float(np.sqrt((deviations**2).sum() / valid.sum())) if varies.any() else 0.0


def scale_curve(
    name: str,
    features: Features,
    weights: Mapping[str, float],
    statistics: np.ndarray,
    options: TuningOptions,
) -> dict:
    """Return the metric over the scale of feature `name`, and its flat region: see Weights."""
    rest = combine(
        [0.0 if other == name else weight for other, weight in weights.items()], features.values
    )
    curve = sweep(rest, features.column(name), features.valid, statistics)
    low = 0.0 if options.at_least_0(name) else -np.inf
    losses = loss_of(options.metric)(curve.totals)
    flat = flat_region(curve, losses, weights[name], tolerance=FLAT, low=low)
    high = 1.5 * flat[1] if np.isfinite(flat[1]) else 3 * weights[name]
    own, others = (spread(each, features.valid) for each in (features.column(name), rest))
    high = max(high, 3 * weights[name]) or others / (own or 1.0) or 1.0
    begin = min(0.0, 3 * weights[name], 1.5 * max(flat[0], -high))
    scales = sample(curve.edges, begin, high, weights[name])
    metric = np.abs(losses[np.searchsorted(curve.edges, scales, side="right") - 1])
    points, ends = np.stack([scales, metric], axis=1), np.clip(flat, begin, high)
    chosen = weights[name]
    if options.form == INTERPOLATION:
        points[:, 0] = points[:, 0] / (1 + points[:, 0])
        ends = ends / (1 + ends)
        chosen = chosen / (1 + chosen)
    return {"chosen": chosen, "flat": ends.tolist(), "points": points.tolist()} | {
        "part": own / (others or 1.0)
    }


def sample(edges: np.ndarray, low: float, high: float, at: float) -> np.ndarray:
    """Return scales from `low` to `high`: edges or POINTS even steps, and `at`."""
    inside = edges[(edges > low) & (edges < high)]
    if len(inside) > POINTS:
        inside = np.linspace(low, high, POINTS)
    return np.unique(np.concatenate([[low, at, high], inside]))


@dataclass(frozen=True)
class DevSet:
    """Development set beside its features: the metric's statistics (U, K, width), the set's hash,
    where it was read from, and what phrases bring and harm (U, K, 3), as `measure_harm` counts.
    """

    statistics: np.ndarray
    sha256: str
    path: str
    harm: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> "DevSet":
        """Return some of the utterances, by their places, as far as tuning looks at them."""
        harm = None if self.harm is None else self.harm[rows]
        return replace(self, statistics=self.statistics[rows], harm=harm)


def measure_lists(nbests: Sequence[NBest], metric: str, path) -> DevSet:
    """Measure a development set by a metric; UserError about `path` for missing references."""
    return DevSet(padded_statistics(nbests, metric, path), hash_lists(nbests), str(path))


def tune(nbests: Sequence[NBest], features: Features, path, options: TuningOptions) -> Weights:
    """Tune weights of `features` for the best metric of the choice over all of `nbests`; UserError
    about `path` without references or with unfit options.
    """
    check_fit(features, options, path)
    return tune_features(features, measure_lists(nbests, options.metric, path), options)


def tune_features(features: Features, dev_set: DevSet, options: TuningOptions) -> Weights:
    """Tune weights on lists that are measured already, as several systems share them."""
    check_fit(features, options, dev_set.path)
    statistics = dev_set.statistics
    weights, notes = weights_with_phrases(features, dev_set, options)
    chosen = best(combine(weights.values(), features.values), features.valid)
    dev = Dev(
        dev_set.path,
        dev_set.sha256,
        len(statistics),
        *before_and_after(statistics, chosen, options.metric),
    )
    own = own_hypotheses(features)
    parts = {
        name: abs(weight) * spread(own.column(name), own.valid) for name, weight in weights.items()
    }
    given = {"form": options.form, "objective": options.objective}
    given |= doubts_of(own, weights, parts, statistics, options=options)
    if options.rescales(features) and "runaway" in given:
        given["unit"] = max(parts, key=parts.__getitem__)
        weights = divide_weights(weights, parts, given["unit"])
    curves = {
        name: scale_curve(name, features, weights, statistics, options=options)
        for name in options.free(features)
        if name in options.lms
    }
    notes = given | {"fixed": dict(options.fix or {})} | notes | {"curves": curves}
    if options.objective == EXPECTED:
        capped = before_and_after(METRICS[options.metric].cap(statistics), chosen, options.metric)
        if capped != (dev.first_pass, dev.score):
            notes["capped"] = dict(zip(("first_pass", options.metric), capped, strict=True))
    if options.form == INTERPOLATION:
        (lm,) = options.free(features)
        part = weights[lm] / (1 + weights[lm])
        notes["lambda"] = part
        weights = {
            name: part if name == lm else weight * (1 - part) for name, weight in weights.items()
        }
    reference = options.reference_of(features)
    return Weights(options.metric, weights, reference, dev=dev, search=notes)


def divide_weights(
    weights: Mapping[str, float], parts: Mapping[str, float], unit: str
) -> dict[str, float]:
    """Return the weights where that of `unit` is 1 or -1, and those 0 of which NOTHING counts."""
    counts = {name: part > NOTHING * parts[unit] for name, part in parts.items()}
    return {name: w / abs(weights[unit]) if counts[name] else 0.0 for name, w in weights.items()}


def doubts_of(
    features: Features,
    weights: Mapping[str, float],
    parts: Mapping[str, float],
    statistics: np.ndarray,
    options: TuningOptions,
) -> dict:
    """Return notes on weights that cannot be meant, for `describe_doubts`; none of sound ones.
    `parts`: how much the totals spread by each feature.
    """
    # of other features a cost gets its negative weight by itself
    bound = [options.reference_of(features), *filter(options.at_least_0, features.names)]
    names = [name for name in dict.fromkeys(bound) if weights[name] >= 0]
    notes = {
        "costs": find_costs(features, names, statistics, options.metric),
        "runaway": find_runaway(features, parts, options.reference_of(features)),
    }
    return {name: note for name, note in notes.items() if note}


def find_costs(
    features: Features, names: list[str], statistics: np.ndarray, metric: str
) -> list[str]:
    """Find those of the positive features `names` of which the lowest is best."""
    columns = {name: features.column(name) for name in names}
    columns = {n: column for n, column in columns.items() if are_positive(column[features.valid])}
    if not columns:
        return []
    gains, costs = METRICS[metric].gain(statistics), []
    for name, column in columns.items():
        lower_is_better = are_costs(column, features.valid, gains)
        if lower_is_better or (lower_is_better is None and grow_down(column, features.valid)):
            costs.append(name)
    return costs


def find_runaway(
    features: Features, parts: Mapping[str, float], reference: str
) -> dict[str, float]:
    """Find the features whose part of the totals outweighs the reference by RUNAWAY."""
    if any(is_indicator(features.column(name)[features.valid]) for name in features.names):
        return {}
    due = parts[reference]
    return {name: part / due for name, part in parts.items() if part > RUNAWAY * due > 0}


def before_and_after(
    statistics: np.ndarray, chosen: np.ndarray, metric: str
) -> tuple[float, float]:
    """Return the metric of the first hypotheses and of the chosen ones (utterances,)."""
    score = METRICS[metric].score
    after = statistics[np.arange(len(chosen)), chosen].sum(0)
    return float(score(statistics[:, 0].sum(0))), float(score(after))


def padded_statistics(nbests: Sequence[NBest], metric: str, path) -> np.ndarray:
    """Return statistics of every hypothesis (U, K, width); an empty list has an empty one."""
    try:
        rows = nbest_statistics([fill_empty(nbest) for nbest in nbests], metric)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    padded = np.zeros((len(rows), max(map(len, rows)), rows[0].shape[1]), rows[0].dtype)
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return padded


def weights_of(
    features: Features, statistics: np.ndarray, options: TuningOptions
) -> tuple[dict[str, float], dict]:
    """Return each feature's weight, in their order and units, and notes on the search, which sees
    columns of unit spread.
    """
    base = options.base(features)
    first = combine([base.get(name, 0.0) for name in features.names], features.values)
    names = [
        name for name in options.free(features) if spread(features.column(name), features.valid)
    ]
    columns = np.stack([first, *(features.column(name) for name in names)])
    scales = np.array([spread(column, features.valid) or 1.0 for column in columns])
    nonnegative = np.array([options.at_least_0(name) for name in names], dtype=bool)
    space = SearchSpace(
        columns / scales[:, None, None],
        features.valid,
        statistics,
        loss=loss_of(options.metric),
        nonnegative=nonnegative,
    )
    if options.objective == EXACT:
        solution = search(space, options.seed)
        notes = {"seed": options.seed}
    else:
        capped = replace(space, statistics=METRICS[options.metric].cap(statistics))
        solution, least = minimise_expected(capped)
        solution, sharpened = sharpen(capped, solution, options.seed)
        notes = {"ridge": RIDGE, "expected": abs(least), "sharpened": sharpened}
    free = dict(zip(names, map(float, (solution * scales[0] / scales)[1:]), strict=True))
    return {name: base.get(name, free.get(name, 0.0)) for name in features.names}, notes


def weights_with_phrases(
    features: Features, dev_set: DevSet, options: TuningOptions
) -> tuple[dict[str, float], dict]:
    """Return what `weights_of` does for a set without a glossary; with one the weights of all else
    are those without it, and `bound_weights` gives that of PHRASES, and of NEAR where it is free.
    """
    if dev_set.harm is None or PHRASES not in options.free(features):
        return weights_with_new(features, dev_set.statistics, options)
    own = own_hypotheses(features)
    fixed = replace(options, fix={**(options.fix or {}), PHRASES: 0.0})
    weights, notes = weights_of(own, dev_set.statistics, fixed)
    rest = combine(weights.values(), features.values)
    searched = features
    if NEAR in options.base(features):
        searched = features.select([name for name in features.names if name != NEAR])
    bound_weights = open_door("phrases", "harm:bound_weights", PHRASES)
    note = bound_weights(rest, searched, dev_set.harm)
    found = {PHRASES: note["weight"]} | ({NEAR: note["margin"]} if "margin" in note else {})
    return {**weights, **found}, {**notes, PHRASES: note}


def weights_with_new(
    features: Features, statistics: np.ndarray, options: TuningOptions
) -> tuple[dict[str, float], dict]:
    """Return what `weights_of` does for own hypotheses, and the margin of new ones, if any."""
    if NEAR not in options.free(features):
        return weights_of(features, statistics, options)
    fixed = replace(options, fix={**(options.fix or {}), NEAR: 0.0})
    weights, notes = weights_of(own_hypotheses(features), statistics, fixed)
    rest = combine(weights.values(), features.values)
    note = find_margin(rest, features, METRICS[options.metric].gain(statistics))
    return {**weights, NEAR: note["margin"]}, {**notes, NEAR: note}


class Crossing:
    """Folds of a set of lists read from `path`, for options that have some: see `assign_folds`."""

    def __init__(
        self,
        nbests: Sequence[NBest],
        options: TuningOptions,
        speakers: Mapping[str, str] | None,
        path,
    ):
        plan = options.fold_plan
        utterances = [nbest.utt for nbest in nbests]
        self.by, self.places = plan.by, {utt: place for place, utt in enumerate(utterances)}
        speakers = list_speakers(nbests) if speakers is None else speakers
        self.utterances = assign_folds(utterances, plan, options.seed, speakers=speakers, path=path)

    def tune(self, features: Features, dev_set: DevSet, options: TuningOptions) -> Weights:
        """Tune as `tune_features` does, and add the weights of each fold."""
        whole = tune_features(features, dev_set, options)
        statistics, everyone = dev_set.statistics, np.arange(len(dev_set.statistics))
        chosen, parts = np.zeros(len(everyone), int), []
        for name, utterances in self.utterances.items():
            rows = np.array([self.places[utt] for utt in utterances])
            rest = np.delete(everyone, rows)
            tuned = tune_features(features.take(rest), dev_set.take(rest), options).features
            held_out = features.take(rows)
            chosen[rows] = best(combine(tuned.values(), held_out.values), held_out.valid)
            parts.append(Fold(name, utterances, tuned))
        score = float(METRICS[options.metric].score(statistics[everyone, chosen].sum(0)))
        return replace(whole, folds=Folds(self.by, score, tuple(parts)))
