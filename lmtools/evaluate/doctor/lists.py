"""Checks of the lists: ids, references, empty and repeated and endless hypotheses, languages that
are written without blanks between words.
"""

import re
from collections.abc import Iterator

from lmtools.evaluate.doctor.inputs import (
    ERROR,
    HINT,
    DoctorInputs,
    Finding,
    plural,
    share,
    single,
    some,
)
from lmtools.evaluate.fit import REMEDY, measure_fit, remedy_of
from lmtools.text.scripts import find_spacing

SHOWN = 60  # characters of a hypothesis


def read(inputs: DoctorInputs) -> Iterator[Finding]:
    for problem in inputs.problems:
        place, _, rest = str(problem).partition(": ")
        if "; " in place:  # of what has no name
            place, rest = inputs.nbest, str(problem)
        cause, _, remedy = rest.rpartition("; ")
        yield Finding(ERROR, place, cause or rest, remedy)
    if not inputs.nbests and not inputs.problems:
        yield Finding(ERROR, inputs.nbest, "no utterances", "give the recogniser's N-best lists")


def ids(inputs: DoctorInputs) -> Iterator[Finding]:
    lists, refs = inputs.places, inputs.refs
    if inputs.ref == inputs.nbest or not inputs.nbests or not refs:
        yield from split_lists(inputs)
        return
    without = [utt for utt in lists if utt not in refs]
    unknown = [utt for utt in refs if utt not in lists]
    if without:
        there = f" (first {without[0]!r}, there {unknown[0]!r})" if unknown else ""
        cause = f"{share(len(without), len(lists))} utterances have no reference in {inputs.ref}"
        remedy = "make the ids the same on both sides"
        yield Finding(ERROR, lists[without[0]], f"{cause}{there}", remedy)
    elif unknown:
        cause = f"{share(len(unknown), len(refs))} references have no list in {inputs.nbest}"
        where = inputs.ref_places[unknown[0]]
        yield Finding(HINT, where, f"{cause}: {some(unknown, 3)}", "fine if the set is bigger")


def split_lists(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find lists of one hypothesis whose ids say that they belong together."""
    alone = [nbest.utt for nbest in inputs.nbests if len(nbest.hyps) == 1]
    ranked = [utt for utt in alone if re.search(r"-\d+$", utt)]
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
    if inputs.ref == inputs.nbest:
        without = [nbest.utt for nbest in inputs.nbests if nbest.ref is None]
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


def fit(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find references that cannot be of these lists."""
    pairs = [
        (inputs.refs[nbest.utt], [hyp.text for hyp in nbest.hyps])
        for nbest in inputs.nbests
        if nbest.utt in inputs.refs
    ]
    measured = measure_fit(pairs)
    if measured and not measured.possible:
        yield Finding(ERROR, inputs.ref, str(measured), REMEDY)


def empty(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find empty lists, and hypotheses without words."""
    lists = [nbest.utt for nbest in inputs.nbests if not nbest.hyps]
    if lists:
        cause = f"{share(len(lists), len(inputs.nbests))} lists are empty: {some(lists, 3)}"
        yield Finding(
            HINT,
            inputs.places[lists[0]],
            cause,
            "each counts as an empty hypothesis, all words deleted; decode them again",
        )
    blank = [nbest.utt for nbest in inputs.nbests for hyp in nbest.hyps if not hyp.text.split()]
    if blank:
        chosen = sum(bool(nbest.hyps) and not nbest.hyps[0].text.split() for nbest in inputs.nbests)
        cause = (
            f"{plural(blank, 'hypothesis')} without words, {chosen:,} of them first in their lists"
            f" ({some(dict.fromkeys(blank), 3)})"
        )
        remedy = (
            "fine where nothing was said; elsewhere the word bonus of `lmtools tune` outweighs them"
        )
        yield Finding(HINT, inputs.places[blank[0]], cause, remedy)


def duplicates(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find the same words twice in a list; not in a pool, where they are votes."""
    alike = [
        nbest.utt
        for nbest in inputs.nbests
        if len({single(hyp.text) for hyp in nbest.hyps}) < len(nbest.hyps)
        and not all("system" in hyp.extra for hyp in nbest.hyps)
    ]
    if alike:
        cause = f"{share(len(alike), len(inputs.nbests))} lists hold the same words more than once"
        yield Finding(HINT, inputs.places[alike[0]], cause, "merge them: lmtools convert --dedup")


def blanks(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find texts without blanks, of which metrics of words take a phrase for a word."""
    hyps = (hyp.text for nbest in inputs.nbests for hyp in nbest.hyps)
    for texts, path in ((inputs.refs.values(), inputs.ref), (hyps, inputs.nbest)):
        spacing = find_spacing(texts)
        if spacing.bare:
            cause = (
                f"{spacing.language} without blanks between words: WER, and BLEU and TER without"
                " options, take a phrase for a word"
            )
            metrics = [remedy_of(name, spacing.language) for name in ("wer", "bleu", "ter")]
            yield Finding(HINT, path, cause, f"take --metric {', '.join(metrics)}")
            return
