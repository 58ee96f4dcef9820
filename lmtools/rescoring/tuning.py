"""Tuning: from features and references of a development set to weights."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmtools.errors import UserError
from lmtools.evaluate import METRICS, fill_empty, nbest_statistics
from lmtools.rescoring.doubts import find_costs, find_runaway
from lmtools.rescoring.envelope import flat_region, sweep
from lmtools.rescoring.expected import RIDGE, minimise_expected, sharpen
from lmtools.rescoring.features import LOOP, REFERENCES, Features, best, combine, set_hash
from lmtools.rescoring.search import SearchSpace, search
from lmtools.rescoring.weights import Dev, Weights
from lmtools.types import NBest

FORMS = LINEAR, INTERPOLATION = ("linear", "interpolation")
OBJECTIVES = EXPECTED, EXACT = ("expected", "exact")
FLAT = 0.1  # absolute: scales within this of the best metric are as good for all one knows
POINTS = 400  # at most, of a stored curve


@dataclass(frozen=True)
class TuningOptions:
    """Options of tuning: `fixed` weights, `lms` the names of language-model columns, `reference`
    the feature that others scale against.

    The reference's weight is 1 or the one fixed; by default it is the first of REFERENCES that is
    there, else the lists' first score, and where that is fixed at 0 the next feature, language
    models first.

    Form "interpolation" is (1 - lambda) first pass + lambda LM (Shin et al. 2020) for one LM and no
    other free feature; the first pass is the reference and what is fixed, with these weights. A
    language model's weight is at least 0 unless `negative` or, in the linear form, among `signed`:
    below it a set of this size was learnt by heart. That of LOOP is always.

    Objective "expected" minimises the metric that the lists expect, with no more errors of a
    hypothesis than its reference is long (`minimise_expected`, `sharpen`, `METRICS[metric].cap`);
    "exact" that of the chosen hypotheses as it is (`search`).
    """

    metric: str = "wer"
    seed: int = 0
    fixed: Mapping[str, float] | None = None
    lms: Collection[str] = ()
    form: str = LINEAR
    negative: bool = False
    reference: str | None = None
    objective: str = EXPECTED
    signed: Collection[str] = ()

    def at_least_0(self, name: str) -> bool:
        """Return whether the weight of a feature may not be negative."""
        signed = self.negative or (name in self.signed and self.form == LINEAR)
        return name == LOOP or (name in self.lms and not signed)

    def reference_of(self, features: Features) -> str:
        """Return the feature that the weights of others are relative to; UserError where all are
        fixed at 0.
        """
        order = (
            [self.reference]
            if self.reference
            else [*REFERENCES, features.names[0], *self.lms, *features.names]
        )
        for name in order:
            if name in features.names and (self.fixed or {}).get(name) != 0:
                return name
        raise UserError(
            "--fix: 0 for the reference leaves nothing that others scale against; give another"
            " --reference or other weights"
        )

    def free(self, features: Features) -> list[str]:
        """Return the features whose weights are searched."""
        return [name for name in features.names if name not in self.base(features)]

    def base(self, features: Features) -> dict[str, float]:
        """Return the weights that are given: the reference's and the fixed ones."""
        return {self.reference_of(features): 1.0, **(self.fixed or {})}


@dataclass(frozen=True)
class DevSet:
    """Development set beside its features: the metric's statistics (U, K, width), the set's hash,
    and where it was read from.
    """

    statistics: np.ndarray
    sha256: str
    path: str


def measure_lists(nbests: Sequence[NBest], metric: str, path) -> DevSet:
    """Measure a development set by a metric; UserError about `path` for missing references."""
    return DevSet(padded_statistics(nbests, metric, path), set_hash(nbests), str(path))


def tune(nbests: Sequence[NBest], features: Features, path, options: TuningOptions) -> Weights:
    """Tune the weights of `features` so that the metric of the chosen hypotheses is best over all
    of `nbests`.

    UserError about `path` for missing references, and about options that do not fit the features.
    """
    check(features, options, path)
    return tune_features(features, measure_lists(nbests, options.metric, path), options)


