"""Evaluations of phrases in words, for people, and as JSON-able trees, for programs."""

from collections.abc import Iterator, Mapping, Sequence

from lmtools.evaluate.phrases import COUNTS, F1, RATES, PhraseDifference, PhraseEvaluation
from lmtools.evaluate.show import NONE, figure

LISTED = 20  # errors or changes that are printed
SHOWN = 12  # words of a text in one


def lines(evaluation: PhraseEvaluation, seed: int) -> Iterator[str]:
    """Yield a line a figure: value, 95% interval, counts; and one of false alarms."""
    sums = dict(zip(COUNTS, map(int, evaluation.total), strict=True))
    for name, ends in evaluation.intervals(seed).items():
        counts = "" if name == F1 else " ({} of {})".format(*(sums[n] for n in RATES[name]))
        yield f"{name} {figure(evaluation.score(name), ends, '%')}{counts}"
    hourly = evaluation.per_hour(evaluation.false_alarms)
    rate = "" if hourly is None else f", {hourly:.2f} an hour of {evaluation.seconds:.0f} s"
    yield f"false alarms {evaluation.false_alarms}{rate}"


def difference_lines(differences: Mapping[str, PhraseDifference]) -> Iterator[str]:
    """Yield a line a figure: the difference of two systems, its interval, and p."""
    for name, result in differences.items():
        if result.interval is None:
            yield f"difference in {name} {NONE}"
            continue
        low, high = result.interval
        gap = f"{result.difference:+.2f} [95% CI {low:+.2f}, {high:+.2f}]"
        yield f"difference in {name} {gap}; p = {result.p:.2g}"


def tree(evaluation: PhraseEvaluation, seed: int) -> dict:
    """Return an evaluation as JSON holds it."""
    figures = {
        name: {"score": evaluation.score(name), "interval": ends and list(ends)}
        for name, ends in evaluation.intervals(seed).items()
    }
    counts = dict(zip(COUNTS, map(int, evaluation.total), strict=True))
    alarms = {"false alarms": evaluation.false_alarms}
    hourly = evaluation.per_hour(evaluation.false_alarms)
    alarms |= {} if hourly is None else {"false alarms an hour": hourly}
    return {"figures": figures, "counts": counts, **alarms}


def change_lines(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield a line for each of the first LISTED errors or changes, and how many more there are."""
    for row in rows[:LISTED]:
        if "was" in row:
            old, new = (show(words) for words in differ(row["was"].split(), row["hyp"].split()))
            texts = f"{old} -> {new}"
        else:
            texts = f"said {show(row['ref'].split())}, is {show(row['hyp'].split())}"
        yield f"{row['utt']}: {row['kind']} {row['phrase']!r}: {texts}"
    if len(rows) > LISTED:
        yield f"and {len(rows) - LISTED} more, all of which --out lists"


def differ(first: Sequence[str], second: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the words of two texts without those that both begin and end with."""
    shorter = min(len(first), len(second))
    begin = next((i for i in range(shorter) if first[i] != second[i]), shorter)
    left = shorter - begin
    end = next((i for i in range(left) if first[-1 - i] != second[-1 - i]), left)
    return first[begin : len(first) - end], second[begin : len(second) - end]


def show(words: Sequence[str]) -> str:
    """Return words in quotes, long ones without their middle; `nothing` without any."""
    shown = words if len(words) <= SHOWN else [*words[: SHOWN // 2], "..", *words[-SHOWN // 2 :]]
    return repr(" ".join(shown)) if words else "nothing"
