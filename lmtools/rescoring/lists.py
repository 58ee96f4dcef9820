"""Lists tuned on and rescored: what `lmtools tune` and `lmtools rescore` do between reading and
writing, and the functions of these names in Python.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from lmtools.base.doors import open_door
from lmtools.base.errors import UserError
from lmtools.base.workers import map_ordered
from lmtools.evaluate.fit import advise_metric, doubt_references
from lmtools.rescoring.defaults import doubt_scores
from lmtools.rescoring.experiment import SystemPlan, list_lengths, select_columns, tune_plan
from lmtools.rescoring.features import LENGTHS, Features, ScoreColumns, combine, gather
from lmtools.rescoring.tuning import Crossing, DevSet, measure_lists, tune_features
from lmtools.rescoring.tuning_options import TuningOptions, check_negative
from lmtools.rescoring.weights import Weights, describe_system, find_useless
from lmtools.types import NUMERICS, PHRASES, TOTAL, NBest

Systems = Mapping[str | None, SystemPlan]


def tune_lists(
    nbests: Sequence[NBest],
    columns: ScoreColumns,
    systems: Systems,
    source,
    options: TuningOptions,
    crossing: Crossing | None = None,
    nj: int = 1,
) -> tuple[list[str], Iterator[tuple[str | None, Weights]]]:
    """Return warnings about the lists from `source`, and each system's weights with facts, by name,
    tuned by `nj` processes; with a `crossing` those of each fold too.
    """
    extra = [name for name in list_lengths(systems) if name not in options.features]
    derived = [*options.features, *extra, *["rank"] * (options.reference == "rank")]
    features = gather(nbests, columns.values, source, derived)
    check_negative(features, options, source)
    warnings = doubt_dev(nbests, columns, features, options=options, source=source)

    def tuned():
        given = {"features": features, "columns": tuple(columns.values), "options": options}
        given |= {"dev_set": measure_dev(nbests, columns, options, source)}
        given |= {
            "extra": list_lengths(systems),
            "tune": crossing.tune if crossing else tune_features,
        }
        every = map_ordered(partial(tune_plan, **given), systems.values(), nj)
        for (system, plan), weights in zip(systems.items(), every, strict=True):
            taken = columns.select(plan.columns)
            weights = replace(weights, system=describe_system(nbests, taken, source))
            yield system, replace(weights, signatures=taken.signatures)

    return warnings, tuned()


def doubt_dev(
    nbests: Sequence[NBest],
    columns: ScoreColumns,
    features: Features,
    options: TuningOptions,
    source,
) -> list[str]:
    pairs = [
        (nbest.ref, [hyp.text for hyp in nbest.hyps]) for nbest in nbests if nbest.ref is not None
    ]
    refs, hyps = (ref for ref, _ in pairs), (text for _, texts in pairs for text in texts)
    return [
        *columns.warn_unchecked(),
        *warn_unseen(columns.signatures, columns.paths),
        *features.warnings,
        *warn_empty(nbests, "counts as"),
        *advise_metric(refs, hyps, options.metric, source),
        *doubt_references(pairs, source),
    ]


def measure_dev(
    nbests: Sequence[NBest], columns: ScoreColumns, options: TuningOptions, source
) -> DevSet:
    """Measure lists by the metric, and by what phrases of a glossary bring and harm there."""
    dev_set = measure_lists(nbests, options.metric, source)
    if not columns.glossary:
        return dev_set
    measure_harm = open_door("phrases", "harm:measure_harm", PHRASES)
    return replace(dev_set, harm=measure_harm(nbests, columns.values[PHRASES], columns.glossary))


def rescore_lists(
    nbests: Sequence[NBest],
    columns: ScoreColumns,
    systems: Systems,
    tuned: Mapping[str | None, Weights],
    source,
    place: Callable[[str | None], str],
) -> tuple[list[str], Iterator[tuple[str | None, list[NBest], list[str]]]]:
    """Return warnings on the lists; and each system's rescored lists, in the order of `tuned`, with
    warnings on its weights from `place`.
    """
    known = set().union(*(weights.features for weights in tuned.values()))
    derived = [name for name in (*LENGTHS, "rank") if name in known]
    features = gather(nbests, columns.values, source, derived)

    def choose():
        for system, weights in tuned.items():
            wanted = systems[system].columns
            taken = select_columns(features, columns.values, wanted)
            unused = {*derived} - {*weights.features}
            taken = taken.select([name for name in taken.names if name not in unused])
            lists = rescore(nbests, taken, weights, source)
            doubts = check_signatures(weights, columns.select(wanted), place(system))
            yield system, lists, doubts

    # of a column that was tuned as plain numbers, lmtools tune has warned
    plain = [
        name
        for name in columns.unchecked
        if all(weights.signatures.get(name) == {} for weights in tuned.values())
    ]
    doubts = [line for weights in tuned.values() for line in doubt_scores(nbests, weights, source)]
    if None in tuned:  # of an experiment's systems lmtools tune has said it
        doubts += find_useless(tuned[None])
    return [*columns.warn_unchecked(plain), *features.warnings, *doubts], choose()


def warn_empty(nbests: Sequence[NBest], what: str) -> Iterator[str]:
    """Yield a warning on lists without hypotheses, each of which `what` an empty one."""
    empty = [nbest.utt for nbest in nbests if not nbest.hyps]
    if empty:
        yield (
            f"warning: {len(empty)} of {len(nbests)} lists are empty (first {empty[0]!r}); each"
            f" {what} an empty hypothesis"
        )


def warn_unseen(signatures: Mapping[str, Mapping], places: Mapping) -> list[str]:
    """Return warnings on scores of LMs that have no probability of unknown words."""
    return [
        f"{places[name]}: of a language model without <unk> (a closed vocabulary): each unknown"
        f" word has {signature['unk']}; --lm LM,oov_penalty=P takes P nats more from each"
        for name, signature in signatures.items()
        if "unk" in signature
    ]


# Keys of a signature that change the rounding of scores at most.
ROUNDING = frozenset({*NUMERICS, "engine", "levels", "version"})
VERSIONS = re.compile(r"\b(version:|by:)[^|]*")  # in the signature of a metric


def rescore(nbests: Sequence[NBest], features: Features, weights: Weights, source) -> list[NBest]:
    """Rescore lists: best total first, equals in their old order, with all features and `total`;
    utterances of a fold by its weights. UserError about `source` for features other than the
    weights'.
    """
    check(features, weights, source)
    totals = weighted_totals(nbests, features, weights)
    return [reordered(nbest, features, row, totals[row]) for row, nbest in enumerate(nbests)]


def weighted_totals(nbests: Sequence[NBest], features: Features, weights: Weights) -> np.ndarray:
    """Return the total of each hypothesis (utterances, hypotheses), with weight 0 for features that
    have none: by the weights of an utterance's fold, else by those of the whole set.
    """

    def total(weight: Mapping[str, float], values: np.ndarray) -> np.ndarray:
        return combine([weight.get(name, 0.0) for name in features.names], values)

    totals = total(weights.features, features.values)
    folds = weights.folds.divide([nbest.utt for nbest in nbests]) if weights.folds else []
    for part, rows in folds:
        totals[rows] = total(part.features, features.values[:, rows])
    if not weights.tuned and "words" in features.names:
        keep_silence(totals, features.values[features.names.index("words")])
    return totals


def keep_silence(totals: np.ndarray, words: np.ndarray) -> None:
    """Let no words win (in place) where the first of a list, the recogniser's own answer, has none:
    default weights pay for each word, and no references say that a noise is one.
    """
    silent = words[:, 0] == 0
    totals[silent, 1:] = np.minimum(totals[silent, 1:], totals[silent, :1])


def check(features: Features, weights: Weights, source) -> None:
    """Raise UserError that names features without weight and weights without feature."""
    missing = [name for name in weights.features if name not in features.names]
    extra = [name for name in features.names if name not in weights.features]
    tuned = f"the weights were tuned on {weights.dev.path} with {', '.join(weights.features)}"
    if missing:
        raise UserError(
            f"{source}: no feature {', '.join(missing)}: {tuned}; give --scores NAME=FILE for each"
            " that the lists lack"
        )
    if extra:
        remedy = "leave it out, or tune with it (there --fix NAME=0 ignores it)"
        raise UserError(f"{source}: no weight for {', '.join(extra)}: {tuned}; {remedy}")


def check_signatures(weights: Weights, columns: ScoreColumns, path) -> list[str]:
    """Return warnings on columns other than those that `weights`, from `path`, were tuned on;
    UserError where one surely is.
    """
    warnings, unknown = [], []
    if not weights.tuned:
        return warnings
    for name in (name for name in columns.signatures if name in weights.features):
        if name not in weights.signatures:
            unknown.append(name)
            continue
        tuned, given = weights.signatures[name], columns.signatures[name]
        keys = [
            key for key in sorted(tuned.keys() | given.keys()) if tuned.get(key) != given.get(key)
        ]
        changes = ", ".join(f"{key} {show(given, key)} for {show(tuned, key)}" for key in keys)
        if any(significant(key, tuned, given) for key in keys):
            remedy = (
                "give the scores of the model that it was tuned with, made with the same options,"
                " or tune with these"
            )
            raise UserError(
                f"{columns.paths[name]}: not of what {path} was tuned on as {name!r}: {changes};"
                f" {remedy}"
            )
        if keys:
            warnings.append(
                f"warning: {columns.paths[name]}: made otherwise than what {path} was tuned on as"
                f" {name!r}: {changes}"
            )
    if unknown:
        warnings.append(
            f"warning: {path}: does not say which scores {', '.join(unknown)} was tuned on, so"
            " nothing tells whether these fit"
        )
    return warnings


def significant(key: str, tuned: Mapping, given: Mapping) -> bool:
    """Return whether two differing values mean other scores, not rounding or a version."""
    return key not in ROUNDING and VERSIONS.sub("", str(tuned.get(key))) != VERSIONS.sub(
        "", str(given.get(key))
    )


def show(signature: Mapping, key: str) -> str:
    return repr(signature[key]) if key in signature else "nothing"


def reordered(nbest: NBest, features: Features, row: int, totals: np.ndarray) -> NBest:
    order = np.argsort(-totals[: len(nbest.hyps)], kind="stable")
    names = (*features.names, TOTAL)
    columns = (*features.values[:, row, order].tolist(), totals[order].tolist())
    hyps = (
        nbest.hyps[place].with_scores(dict(zip(names, values, strict=True)))
        for place, *values in zip(order.tolist(), *columns, strict=True)
    )
    return replace(nbest, hyps=tuple(hyps))
