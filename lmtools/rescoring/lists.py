"""Lists tuned on and rescored: what `lmtools tune` and `lmtools rescore` do between reading and
writing, and the functions of these names in Python.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from lmtools.evaluate.blanks import advise_metric
from lmtools.evaluate.fit import doubt_references
from lmtools.rescoring.apply import check_signatures, rescore
from lmtools.rescoring.crossing import Crossing
from lmtools.rescoring.defaults import doubt_scores
from lmtools.rescoring.doubts import find_useless
from lmtools.rescoring.features import DERIVED, ScoreColumns, gather
from lmtools.rescoring.systems import (
    SystemPlan,
    TuningSet,
    list_lengths,
    select_columns,
    tune_systems,
)
from lmtools.rescoring.tuning_options import TuningOptions, check_negative
from lmtools.rescoring.weights import Weights
from lmtools.types import NBest

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
    """Return warnings about the lists read from `source`, and the weights of each system, by name.
    UserError as of `gather` and `tune_systems`.
    """
    extra = [name for name in list_lengths(systems) if name not in options.features]
    derived = [*options.features, *extra, *["rank"] * (options.reference == "rank")]
    features = gather(nbests, columns.values, source, derived)
    check_negative(features, options, source)
    pairs = [
        (nbest.ref, [hyp.text for hyp in nbest.hyps]) for nbest in nbests if nbest.ref is not None
    ]
    refs, hyps = (ref for ref, _ in pairs), (text for _, texts in pairs for text in texts)
    warnings = [
        *columns.warn_unchecked(),
        *warn_unseen(columns.signatures, columns.paths),
        *features.warnings,
        *warn_empty(nbests, "counts as"),
        *advise_metric(refs, hyps, options.metric, source),
        *doubt_references(pairs, source),
    ]
    tuning_set = TuningSet(nbests, columns, features, source)
    return warnings, tune_systems(systems, tuning_set, options, crossing=crossing, nj=nj)


def rescore_lists(
    nbests: Sequence[NBest],
    columns: ScoreColumns,
    systems: Systems,
    tuned: Mapping[str | None, Weights],
    source,
    place: Callable[[str | None], str],
) -> tuple[list[str], Iterator[tuple[str | None, list[NBest], list[str]]]]:
    """Return warnings about the lists read from `source`; and each system, its lists in the order
    of its weights in `tuned`, and warnings about the weights, which were read from its `place`.

    UserError as of `gather`, `rescore` and `check_signatures`.
    """
    known = set().union(*(weights.features for weights in tuned.values()))
    derived = [name for name in (*DERIVED, "rank") if name in known]
    features = gather(nbests, columns.values, source, derived)

    def choose():
        for system, weights in tuned.items():
            wanted = systems[system].columns
            taken = select_columns(features, columns.values, wanted)
            unused = {*derived} - {*weights.features}
            taken = taken.select([name for name in taken.names if name not in unused])
            lists = rescore(nbests, taken, weights, source)
            yield system, lists, check_signatures(weights, columns.select(wanted), place(system))

    # of a column that was tuned as plain numbers, lmtools tune has warned
    plain = [
        name
        for name in columns.unchecked
        if all(weights.signatures.get(name) == {} for weights in tuned.values())
    ]
    doubts = [line for weights in tuned.values() for line in doubt_scores(nbests, weights, source)]
    doubts += [line for weights in tuned.values() for line in find_useless(weights)]
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
    """Return warnings on scores, with these signatures and from these places, whose language model
    has no probability of unknown words.
    """
    return [
        f"{places[name]}: of a language model without <unk> (a closed vocabulary): each unknown"
        f" word has {signature['unk']}; --lm LM,oov_penalty=P takes P nats more from each"
        for name, signature in signatures.items()
        if "unk" in signature
    ]
