"""Tuning: from features and references of a development set to weights."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmtools.base.arguments import check_text
from lmtools.base.errors import UserError
from lmtools.base.options import check_options, option
from lmtools.evaluate import METRICS, fill_empty, nbest_statistics
from lmtools.evaluate.metrics import METRIC_HELP, find_metric
from lmtools.rescoring.doubts import find_costs, find_runaway
from lmtools.rescoring.envelope import flat_region, sweep
from lmtools.rescoring.expected import RIDGE, minimise_expected, sharpen
from lmtools.rescoring.features import (
    LENGTHS,
    LOOP,
    PHRASES,
    REFERENCES,
    Features,
    best,
    combine,
    deviate,
    set_hash,
)
from lmtools.rescoring.folds import FoldPlan, parse_folds
from lmtools.rescoring.phrases import bound_weight
from lmtools.rescoring.search import SearchSpace, search
from lmtools.rescoring.weights import Dev, Weights
from lmtools.types import NBest

FORMS = LINEAR, INTERPOLATION = ("linear", "interpolation")
OBJECTIVES = EXPECTED, EXACT = ("expected", "exact")
FLAT = 0.1  # absolute: scales within this of the best metric are as good for all one knows
POINTS = 400  # at most, of a stored curve


@dataclass(frozen=True)
class TuningOptions:
    """Options of tuning; `lms` are the names of language-model columns.

    The reference's weight is 1 or the one given by `fix`; by default it is the first of REFERENCES
    that is there, else the lists' first score, and where that is fixed at 0 the next feature,
    language models first.

    Form "interpolation" is (1 - lambda) first pass + lambda LM (Shin et al. 2020) for one LM and no
    other free feature; the first pass is the reference and what is fixed, with these weights. A
    language model's weight is at least 0 with neither `allow_negative` nor, in the linear form, its
    name among `negative`: below it a set of this size was learnt by heart. That of LOOP is always.

    Objective "expected" minimises the metric that the lists expect, with no more errors of a
    hypothesis than its reference is long (`minimise_expected`, `sharpen`, `METRICS[metric].cap`);
    "exact" that of the chosen hypotheses as it is (`search`).
    """

    metric: str = option("wer", f"what is tuned, over the whole set: {METRIC_HELP}")
    objective: str = option(
        EXPECTED,
        "expected: the metric that the lists expect, where no hypothesis has more errors than its"
        " reference has words, so that one bad utterance cannot spoil the weights; exact: the"
        " metric of the chosen hypotheses, searched line by line",
        choices=OBJECTIVES,
    )
    form: str = option(
        LINEAR,
        "interpolation: (1 - lambda) first pass + lambda LM, no lengths; the first pass is the"
        " feature of weight 1, or what --fix says, as in --fix am=0.1 lm=1",
        choices=FORMS,
    )
    lengths: list[str] | None = option(
        None,
        "lengths of the hypothesis that are features, with commas between them: words (the word"
        " insertion bonus), characters, log-words: log(1 + words); empty for none (default: words"
        " in the linear form)",
        choices=LENGTHS,
    )
    loop: bool = option(
        False,
        "`loop` is a feature, too: minus the words said in a loop (a poor poor poor poor: -2), with"
        " a weight of at least 0",
    )
    fix: dict[str, float] | None = option(None, "give a weight, do not tune it", metavar="NAME=W")
    reference: str | None = option(
        None,
        "the feature with weight 1 that others scale against; rank, the order of the lists, is one"
        " if it is named here",
    )
    negative: list[str] | None = option(
        None,
        "features that may have negative weights: a language model that is subtracted (density"
        " ratio, LODR), or a cost",
    )
    allow_negative: bool = option(False, "let language models have negative weights")
    folds: int | str | None = option(
        None,
        "cross-validation: also weights tuned without each of N folds at random, without each"
        " speaker (speaker), or without each of N groups of speakers (speaker:N); lmtools rescore"
        " then chooses for each utterance by weights that did not see it",
        metavar="N|speaker",
    )
    tolerance: float = option(
        0.0,
        "of the bound that `lmtools rescore --lm` stops by: the share of these lists that may get"
        " another choice",
        least=0,
    )
    seed: int = option(0, "of random folds and of the exact search's starts", least=0)
    false_alarms: int = option(
        0,
        "with --phrases: how many more false phrases than without phrases the weight of `phrases`"
        " may choose on these lists",
        least=0,
    )
    lms: Collection[str] = ()

    def __post_init__(self):
        object.__setattr__(self, "metric", find_metric(check_text(self.metric, "metric"))[0])
        check_options(self)
        if self.tolerance > 1:
            raise UserError(f"tolerance: {self.tolerance} is no share; give a number from 0 to 1")
        try:
            _ = self.fold_plan
        except ValueError as error:
            raise UserError(f"folds: {error}; write for instance folds: speaker") from None

    @property
    def fold_plan(self) -> FoldPlan | None:
        """Return the division of utterances into folds; None for no cross-validation."""
        return None if self.folds is None else parse_folds(str(self.folds))

    @property
    def features(self) -> list[str]:
        """Return the names of the features of texts: lengths and LOOP."""
        lengths = self.lengths
        if lengths is None:
            lengths = ["words"] if self.form == LINEAR else []
        return [*lengths, *[LOOP] * self.loop]

    def at_least_0(self, name: str) -> bool:
        """Return whether the weight of a feature may not be negative."""
        signed = self.allow_negative or (name in (self.negative or ()) and self.form == LINEAR)
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
            if name in features.names and (self.fix or {}).get(name) != 0:
                return name
        raise UserError(
            "--fix: 0 for the reference leaves nothing that others scale against; give another"
            " reference or other weights"
        )

    def free(self, features: Features) -> list[str]:
        """Return the features whose weights are searched."""
        return [name for name in features.names if name not in self.base(features)]

    def base(self, features: Features) -> dict[str, float]:
        """Return the weights that are given: the reference's and the fixed ones."""
        return {self.reference_of(features): 1.0, **(self.fix or {})}


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
    statistics = dev_set.statistics
    weights, notes = weights_with_phrases(features, dev_set, options)
    chosen = best(combine(weights.values(), features.values), features.valid)
    dev = Dev(
        dev_set.path,
        dev_set.sha256,
        len(statistics),
        *before_and_after(statistics, chosen, options.metric),
    )
    curves = {
        name: scale_curve(name, features, weights, statistics, options=options)
        for name in options.free(features)
        if name in options.lms
    }
    given = {"form": options.form, "objective": options.objective}
    doubts = doubts_of(features, weights, statistics, options)
    notes = given | doubts | {"fixed": dict(options.fix or {})} | notes | {"curves": curves}
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


