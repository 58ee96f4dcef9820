"""Evaluations in words, for people, and as JSON-able trees, for programs."""

import numpy as np

from lmtools.evaluate.corpus import Evaluation
from lmtools.evaluate.metrics import METRICS, ErrorRate
from lmtools.evaluate.sacre import SacrePaired
from lmtools.evaluate.significance import Bootstrap, MatchedPairs

DEPTHS = (1, 2, 5, 10, 20, 50, 100)


def line(evaluation: Evaluation, interval: tuple[float, float]) -> str:
    """Return one line: score, 95% interval, counts, signature."""
    measure = METRICS[evaluation.metric]
    percent = "%" if measure.lower_is_better else ""
    sizes = f"{len(evaluation.statistics)} utterances"
    counts = ", ".join(filter(None, [measure.describe(evaluation.total), sizes]))
    score = f"{evaluation.score:.2f}{percent} [95% CI {interval[0]:.2f}, {interval[1]:.2f}]"
    return f"{measure.title} {score} ({counts}) {evaluation.signature}"


def missing_line(evaluation: Evaluation) -> str:
    """Return the printed line on utterances without hypothesis."""
    missing = evaluation.missing
    return (
        f"{len(missing)} of {len(evaluation.statistics)} utterances have no hypothesis and count as"
        f" empty (first {missing[0]!r})"
    )


def oracle_line(metric: str, curve: np.ndarray) -> str:
    """Return the oracle at some list depths."""
    depths = [depth for depth in DEPTHS if depth < len(curve)] + [len(curve)]
    return f"oracle {METRICS[metric].title} by list depth: " + ", ".join(
        f"{depth}: {curve[depth - 1]:.2f}" for depth in depths
    )


def bootstrap_line(result: Bootstrap) -> str:
    """Return the paired bootstrap in one line."""
    low, high = result.difference_interval
    share = (
        f"better in {100 * result.improvement:.2f}% of {result.resamples} paired bootstrap"
        f" resamples (seed {result.seed})"
    )
    return (
        f"difference {result.difference:+.2f} [95% CI {low:+.2f}, {high:+.2f}]; {share}; p ="
        f" {result.p:.2g}"
    )


def sacre_line(result: SacrePaired) -> str:
    """Return sacrebleu's paired bootstrap in one line."""
    seed = f"seed {result.seed}" if result.seed is not None else "no seed"
    settings = (
        f"sacreBLEU's paired bootstrap of {result.resamples} resamples ({seed}): mean"
        f" {result.mean:.2f} +- {result.half_width:.2f}"
    )
    return f"difference {result.difference:+.2f}; {settings}, p = {result.p:.2g} {result.signature}"


def matched_pairs_line(result: MatchedPairs) -> str:
    """Return the matched pairs test in one line."""
    mean = f"{result.mean:+.3f} errors a segment"
    return (
        f"matched pairs (MAPSSWE): {result.segments} segments, {mean}, z = {result.z:.2f}, p ="
        f" {result.p:.2g}"
    )


def tree(evaluation: Evaluation, interval: tuple[float, float]) -> dict:
    """Return an evaluation as JSON holds it; of the error rates also the counts."""
    total = evaluation.total.tolist()
    rate = isinstance(METRICS[evaluation.metric], ErrorRate)
    counts = (
        dict(zip(("substitutions", "deletions", "insertions", "length"), total, strict=True))
        if rate
        else {"statistics": total}
    )
    return {
        "metric": evaluation.metric,
        "score": evaluation.score,
        "interval": list(interval),
        "utterances": len(evaluation.statistics),
        **counts,
        "missing": list(evaluation.missing),
        "signature": evaluation.signature,
    }
