"""Scores every system of an experiment on every set: corpus level, by utterance length, by list
depth, against the first pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from lmtools.evaluate import (
    METRICS,
    Bootstrap,
    MatchedPairs,
    References,
    SacrePaired,
    fill_empty,
    oracle_curve,
    oracle_texts,
    paired_bootstrap,
    reference,
)
from lmtools.evaluate.sacre import Sacre
from lmtools.report.names import FIRST, NOTHING, ORACLE
from lmtools.report.parts.samples import Sample, System, features_of, judged, read_score_columns
from lmtools.rescoring import DERIVED, check_signatures, gather, weighted_totals
from lmtools.rescoring.features import best

SEED = 1  # of the bootstrap
# Words of the reference, both ends included.
LENGTHS = ((0, 0), (1, 2), (3, 5), (6, 10), (11, 15), (16, 20), (21, 30), (31, 40), (41, None))
DEPTHS = (1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Result:
    """One system on one set: its texts, statistics (utterances, width) and score; the comparison is
    with the first pass, and `beyond` the probability that what it has beyond the tuned first pass
    is chance.
    """

    texts: Mapping[str, str]
    statistics: np.ndarray
    score: float
    missing: tuple[str, ...] = ()
    bootstrap: Bootstrap | None = None
    pairs: MatchedPairs | None = None
    sacre: SacrePaired | None = None
    beyond: float | None = None

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
        """Return the score of a system in each class of LENGTHS; None where there are no
        utterances, or no words for a rate.
        """
        statistics, lengths = self.results[name].statistics, self.lengths
        score = METRICS[self.refs.metric].score
        classes = length_classes(lengths)
        return [
            float(score(statistics[members].sum(0))) if lengths[members].any() else None
            for members in classes
        ]

    @property
    def depths(self) -> list[int]:
        """The list depths that tables show."""
        return shown_depths(len(self.oracle))


def shown_depths(longest: int) -> list[int]:
    """Return the DEPTHS that are shorter than the longest list, and its length."""
    return [depth for depth in DEPTHS if depth < longest] + [longest]


def length_classes(lengths: np.ndarray) -> list[np.ndarray]:
    """Return for each class of LENGTHS which utterances belong to it, booleans (utterances,)."""
    return [
        (lengths >= low) & (lengths <= (np.inf if high is None else high)) for low, high in LENGTHS
    ]


def measure(
    home: Path, samples: Sequence[Sample], systems: Mapping[str, System], metric: str
) -> list[Measured]:
    """Measure all `systems` of the experiment in `home` on each of `samples`; significance and
    depths only on those that weights were not tuned on.
    """
    return [
        measure_set(home, sample, systems, metric, compare=sample in judged(samples))
        for sample in samples
    ]


def measure_set(
    home: Path, sample: Sample, systems: Mapping[str, System], metric: str, compare: bool
) -> Measured:
    """Measure all systems that chose texts for `sample`; significance and depths only to `compare`
    them.
    """
    refs = References({nbest.utt: reference(nbest) for nbest in sample.nbests}, metric)
    rows = [
        refs.statistics(nbest.utt, [hyp.text for hyp in fill_empty(nbest).hyps])
        for nbest in sample.nbests
    ]
    first = {nbest.utt: fill_empty(nbest).hyps[0].text for nbest in sample.nbests}
    texts = {FIRST: first, ORACLE: oracle_texts(sample.nbests, rows, metric)}
    texts |= {
        name: system.texts[sample.name]
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
        by_depth = depth_curves(home, sample, systems, rows, metric=refs.metric)
    unnormalised = {name: result for name, result in every.items() if name in raw}
    return Measured(
        sample, refs, results, curve, by_depth=by_depth, unnormalised=unnormalised, tuned=tuned
    )


def evaluated(refs: References, texts: Mapping[str, str], source: str) -> Result:
    """Return the score of one system, without comparison."""
    evaluation = refs.evaluate(texts, source)
    return Result(texts, evaluation.statistics, evaluation.score, evaluation.missing)


def depth_curves(
    home: Path,
    sample: Sample,
    systems: Mapping[str, System],
    rows: Sequence[np.ndarray],
    metric: str,
) -> dict[str, list[float]]:
    """Return the score of each system at each of the depths that tables show, had its lists been so
    short; `rows` are the statistics of each list's hypotheses.

    Not of systems whose scores are not all there or not normalised, nor of rescored lattices, which
    choose from lists of their own. UserError where scores are there that are not of what the
    weights were tuned on.
    """
    named = features_of(systems.values())
    columns = read_score_columns(home, sample, named)
    derived = [name for name in (*DERIVED, "rank") if name in named]
    features = gather(sample.nbests, columns.values, sample.path, derived)
    depth = features.valid.shape[1]
    # (U, K, width)
    statistics = np.stack([np.pad(row, ((0, depth - len(row)), (0, 0))) for row in rows])
    utterances = [nbest.utt for nbest in sample.nbests]
    score, everyone, curves = METRICS[metric].score, np.arange(len(rows)), {}
    for name, system in systems.items():
        known = (
            sample.name in system.texts
            and system.weights
            and set(system.weights.features) <= set(features.names)
        )
        if known and not system.makeup.lattices and system.makeup.normalised:
            check_signatures(system.weights, columns, f"{home}/tune/{name}/weights.json")
            totals = weighted_totals(utterances, features, system.weights)
            choices = [
                best(totals[:, :shown], features.valid[:, :shown]) for shown in shown_depths(depth)
            ]
            curves[name] = [float(score(statistics[everyone, chosen].sum(0))) for chosen in choices]
    return curves


def is_tuned_first_pass(system: System | None) -> bool:
    """Return whether a system has tuned weights of lists of the first pass and adds nothing to
    them.
    """
    return bool(system and system.weights and system.makeup == NOTHING)


def compared(refs: References, result: Result, first: Result, tuned: Result | None) -> Result:
    """Return the result with its confidence interval and its significance against the first pass,
    and against the tuned one if that is there.
    """
    metric, statistics = METRICS[refs.metric], (result.statistics, first.statistics)
    return replace(
        result,
        bootstrap=paired_bootstrap(*statistics, refs.metric, SEED),
        pairs=refs.compare(result.texts, first.texts) if refs.metric == "wer" else None,
        sacre=metric.paired_bootstrap(*statistics) if isinstance(metric, Sacre) else None,
        beyond=chance(refs, result, tuned) if tuned and result is not tuned else None,
    )


def chance(refs: References, result: Result, other: Result) -> float:
    """Return the probability that two systems differ so much by chance: by matched pairs of word
    errors, of other metrics by the bootstrap.
    """
    if refs.metric == "wer":
        return refs.compare(result.texts, other.texts).p
    return paired_bootstrap(result.statistics, other.statistics, refs.metric, SEED).p