def tune_features(features: Features, dev_set: DevSet, options: TuningOptions) -> Weights:
    """Tune weights on lists that are measured already, as several systems share them."""
    check(features, options, dev_set.path)
    statistics, loss = dev_set.statistics, loss_of(options.metric)
    found, notes = weights_of(features, statistics, loss, options)
    chosen = best(combine(found.values(), features.values), features.valid)
    dev = Dev(
        dev_set.path,
        dev_set.sha256,
        len(statistics),
        *before_and_after(statistics, chosen, options.metric),
    )
    curves = {
        name: scale_curve(name, features, found, statistics, loss, options)
        for name in options.free(features)
        if name in options.lms
    }
    given = {"form": options.form, "objective": options.objective}
    doubts = doubts_of(features, found, statistics, options)
    notes = given | doubts | {"fixed": dict(options.fixed or {})} | notes | {"curves": curves}
    if options.objective == EXPECTED:
        capped = before_and_after(METRICS[options.metric].cap(statistics), chosen, options.metric)
        if capped != (dev.first_pass, dev.score):
            notes["capped"] = dict(zip(("first_pass", options.metric), capped, strict=True))
    if options.form == INTERPOLATION:
        (lm,) = options.free(features)
        part = found[lm] / (1 + found[lm])
        notes["lambda"] = part
        found = {
            name: part if name == lm else weight * (1 - part) for name, weight in found.items()
        }
    return Weights(options.metric, found, options.reference_of(features), dev, notes)


def doubts_of(
    features: Features, found: Mapping[str, float], statistics: np.ndarray, options: TuningOptions
) -> dict:
    """Notes on weights that cannot be meant, for `describe_doubts`; none of sound ones."""
    # of other features a cost gets its negative weight by itself
    bound = [options.reference_of(features), *filter(options.at_least_0, features.names)]
    names = [name for name in dict.fromkeys(bound) if found[name] >= 0]
    parts = {
        name: abs(weight) * spread(features.column(name), features.valid)
        for name, weight in found.items()
    }
    notes = {
        "costs": find_costs(features, names, statistics, options.metric),
        "runaway": find_runaway(parts, options.reference_of(features)),
    }
    return {name: note for name, note in notes.items() if note}


def before_and_after(
    statistics: np.ndarray, chosen: np.ndarray, metric: str
) -> tuple[float, float]:
    """Return the metric of the first hypotheses and of the chosen ones (utterances,)."""
    score = METRICS[metric].score
    after = statistics[np.arange(len(chosen)), chosen].sum(0)
    return float(score(statistics[:, 0].sum(0))), float(score(after))


def check(features: Features, options: TuningOptions, path) -> None:
    """Raise UserError where the options do not fit the features."""
    for option, names in (
        ("--fix", options.fixed or ()),
        ("--reference", filter(None, [options.reference])),
    ):
        for name in names:
            if name not in features.names:
                raise UserError(
                    f"{option} {name}: {path} has no such feature; it has"
                    f" {', '.join(features.names)}"
                )
    free = options.free(features)
    if options.form == INTERPOLATION and (len(free) != 1 or free[0] not in options.lms):
        others = [name for name in free if name not in options.lms] or list(options.lms)
        raise UserError(
            "--form interpolation: one language model goes with the first pass, but"
            f" {', '.join(others) or 'no column'} would be tuned too; give one --scores,"
            " --no-words, and --fix the first pass's other scores"
        )


def check_signed(features: Features, options: TuningOptions, path) -> None:
    """Raise UserError for signed features that are absent, have a weight, or are LOOP."""
    for name in options.signed:
        option = f"--negative {name}"
        if name not in features.names:
            raise UserError(
                f"{option}: {path} has no such feature; it has {', '.join(features.names)}"
            )
        if name in options.base(features):
            raise UserError(f"{option}: its weight is given, not tuned; leave --negative out")
        if name == LOOP:
            raise UserError(f"{option}: below 0 it would reward loops; leave it out")
        if options.form == INTERPOLATION:
            raise UserError(f"{option}: lambda is from 0 to 1; tune the linear form")


