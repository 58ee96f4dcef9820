"""The sets of an experiment that rescores, the systems that chose texts for them, and the scores of
each: corpus level, by utterance length, by list depth, against the first pass.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from lmtools.base.errors import UserError, one_line
from lmtools.base.log import say
from lmtools.evaluate.chance import Tested
from lmtools.evaluate.corpus import References
from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.nbest import (
    fill_empty,
    join_lists,
    oracle_curve,
    oracle_texts,
    reference,
    shown_depths,
)
from lmtools.evaluate.sacre import Sacre, SacrePaired
from lmtools.evaluate.show import find_namer
from lmtools.evaluate.significance import (
    Bootstrap,
    Gains,
    GroupTests,
    MatchedPairs,
    compare_groups,
    find_gains,
    paired_bootstrap,
)
from lmtools.formats import jsonl, kaldi_text, lists
from lmtools.formats.kaldi_text import list_speakers
from lmtools.formats.lists import join_texts
from lmtools.formats.scores import hash_lists
from lmtools.report.style import FIRST, NOTHING, ORACLE, SystemParts
from lmtools.rescoring.features import LENGTHS as BONUSES
from lmtools.rescoring.features import best, gather, read_columns, summed
from lmtools.rescoring.lists import check_signatures, weighted_totals
from lmtools.rescoring.weights import Weights
from lmtools.types import SESSION, SPEAKER, NBest

SUFFIXES = ("", ".gz", ".xz")
SEED = 1  # of the bootstrap
# Words of the reference, both ends included.
LENGTHS = ((0, 0), (1, 2), (3, 5), (6, 10), (11, 15), (16, 20), (21, 30), (31, 40), (41, None))


@dataclass(frozen=True)
class Sample:
    """The N-best lists of one set, with references; `tuned`: its figures flatter. `segments` are
    the lists of whose texts those of recordings are joined (`join_lists`), if they are.
    """

    name: str
    path: Path
    nbests: tuple[NBest, ...]
    tuned: bool
    segments: tuple[NBest, ...] = ()

    @property
    def refs(self) -> dict[str, str]:
        return {nbest.utt: nbest.ref for nbest in self.nbests}

    @property
    def lists(self) -> tuple[NBest, ...]:
        """The lists that are in the file."""
        return self.segments or self.nbests

    def join(self, texts: Mapping[str, str]) -> Mapping[str, str]:
        """Return texts of the lists as texts of what has the references."""
        return join_texts(texts, self.segments) if self.segments else texts

    @property
    def size(self) -> str:
        depths = [len(nbest.hyps) for nbest in self.lists]
        words = sum(len(ref.split()) for ref in self.refs.values())
        lists = f"lists of up to {max(depths)} (mean {np.mean(depths):.1f})"
        units = f"{len(self.nbests):,} utterances"
        if self.segments:
            units = f"{len(self.nbests):,} recordings of {len(self.segments):,} segments"
        return f"{self.name}: {units}, {words:,} reference words, {lists}"


@dataclass(frozen=True)
class System:
    """One way of choosing: its weights if they are there, the texts of each set, its parts."""

    weights: Weights | None
    texts: Mapping[str, Mapping[str, str]]
    makeup: SystemParts = NOTHING


def lists_beside(home: Path) -> list[Path]:
    """Return the N-best files beside the experiment, by name of their sets."""
    data = data_beside(home)
    return sorted(path for suffix in SUFFIXES for path in data.glob(f"*/nbest.jsonl{suffix}"))


def data_beside(home: Path) -> Path:
    """Return the directory of a recipe's data."""
    return (
        home / ".." / "data" if home.is_symlink() else Path(os.path.normpath(home / "..")) / "data"
    )


def set_name(path: Path) -> str:
    """Return the name of a set: `dev` of data/dev/nbest.jsonl.gz and of dev.jsonl."""
    stem = path.name.partition(".")[0]
    return path.absolute().parent.name if stem == "nbest" else stem