def doubts_of(
    features: Features, weights: Mapping[str, float], statistics: np.ndarray, options: TuningOptions
) -> dict:
    """Return notes on weights that cannot be meant, for `describe_doubts`; none of sound ones."""
    # of other features a cost gets its negative weight by itself
    bound = [options.reference_of(features), *filter(options.at_least_0, features.names)]
    names = [name for name in dict.fromkeys(bound) if weights[name] >= 0]
    parts = {
        name: abs(weight) * spread(features.column(name), features.valid)
        for name, weight in weights.items()
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
    for named, names in (
        ("--fix", options.fix or ()),
        ("reference", filter(None, [options.reference])),
    ):
        for name in names:
            if name not in features.names:
                raise UserError(
                    f"{named} {name}: {path} has no such feature; it has"
                    f" {', '.join(features.names)}"
                )
    free = options.free(features)
    if options.form == INTERPOLATION and (len(free) != 1 or free[0] not in options.lms):
        others = [name for name in free if name not in options.lms] or list(options.lms)
        raise UserError(
            "form interpolation: one language model goes with the first pass, but"
            f" {', '.join(others) or 'no column'} would be tuned too; give one --scores,"
            " lengths= (none), and --fix the first pass's other scores"
        )


def check_negative(features: Features, options: TuningOptions, path) -> None:
    """Raise UserError for `negative` features that are absent, have a weight, or are LOOP."""
    for name in options.negative or ():
        given = f"negative={name}"
        if name not in features.names:
            raise UserError(
                f"{given}: {path} has no such feature; it has {', '.join(features.names)}"
            )
        if name in options.base(features):
            raise UserError(f"{given}: its weight is given, not tuned; leave it out")
        if name == LOOP:
            raise UserError(f"{given}: below 0 it would reward loops; leave it out")
        if options.form == INTERPOLATION:
            raise UserError(f"{given}: lambda is from 0 to 1; tune the linear form")


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
    features: Features, statistics: np.ndarray, options: TuningOptions
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
    are those without it, and `bound_weight` gives that of PHRASES.
    """
    if dev_set.harm is None or PHRASES not in options.free(features):
        return weights_of(features, dev_set.statistics, options)
    fixed = replace(options, fix={**(options.fix or {}), PHRASES: 0.0})
    weights, notes = weights_of(features, dev_set.statistics, fixed)
    rest = combine(weights.values(), features.values)
    note = bound_weight(rest, features, dev_set.harm, options.false_alarms)
    return {**weights, PHRASES: note["weight"]}, {**notes, PHRASES: note}


def spread(column: np.ndarray, valid: np.ndarray) -> float:
    """Return the standard deviation of a column inside its lists, pooled; 0 where no list has two
    different values.
    """
    deviations, varies = deviate(column, valid)
    return float(np.sqrt((deviations**2).sum() / valid.sum())) if varies.any() else 0.0


def scale_curve(
    name: str,
    features: Features,
    weights: Mapping[str, float],
    statistics: np.ndarray,
    options: TuningOptions,
) -> dict:
    """Return the metric over the scale of feature `name`, other weights as tuned, with its flat
    region: see Weights.
    """
    rest = combine(
        [0.0 if other == name else weight for other, weight in weights.items()], features.values
    )
    curve = sweep(rest, features.column(name), features.valid, statistics)
    low = 0.0 if options.at_least_0(name) else -np.inf
    losses = loss_of(options.metric)(curve.totals)
    flat = flat_region(curve, losses, weights[name], tolerance=FLAT, low=low)
    high = 1.5 * flat[1] if np.isfinite(flat[1]) else 3 * weights[name]
    high = (
        max(high, 3 * weights[name])
        or spread(rest, features.valid) / (spread(features.column(name), features.valid) or 1.0)
        or 1.0
    )
    begin = min(0.0, 3 * weights[name], 1.5 * max(flat[0], -high))
    scales = sample(curve.edges, begin, high, weights[name])
    metric = np.abs(losses[np.searchsorted(curve.edges, scales, side="right") - 1])
    points, ends = np.stack([scales, metric], axis=1), np.clip(flat, begin, high)
    chosen = weights[name]
    if options.form == INTERPOLATION:
        points[:, 0] = points[:, 0] / (1 + points[:, 0])
        ends = ends / (1 + ends)
        chosen = chosen / (1 + chosen)
    return {"chosen": chosen, "flat": ends.tolist(), "points": points.tolist()}


def sample(edges: np.ndarray, low: float, high: float, at: float) -> np.ndarray:
    """Return scales from `low` to `high`: every edge between them, or POINTS even steps where there
    are more edges; `at` is always among them.
    """
    inside = edges[(edges > low) & (edges < high)]
    if len(inside) > POINTS:
        inside = np.linspace(low, high, POINTS)
    return np.unique(np.concatenate([[low, at, high], inside]))