def padded_statistics(nbests: Sequence[NBest], metric: str, path) -> np.ndarray:
    """Return the metric's statistics of every hypothesis (U, K, width); an empty list counts as one
    empty hypothesis.
    """
    try:
        rows = nbest_statistics([fill_empty(nbest) for nbest in nbests], metric)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    padded = np.zeros((len(rows), max(map(len, rows)), rows[0].shape[1]), rows[0].dtype)
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return padded


def loss_of(metric: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function to minimise of summed statistics (..., width): the metric, or minus it
    where more is better.
    """
    measure = METRICS[metric]
    return measure.score if measure.lower_is_better else lambda totals: -measure.score(totals)


def weights_of(
    features: Features, statistics: np.ndarray, loss, options: TuningOptions
) -> tuple[dict[str, float], dict]:
    """Return the weight of each feature, in the features' order and units, and notes on the search.

    It sees one column for the given part and one for each free feature that varies inside lists,
    all of unit spread.
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
        columns / scales[:, None, None], features.valid, statistics, loss, nonnegative
    )
    if options.objective == EXACT:
        found = search(space, options.seed)
        notes = {"seed": options.seed}
    else:
        capped = replace(space, statistics=METRICS[options.metric].cap(statistics))
        found, least = minimise_expected(capped)
        found, sharpened = sharpen(capped, found, options.seed)
        notes = {"ridge": RIDGE, "expected": abs(least), "sharpened": sharpened}
    free = dict(zip(names, map(float, (found * scales[0] / scales)[1:]), strict=True))
    return {name: base.get(name, free.get(name, 0.0)) for name in features.names}, notes


def spread(column: np.ndarray, valid: np.ndarray) -> float:
    """Return the standard deviation of a column inside its lists, pooled; 0 where no list has two
    different values.
    """
    means = column.sum(1, where=valid) / valid.sum(1)
    deviations = np.where(valid, column - means[:, None], 0)
    varies = np.ptp(np.where(valid, column, column[:, :1]), axis=1).any()
    return float(np.sqrt((deviations**2).sum() / valid.sum())) if varies else 0.0


def scale_curve(
    name: str,
    features: Features,
    found: Mapping[str, float],
    statistics: np.ndarray,
    loss,
    options: TuningOptions,
) -> dict:
    """Return the metric over the scale of feature `name`, other weights as found, with its flat
    region: see Weights.
    """
    rest = combine(
        [0.0 if other == name else weight for other, weight in found.items()], features.values
    )
    curve = sweep(rest, features.column(name), features.valid, statistics)
    low = 0.0 if options.at_least_0(name) else -np.inf
    losses = loss(curve.totals)
    flat = flat_region(curve, losses, found[name], FLAT, low)
    high = 1.5 * flat[1] if np.isfinite(flat[1]) else 3 * found[name]
    high = (
        max(high, 3 * found[name])
        or spread(rest, features.valid) / (spread(features.column(name), features.valid) or 1.0)
        or 1.0
    )
    begin = min(0.0, 3 * found[name], 1.5 * max(flat[0], -high))
    scales = sample(curve.edges, begin, high, found[name])
    metric = np.abs(losses[np.searchsorted(curve.edges, scales, side="right") - 1])
    points, ends = np.stack([scales, metric], axis=1), np.clip(flat, begin, high)
    chosen = found[name]
    if options.form == INTERPOLATION:
        points[:, 0] = points[:, 0] / (1 + points[:, 0])
        ends = ends / (1 + ends)
        chosen = chosen / (1 + chosen)
    return {"chosen": chosen, "flat": ends.tolist(), "points": points.tolist()}


def sample(edges: np.ndarray, low: float, high: float, at: float) -> np.ndarray:
    """Scales from `low` to `high`: every edge between them, or POINTS even steps where there are
    more edges; `at` is always one.
    """
    inside = edges[(edges > low) & (edges < high)]
    if len(inside) > POINTS:
        inside = np.linspace(low, high, POINTS)
    return np.unique(np.concatenate([[low, at, high], inside]))