def read_samples(
    paths: Sequence[Path], weights: Mapping[str, Weights | None]
) -> tuple[tuple[Sample, ...], list[str]]:
    """Read the sets in `paths`, tuned ones first, and a line for each set without references."""
    sets, dropped = {}, []
    for path in paths:
        name = set_name(path)
        if name in sets:
            raise UserError(
                f"{path}: a second N-best list of set {name!r}; keep one, or choose with --nbest"
            )
        nbests, segments = read_with_references(path)
        if nbests:
            sets[name] = path, tuple(nbests), tuple(segments)
        else:
            dropped.append(
                f"{path}: no references in it or in {path.parent}/text, so set {name!r} is left out"
            )
    if not sets:
        raise UserError(
            f"{paths[0]}: no references in the lists or in {paths[0].parent}/text; attach them with"
            " lmtools convert --ref"
        )
    tuned = {
        name
        for name, (_, nbests, segments) in sets.items()
        if is_tuned(name, segments or nbests, weights)
    }
    seen = {key for name in tuned for key in map(list_key, sets[name][1])}
    samples = [
        Sample(
            name, path, nbests,
            tuned=name in tuned or not seen.isdisjoint(map(list_key, nbests)), segments=segments,
        )
        for name, (path, nbests, segments) in sets.items()
    ]  # fmt: skip
    return tuple(sorted(samples, key=lambda sample: not sample.tuned)), dropped


def list_key(nbest: NBest) -> tuple:
    return nbest.utt, *(hyp.text for hyp in nbest.hyps)


def read_with_references(path: Path) -> tuple[list[NBest], list[NBest]]:
    """Read the lists in `path` with references, their own or those of `text` beside it; where that
    has references of sessions, return lists of these and the lists read.
    """
    nbests = list(jsonl.read(path))
    if not nbests:
        raise UserError(f"{path}: no utterances; write the lists again")
    if all(nbest.ref is not None for nbest in nbests):
        return nbests, []
    text = path.parent / "text"
    if not text.exists():
        return [], []
    refs = kaldi_text.read(text)
    if {nbest.extra.get(SESSION) for nbest in nbests} <= refs.keys():
        return join_lists(nbests, refs), nbests
    return lists.attach_refs(nbests, refs, path, text), []


def is_tuned(name: str, nbests: Sequence[NBest], weights: Mapping[str, Weights | None]) -> bool:
    """Return whether weights were tuned on these lists, not by folds; else by the name."""
    known = [tuned for tuned in weights.values() if tuned]
    if not known:
        return name.startswith(("dev", "valid"))
    sets = [tuned.dev for tuned in known if not tuned.folds]
    return name in {set_name(Path(dev.path)) for dev in sets} or hash_lists(nbests) in {
        dev.sha256 for dev in sets
    }


