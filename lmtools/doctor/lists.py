"""Checks of the lists: ids, references, empty and repeated and endless hypotheses."""

import re
from collections import Counter
from collections.abc import Callable, Iterator

from lmtools.doctor.finding import ERROR, HINT, Finding, plural, share, some
from lmtools.doctor.inputs import DoctorInputs

# What people and programs do to utterance ids; each undoes one of them.
CHANGES: dict[str, Callable[[str], str]] = {
    "end in the rank of a hypothesis, `utt-n`": lambda utt: re.sub(r"-\d+$", "", utt),
    "differ in case": str.lower,
    "have a directory": lambda utt: utt.rpartition("/")[2],
    "have a file ending": lambda utt: re.sub(r"\.(wav|flac|mp3|sph)$", "", utt),
    "have a speaker before": lambda utt: re.split(r"[-_]", utt, maxsplit=1)[-1],
}
LOOP = 8  # one word so many times in a row


def read(inputs: DoctorInputs) -> Iterator[Finding]:
    """What the readers refused."""
    for problem in inputs.problems:
        place, _, rest = str(problem).partition(": ")
        cause, _, remedy = rest.rpartition("; ")
        yield Finding(ERROR, place, cause or rest, remedy)
    if not inputs.nbests and not inputs.problems:
        yield Finding(ERROR, inputs.nbest, "no utterances", "give the recogniser's N-best lists")


def ids(inputs: DoctorInputs) -> Iterator[Finding]:
    """Utterance ids that the other file does not have."""
    lists, refs = inputs.places, inputs.refs
    if inputs.ref == inputs.nbest or not inputs.nbests or not refs:
        yield from split_lists(inputs)
        return
    without = [utt for utt in lists if utt not in refs]
    unknown = [utt for utt in refs if utt not in lists]
    if without:
        cause = (
            f"{share(len(without), len(lists))} utterances have no reference in {inputs.ref}:"
            f" {some(without, 3)}"
        )
        yield Finding(
            ERROR,
            lists[without[0]],
            cause + why(without, refs),
            "make the ids the same on both sides",
        )
    if unknown:
        cause = (
            f"{share(len(unknown), len(refs))} references have no list in {inputs.nbest}:"
            f" {some(unknown, 3)}"
        )
        yield Finding(
            ERROR,
            inputs.ref_places[unknown[0]],
            cause + why(unknown, lists),
            "make the ids the same on both sides",
        )


def why(utts, others) -> str:
    """How the ids differ from the other side's, if one change explains most."""
    for what, undo in CHANGES.items():
        there = {undo(other) for other in others} | others.keys()
        if sum(undo(utt) in there for utt in utts) > 0.5 * len(utts):
            return f" (one side's ids {what})"
    return ""


def split_lists(inputs: DoctorInputs) -> Iterator[Finding]:
    """Lists of one hypothesis whose ids say that they belong together."""
    ranked = [
        one.utt for one in inputs.nbests if len(one.hyps) == 1 and re.search(r"-\d+$", one.utt)
    ]
    stems = {utt.rpartition("-")[0] for utt in ranked}
    if (
        ranked
        and len(ranked) == len(inputs.nbests)
        and 2 * len(stems) <= len(ranked)
        and f"{next(iter(stems))}-1" in ranked
    ):
        cause = (
            f"each of {len(ranked):,} lists has one hypothesis and an id `utt-n`: lists of"
            f" {len(stems):,} utterances taken apart?"
        )
        yield Finding(
            ERROR,
            inputs.places[ranked[0]],
            cause,
            "put the hypotheses of an utterance into one list",
        )


def references(inputs: DoctorInputs) -> Iterator[Finding]:
    """Missing and empty references."""
    if inputs.ref == inputs.nbest:
        without = [one.utt for one in inputs.nbests if one.ref is None]
        if without:
            cause = (
                f"{share(len(without), len(inputs.nbests))} utterances have no reference, so tune"
                " and evaluate refuse them"
            )
            level = ERROR if len(without) < len(inputs.nbests) else HINT
            yield Finding(
                level, inputs.places[without[0]], cause, "attach references: lmtools convert --ref"
            )
    empty = [utt for utt, words in inputs.refs.items() if not words.split()]
    if empty:
        cause = (
            f"{share(len(empty), len(inputs.refs))} references are empty: {some(empty, 3)}; every"
            " word there is an insertion"
        )
        yield Finding(HINT, inputs.ref_places[empty[0]], cause, "see whether nothing was said")


def empty(inputs: DoctorInputs) -> Iterator[Finding]:
    """Empty lists, and hypotheses without words."""
    lists = [one.utt for one in inputs.nbests if not one.hyps]
    if lists:
        cause = f"{share(len(lists), len(inputs.nbests))} lists are empty: {some(lists, 3)}"
        yield Finding(
            HINT,
            inputs.places[lists[0]],
            cause,
            "each counts as an empty hypothesis, all words deleted; decode them again",
        )
    blank = [one.utt for one in inputs.nbests for hyp in one.hyps if not hyp.text.split()]
    if blank:
        cause = f"{plural(blank, 'hypothesis')} without words"
        yield Finding(
            HINT, inputs.places[blank[0]], cause, "fine where the recogniser heard nothing"
        )


def duplicates(inputs: DoctorInputs) -> Iterator[Finding]:
    """The same words twice in a list."""
    # in a pool, they are votes
    lists = [one for one in inputs.nbests if not all("system" in hyp.extra for hyp in one.hyps)]
    found = [
        one.utt
        for one in lists
        if len({tuple(hyp.text.split()) for hyp in one.hyps}) < len(one.hyps)
    ]
    if found:
        cause = f"{share(len(found), len(inputs.nbests))} lists hold the same words more than once"
        yield Finding(HINT, inputs.places[found[0]], cause, "merge them: lmtools convert --dedup")


def length(inputs: DoctorInputs) -> Iterator[Finding]:
    """Hypotheses far longer than others, and words repeated without end."""
    sizes = Counter(len(hyp.text.split()) for one in inputs.nbests for hyp in one.hyps)
    half, middle = sizes.total() / 2, 0
    for size in sorted(sizes):
        half -= sizes[size]
        if half <= 0:
            middle = size
            break
    limit = max(50, 8 * middle)
    long = [
        (one.utt, len(hyp.text.split()))
        for one in inputs.nbests
        for hyp in one.hyps
        if len(hyp.text.split()) > limit
    ]
    if long:
        longest = max(size for _, size in long)
        cause = (
            f"{plural(long, 'hypothesis')} of more than {limit} words, up to {longest:,} (half have"
            f" at most {middle})"
        )
        yield Finding(HINT, inputs.places[long[0][0]], cause, "see whether the recogniser ran wild")
    loops = [one.utt for one in inputs.nbests for hyp in one.hyps if loop(hyp.text.split())]
    if loops:
        cause = f"{plural(loops, 'hypothesis')} with one word {LOOP} times in a row or more"
        yield Finding(HINT, inputs.places[loops[0]], cause, "see whether the recogniser ran wild")


def loop(words: list[str]) -> bool:
    """Whether one word comes LOOP times in a row."""
    return any(len(set(words[start : start + LOOP])) == 1 for start in range(len(words) - LOOP + 1))
