"""Evaluations in words, for people, and as JSON-able trees, for programs."""

from collections.abc import Iterator, Sequence

import numpy as np

from lmtools.evaluate.breakdown import WORDS, Stratum, WordErrors, rank
from lmtools.evaluate.corpus import Evaluation
from lmtools.evaluate.metrics import METRICS, ErrorRate
from lmtools.evaluate.sacre import SacrePaired
from lmtools.evaluate.significance import Bootstrap, GroupTests, MatchedPairs

DEPTHS = (1, 2, 5, 10, 20, 50, 100)
MOST = 20  # lines of a table of words
FEW = 20  # segments, of fewer of which the mean is not near the normal distribution
NONE = "-"  # an undefined figure


def line(evaluation: Evaluation, interval: tuple[float, float]) -> str:
    """Return one line: score, 95% interval, counts, signature."""
    measure, total = METRICS[evaluation.metric], evaluation.total
    percent = "%" if measure.lower_is_better else ""
    sizes = f"{len(evaluation.statistics)} utterances"
    counts = ", ".join(filter(None, [measure.describe(total), sizes]))
    score = figure(defined(evaluation.metric, total, evaluation.score), interval, percent)
    return f"{measure.title} {score} ({counts}) {evaluation.signature}"


def figure(score: float | None, interval: Sequence[float] | None = None, percent: str = "") -> str:
    """Return a score with its interval, if it is there; a dash for an undefined one."""
    if score is None:
        return NONE
    ends = f" [95% CI {interval[0]:.2f}, {interval[1]:.2f}]" if interval else ""
    return f"{score:.2f}{percent}{ends}"


def defined(metric: str, total: np.ndarray, value):
    """Return a figure of summed statistics; None where it is undefined."""
    return value if METRICS[metric].length(total) else None


def part_lines(metric: str, by: str, parts: Sequence[Stratum]) -> Iterator[str]:
    """Yield a table of parts of an evaluation: name, utterances, score, and its counts."""
    measure = METRICS[metric]
    width = max(len(part.name) for part in parts) if parts else 0
    in_units = f", in {measure.unit}" if by == "length" and measure.unit != WORDS else ""
    yield f"by {by}{in_units}:"
    for part in parts:
        counts = measure.describe(part.total)
        percent = "%" if measure.lower_is_better else ""
        score = figure(defined(metric, part.total, part.score), percent=percent)
        score = f"{measure.title} {score}"
        yield f"  {part.name:{width}}  {part.utterances:5} utterances  {score}  {counts}".rstrip()


def word_lines(errors: WordErrors) -> Iterator[str]:
    """Yield the most frequent confusions, deletions, insertions and wrong units, MOST of each."""
    confusions = [(" -> ".join(map(quote, pair)), n) for pair, n in rank(errors.confusions)]
    tables = {
        "confusions": confusions,
        "deletions": [(quote(unit), n) for unit, n in rank(errors.deletions)],
        "insertions": [(quote(unit), n) for unit, n in rank(errors.insertions)],
    }
    for title, rows in tables.items():
        total = sum(times for _, times in rows)
        yield f"{title}: {total}" + (f", the {MOST} most frequent" if len(rows) > MOST else "")
        yield from (f"  {times:5}  {words}" for words, times in rows[:MOST])
    yield f"{errors.unit} with most errors, of how many times they are spoken:"
    for word, wrong, spoken in errors.rank_words()[:MOST]:
        yield f"  {wrong:5} of {spoken}  {quote(word)}"


def quote(unit: str) -> str:
    return repr(unit) if unit.isspace() else unit


def parts_tree(metric: str, parts: Sequence[Stratum]) -> list[dict]:
    return [
        {
            "name": part.name,
            "utterances": part.utterances,
            "score": defined(metric, part.total, part.score),
            **count_tree(metric, part.total),
        }
        for part in parts
    ]


def words_tree(errors: WordErrors) -> dict:
    return {
        "unit": errors.unit,
        "confusions": [[*pair, times] for pair, times in rank(errors.confusions)],
        "deletions": [list(row) for row in rank(errors.deletions)],
        "insertions": [list(row) for row in rank(errors.insertions)],
        "words": [list(row) for row in errors.rank_words()],
    }


def missing_line(evaluation: Evaluation) -> str:
    missing = evaluation.missing
    return (
        f"{len(missing)} of {len(evaluation.statistics)} utterances have no hypothesis and count as"
        f" empty (first {missing[0]!r})"
    )


def oracle_line(metric: str, curve: np.ndarray) -> str:
    depths = [depth for depth in DEPTHS if depth < len(curve)] + [len(curve)]
    return f"oracle {METRICS[metric].title} by list depth: " + ", ".join(
        f"{depth}: {curve[depth - 1]:.2f}" for depth in depths
    )


def bootstrap_line(result: Bootstrap) -> str:
    low, high = result.difference_interval
    share = (
        f"better in {100 * result.improvement:.2f}% of {result.resamples} paired bootstrap"
        f" resamples (seed {result.seed})"
    )
    return (
        f"difference {result.difference:+.2f} [95% CI {low:+.2f}, {high:+.2f}]; {share}; p ="
        f" {result.p:.2g}"
    )


def groups_line(by: str, result: GroupTests) -> str:
    kind = by.partition("=")[0]
    return (
        f"by whole {kind}s ({result.groups}: {result.better} better, {result.worse} worse):"
        f" bootstrap p = {result.bootstrap_p:.2g}, sign flips p = {result.flips_p:.2g}"
    )


def sacre_line(result: SacrePaired) -> str:
    seed = f"seed {result.seed}" if result.seed is not None else "no seed"
    settings = (
        f"sacreBLEU's paired bootstrap of {result.resamples} resamples ({seed}): mean"
        f" {result.mean:.2f} +- {result.half_width:.2f}"
    )
    return f"difference {result.difference:+.2f}; {settings}, p = {result.p:.2g} {result.signature}"


def matched_pairs_line(result: MatchedPairs) -> str:
    """Return the matched pairs test in one line, with the sign test where it needs that."""
    mean = NONE if result.mean is None else f"{result.mean:+.3f}"
    line = f"matched pairs (MAPSSWE): {result.segments} segments, {mean} errors a segment, "
    if result.z is None:
        line += f"z undefined ({'the same difference in all' if result.segments else 'none'})"
    else:
        line += f"z = {result.z:.2f}, p = {result.p:.2g}"
    if result.z is None or result.segments < FEW:
        sides = f"{result.better} better, {result.worse} worse"
        line += f"; exact sign test of segments: {sides}, p = {result.sign_p:.2g}"
    return line


def tree(evaluation: Evaluation, interval: tuple[float, float]) -> dict:
    """Return an evaluation as JSON holds it; of error rates also the counts."""
    metric, total = evaluation.metric, evaluation.total
    counts = count_tree(metric, total)
    return {
        "metric": metric,
        "score": defined(metric, total, evaluation.score),
        "interval": defined(metric, total, list(interval)),
        "utterances": len(evaluation.statistics),
        **counts,
        "missing": list(evaluation.missing),
        "signature": evaluation.signature,
    }


def count_tree(metric: str, total: np.ndarray) -> dict:
    if not isinstance(METRICS[metric], ErrorRate):
        return {"statistics": total.tolist()}
    names = ("substitutions", "deletions", "insertions", "length")
    return dict(zip(names, total.tolist(), strict=True))
