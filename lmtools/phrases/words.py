"""Words of a glossary's phrases beside all others: `lmtools evaluate --words`."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.evaluate.corpus import References
from lmtools.evaluate.inputs import Texts
from lmtools.evaluate.show import NONE, figure
from lmtools.formats import checks, kaldi_text
from lmtools.phrases.evaluate import (
    COUNTS,
    F1,
    RATES,
    PhraseDifference,
    PhraseEvaluation,
    compare_phrases,
    count_texts,
    list_changes,
    list_errors,
)
from lmtools.phrases.glossary import PhraseSpec

LISTED = 20  # errors or changes that are printed
SHOWN = 12  # words of a text in one


def describe(evaluation: PhraseEvaluation, seed: int) -> Iterator[str]:
    """Yield a line a figure: value, 95% interval, counts; and one of false alarms."""
    sums = dict(zip(COUNTS, map(int, evaluation.total), strict=True))
    for name, ends in evaluation.intervals(seed).items():
        counts = "" if name == F1 else " ({} of {})".format(*(sums[n] for n in RATES[name]))
        yield f"{name} {figure(evaluation.score(name), ends, '%')}{counts}"
    hourly = evaluation.per_hour(evaluation.false_alarms)
    rate = "" if hourly is None else f", {hourly:.2f} an hour of {evaluation.seconds:.0f} s"
    yield f"false alarms {evaluation.false_alarms}{rate}"


def describe_differences(differences: Mapping[str, PhraseDifference]) -> Iterator[str]:
    for name, result in differences.items():
        if result.interval is None:
            yield f"difference in {name} {NONE}"
            continue
        low, high = result.interval
        gap = f"{result.difference:+.2f} [95% CI {low:+.2f}, {high:+.2f}]"
        yield f"difference in {name} {gap}; p = {result.p:.2g}"


def make_tree(evaluation: PhraseEvaluation, seed: int) -> dict:
    figures = {
        name: {"score": evaluation.score(name), "interval": ends and list(ends)}
        for name, ends in evaluation.intervals(seed).items()
    }
    counts = dict(zip(COUNTS, map(int, evaluation.total), strict=True))
    alarms = {"false alarms": evaluation.false_alarms}
    hourly = evaluation.per_hour(evaluation.false_alarms)
    alarms |= {} if hourly is None else {"false alarms an hour": hourly}
    return {"figures": figures, "counts": counts, **alarms}


def describe_changes(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
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
    shorter = min(len(first), len(second))
    begin = next((i for i in range(shorter) if first[i] != second[i]), shorter)
    left = shorter - begin
    end = next((i for i in range(left) if first[-1 - i] != second[-1 - i]), left)
    return first[begin : len(first) - end], second[begin : len(second) - end]


def show(words: Sequence[str]) -> str:
    shown = words if len(words) <= SHOWN else [*words[: SHOWN // 2], "..", *words[-SHOWN // 2 :]]
    return repr(" ".join(shown)) if words else "nothing"


def evaluate_words(refs: References, hyp: Texts, against: Texts | None, args) -> dict:
    glossary = PhraseSpec.parse(args.words).load()
    texts = first_references(refs)
    systems = [system.texts for system in (hyp, against) if system]
    seconds = sum_seconds(args.utt2dur, texts) if args.utt2dur else None
    say_lines(glossary.warn_absent(pair for side in (texts, *systems) for pair in side.items()))
    results = [PhraseEvaluation(count_texts(texts, s, glossary), seconds) for s in systems]
    tree = make_tree(results[0], args.seed)
    tree["errors"] = list_errors(texts, hyp.texts, glossary)
    lines = [*describe(results[0], args.seed)]
    if against:
        tree["against"] = make_tree(results[1], args.seed)
        lines += (f"against {against.path}: {row}" for row in describe(results[1], args.seed))
        differences = compare_phrases(*results, args.seed)
        tree["differences"] = {name: dataclasses.asdict(gap) for name, gap in differences.items()}
        tree["changes"] = list_changes(texts, tuple(systems), glossary)
        lines += describe_differences(differences)
    lines += describe_changes(tree["changes" if against else "errors"])
    for line in lines:
        print(line)
    return {"words": tree}


def first_references(refs: References) -> dict[str, str]:
    for utt, ref in refs.refs.items():
        if not isinstance(ref, str):
            raise UserError(f"--words: utterance {utt!r} has {len(ref)} references; give one --ref")
    return dict(refs.refs)


def sum_seconds(path: str, utterances: Iterable[str]) -> float:
    seconds = kaldi_text.read(path)
    if missing := [utt for utt in utterances if utt not in seconds]:
        raise UserError(
            f"{path}: no seconds of utterance {missing[0]!r}; give the utt2dur of this set"
        )
    return sum(checks.number(seconds[utt], path, f"the seconds of {utt!r}") for utt in utterances)
