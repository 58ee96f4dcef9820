"""Scores every system of an experiment on every set: corpus level, by utterance length, by list depth, against the first pass."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lmtools.evaluate import METRICS, Bootstrap, MatchedPairs, evaluate, matched_pairs, nbest_statistics, oracle, paired_bootstrap
from lmtools.report.collect import Experiment, Sample
from lmtools.report.names import FIRST, ORACLE

SEED = 1  # of the bootstrap
LENGTHS = ((0, 0), (1, 2), (3, 5), (6, 10), (11, 15), (16, 20), (21, None))  # words of the reference, both ends included
DEPTHS = (1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Result:
    """One system on one set: its texts, statistics (utterances, width) and score; the comparison is with the first pass."""

    texts: Mapping[str, str]
    statistics: np.ndarray
    score: float
    missing: tuple[str, ...] = ()
    bootstrap: Bootstrap | None = None
    pairs: MatchedPairs | None = None


@dataclass(frozen=True)
class Measured:
    """One set: results by system, the first pass and the oracle among them, and the oracle by list depth (depth,)."""

    sample: Sample
    metric: str
    results: Mapping[str, Result]
    oracle: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Words of each reference (utterances,)."""
        return np.array([len(ref.split()) for ref in self.sample.refs.values()])

    def by_length(self, name: str) -> list[float | None]:
        """The score of a system in each class of LENGTHS; None where there are no utterances, or no words for a rate."""
        statistics, lengths = self.results[name].statistics, self.lengths
        score = METRICS[self.metric].score
        classes = length_classes(lengths)
        return [float(score(statistics[members].sum(0))) if lengths[members].any() else None for members in classes]

    @property
    def depths(self) -> list[int]:
        """The list depths that tables show: those of DEPTHS that are shorter than the longest list, and that."""
        return [depth for depth in DEPTHS if depth < len(self.oracle)] + [len(self.oracle)]


def length_classes(lengths: np.ndarray) -> list[np.ndarray]:
    """For each class of LENGTHS which utterances belong to it, booleans (utterances,)."""
    return [(lengths >= low) & (lengths <= (np.inf if high is None else high)) for low, high in LENGTHS]


def measure(experiment: Experiment) -> list[Measured]:
    """Every set of `experiment`, in its order."""
    return [measure_set(experiment, sample) for sample in experiment.samples]


def measure_set(experiment: Experiment, sample: Sample) -> Measured:
    """All systems that chose texts for `sample`; significance only where the weights were not tuned."""
    metric = experiment.metric
    texts = {FIRST: {nbest.utt: nbest.hyps[0].text if nbest.hyps else "" for nbest in sample.nbests}, ORACLE: best(sample, metric)}
    texts |= {name: system.texts[sample.name] for name, system in experiment.systems.items() if sample.name in system.texts}
    first = result(sample, texts[FIRST], metric, FIRST)
    source = f"{experiment.home}/rescore/{{}}/{sample.name}.txt"
    results = {name: result(sample, chosen, metric, source.format(name)) for name, chosen in texts.items()}
    if sample in experiment.judged:
        results = {name: compared(sample, one, first, metric) for name, one in results.items()}
    return Measured(sample, metric, results, oracle(sample.nbests, metric))


def result(sample: Sample, texts: Mapping[str, str], metric: str, source: str) -> Result:
    """The score of one system, without comparison."""
    evaluation = evaluate(sample.refs, texts, metric, source)
    return Result(texts, evaluation.statistics, evaluation.score, evaluation.missing)


def best(sample: Sample, metric: str) -> dict[str, str]:
    """The oracle's choice: in each list the first of those hypotheses that are best by themselves."""
    gain = METRICS[metric].gain
    ranks = [int(gain(rows).argmax()) if len(rows) else None for rows in nbest_statistics(sample.nbests, metric)]
    return {nbest.utt: "" if rank is None else nbest.hyps[rank].text for nbest, rank in zip(sample.nbests, ranks, strict=True)}


def compared(sample: Sample, one: Result, first: Result, metric: str) -> Result:
    """`one` with its confidence interval and its significance against the first pass."""
    refs = sample.refs
    pairs = None
    if metric == "wer":
        pairs = matched_pairs(list(refs.values()), *([texts.get(utt, "") for utt in refs] for texts in (one.texts, first.texts)))
    bootstrap = paired_bootstrap(one.statistics, first.statistics, metric, SEED)
    return Result(one.texts, one.statistics, one.score, one.missing, bootstrap, pairs)