def judged(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Return the sets that weights were not tuned on; all, if there are no others."""
    return tuple(sample for sample in samples if not sample.tuned) or tuple(samples)


@dataclass(frozen=True)
class Result:
    """A system on a set: texts, statistics (utterances, width), score, tests against both."""

    texts: Mapping[str, str]
    statistics: np.ndarray
    score: float
    missing: tuple[str, ...] = ()
    bootstrap: Bootstrap | None = None
    pairs: MatchedPairs | None = None
    sacre: SacrePaired | None = None
    beside: Tested | None = None
    groups: GroupTests | None = None
    gains: Gains | None = None
    writing: int = 0  # errors of writing alone

    @property
    def beyond(self) -> float | None:
        """The probability that the difference to the tuned first pass is chance."""
        return self.beside and self.beside.p

    @property
    def test(self) -> MatchedPairs | SacrePaired | Bootstrap | None:
        """The metric's first test of the difference to the first pass."""
        return self.pairs or self.sacre or self.bootstrap


@dataclass(frozen=True)
class Measured:
    """One set: results by system, the first pass and the oracle among them, and scores by list
    depth.

    oracle (depth,) is for depths 1, 2, ...; `by_depth` has the scores at `depths` of the systems
    whose features are at hand. Systems that take unnormalised scores are apart, without comparison:
    they are measured against the same with normalised scores.
    """

    sample: Sample
    refs: References
    results: Mapping[str, Result]
    oracle: np.ndarray
    by_depth: Mapping[str, list[float]]
    unnormalised: Mapping[str, Result] = field(default_factory=dict)
    tuned: str | None = None

    @property
    def lengths(self) -> np.ndarray:
        """Words of each reference (utterances,)."""
        return np.array([len(ref.split()) for ref in self.sample.refs.values()])

    def by_length(self, name: str) -> list[float | None]:
        """Return the score of a system in each class of LENGTHS; None where there are no words."""
        statistics, lengths = self.results[name].statistics, self.lengths
        score = METRICS[self.refs.metric].score
        classes = length_classes(lengths)
        return [
            float(score(statistics[members].sum(0))) if lengths[members].any() else None
            for members in classes
        ]

    @property
    def depths(self) -> list[int]:
        return shown_depths(len(self.oracle))


def length_classes(lengths: np.ndarray) -> list[np.ndarray]:
    """Return for each class of LENGTHS which utterances belong to it, booleans (utterances,)."""
    return [
        (lengths >= low) & (lengths <= (np.inf if high is None else high)) for low, high in LENGTHS
    ]


def measure(
    home: Path,
    samples: Sequence[Sample],
    systems: Mapping[str, System],
    metric: str,
    *,
    groups: str | None = None,
) -> list[Measured]:
    """Measure `systems` on each of `samples`; significance and depths of judged ones alone, with
    whole `groups` of utterances too.
    """
    return [
        grouped(
            measure_set(home, sample, systems, metric, compare=sample in judged(samples)), groups
        )
        for sample in samples
    ]


def grouped(measured: Measured, groups: str | None) -> Measured:
    """Return a set with the tests of whole groups, as after `evaluate --by`, of compared systems;
    {set} stands for the set's name.
    """
    metric, results = METRICS[measured.refs.metric], measured.results
    if not groups or isinstance(metric, Sacre) or not results[FIRST].bootstrap:
        return measured
    by, said = groups.replace("{set}", measured.sample.name), list_speakers(measured.sample.nbests)
    try:
        name_part = find_namer(by, {}, measured.refs.refs, said)
    except UserError as error:
        if by != SPEAKER:
            raise
        say(f"no tests by speaker of {measured.sample.name}: {one_line(error)}")
        return measured
    parts, first = [name_part(utt, 0) for utt in measured.refs.refs], results[FIRST].statistics
    tested = {
        name: replace(
            result,
            groups=compare_groups(
                result.statistics, first, parts, metric=measured.refs.metric, seed=SEED
            ),
        )
        for name, result in results.items()
    }
    return replace(measured, results=tested)


def measure_set(
    home: Path, sample: Sample, systems: Mapping[str, System], metric: str, compare: bool
) -> Measured:
    """Measure the systems of one set; significance and depths only to `compare` them."""
    refs = References({nbest.utt: reference(nbest) for nbest in sample.nbests}, metric)
    rows = [
        refs.statistics(nbest.utt, [hyp.text for hyp in fill_empty(nbest).hyps])
        for nbest in sample.nbests
    ]
    first = {nbest.utt: fill_empty(nbest).hyps[0].text for nbest in sample.nbests}
    texts = {FIRST: first, ORACLE: oracle_texts(sample.nbests, rows, metric)}
    texts |= {
        name: sample.join(system.texts[sample.name])
        for name, system in systems.items()
        if sample.name in system.texts
    }
    source = f"{home}/rescore/{{}}/{sample.name}.txt"
    every = {name: evaluated(refs, chosen, source.format(name)) for name, chosen in texts.items()}
    raw = {name for name, system in systems.items() if not system.makeup.normalised}
    results = {name: result for name, result in every.items() if name not in raw}
    curve, by_depth, tuned = oracle_curve(rows, metric), {}, None
    if compare:
        tuned = next((name for name in results if is_tuned_first_pass(systems.get(name))), None)
        base, against = results[FIRST], results.get(tuned)
        results = {name: compared(refs, result, base, against) for name, result in results.items()}
        by_depth = depth_curves(home, sample, systems, refs)
    unnormalised = {name: result for name, result in every.items() if name in raw}
    return Measured(
        sample, refs, results, curve, by_depth=by_depth, unnormalised=unnormalised, tuned=tuned
    )


def evaluated(refs: References, texts: Mapping[str, str], source: str) -> Result:
    """Return the score of one system, without comparison."""
    evaluation = refs.evaluate(texts, source)
    known = texts, evaluation.statistics, evaluation.score, evaluation.missing
    return Result(*known, writing=refs.writing(texts)[0])


def depth_curves(
    home: Path, sample: Sample, systems: Mapping[str, System], refs: References
) -> dict[str, list[float]]:
    """Return the score of each system at the depths of tables, had its lists been so short; not of
    those whose scores are not all there or normalised, nor of lattices. UserError for scores that
    the weights were not tuned on.
    """
    weights = [system.weights.features for system in systems.values() if system.weights]
    named = list(dict.fromkeys(name for features in weights for name in features))
    paths = {path.parent.name: path for path in sorted(home.glob(f"score/*/{sample.name}.scores*"))}
    specs = [f"{name}={paths[summed(name)]}" for name in named if summed(name) in paths]
    columns = read_columns(specs, sample.lists, sample.path)
    derived = [name for name in (*BONUSES, "rank") if name in named]
    features = gather(sample.lists, columns.values, sample.path, derived)
    filled, curves = [fill_empty(nbest) for nbest in sample.lists], {}
    for name, system in systems.items():
        known = (
            sample.name in system.texts
            and system.weights
            and set(system.weights.features) <= set(features.names)
        )
        if known and not system.makeup.lattices and system.makeup.normalised:
            check_signatures(system.weights, columns, f"{home}/tune/{name}/weights.json")
            totals = weighted_totals(filled, features, system.weights)
            curves[name] = []
            for shown in shown_depths(features.valid.shape[1]):
                choices = best(totals[:, :shown], features.valid[:, :shown])
                chosen = zip(filled, choices, strict=True)
                texts = sample.join({one.utt: one.hyps[place].text for one, place in chosen})
                curves[name].append(refs.evaluate(texts).score)
    return curves


def is_tuned_first_pass(system: System | None) -> bool:
    return bool(system and system.weights and system.makeup == NOTHING)


def compared(refs: References, result: Result, first: Result, tuned: Result | None) -> Result:
    """Return the result with its interval and its significance against both first passes."""
    metric, statistics = METRICS[refs.metric], (result.statistics, first.statistics)
    return replace(
        result,
        bootstrap=paired_bootstrap(*statistics, refs.metric, SEED),
        pairs=refs.compare(result.texts, first.texts) if refs.metric == "wer" else None,
        sacre=metric.paired_bootstrap(*statistics) if isinstance(metric, Sacre) else None,
        gains=None if isinstance(metric, Sacre) else find_gains(*statistics, refs.metric),
        beside=chance(refs, result, tuned) if tuned and result is not tuned else None,
    )


def chance(refs: References, result: Result, other: Result) -> Tested:
    """Return the test of whether two systems differ by chance: MAPSSWE of WER, or bootstrap."""
    if refs.metric == "wer":
        return refs.compare(result.texts, other.texts)
    return paired_bootstrap(result.statistics, other.statistics, refs.metric, SEED)
