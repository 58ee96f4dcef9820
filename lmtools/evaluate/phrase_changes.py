"""Phrases that are missed, said by nobody, or changed from one system to another, with their
utterances.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lmtools.evaluate.phrases import PhraseAlignment, Span, align_phrases
from lmtools.text.phrases import Glossary

MISSED, FALSE = "missed", "false alarm"
FOUND, LOST, AVOIDED = "found", "lost", "false alarm avoided"


def list_errors(
    refs: Mapping[str, str], hyps: Mapping[str, str], glossary: Glossary
) -> list[dict[str, str]]:
    """List the phrases that are missed and those that nobody said: utterance, kind, phrase, and the
    words there of reference and hypothesis.
    """
    return [
        row for utt in refs for row in list_own(align_phrases(utt, refs[utt], hyps, glossary), utt)
    ]


def list_own(aligned: PhraseAlignment, utt: str) -> list[dict[str, str]]:
    """List the errors of one utterance."""
    rows = []
    for span in aligned.missed():
        texts = " ".join(aligned.ref[span.start : span.end]), beside(aligned, span, of_ref=True)
        rows.append(dict(zip(("ref", "hyp"), texts, strict=True)) | {"kind": MISSED})
        rows[-1] |= {"utt": utt, "phrase": span.written}
    for span in aligned.false_alarms():
        texts = beside(aligned, span, of_ref=False), " ".join(aligned.hyp[span.start : span.end])
        rows.append(dict(zip(("ref", "hyp"), texts, strict=True)) | {"kind": FALSE})
        rows[-1] |= {"utt": utt, "phrase": span.written}
    return rows


def beside(aligned: PhraseAlignment, span: Span, of_ref: bool) -> str:
    """Return the words of the other text that are aligned with a span of the reference, or else of
    the hypothesis.
    """
    ref = hyp = 0
    words = []
    for step in aligned.alignment.steps:
        place = ref if of_ref else hyp
        own, other = ("I", "D") if of_ref else ("D", "I")
        if step not in (own, other) and span.start <= place < span.end:
            words.append(aligned.hyp[hyp] if of_ref else aligned.ref[ref])
        ref, hyp = ref + (step != "I"), hyp + (step != "D")
    return " ".join(words)


def list_changes(
    refs: Mapping[str, str],
    systems: tuple[Mapping[str, str], Mapping[str, str]],
    glossary: Glossary,
) -> list[dict[str, str]]:
    """List what the hypotheses of the first of two systems have in phrases that those of the second
    have not: found, lost, false alarm, or avoided; with the utterance and the three texts.
    """
    rows = []
    for utt, ref in refs.items():
        new, old = (system.get(utt, "") for system in systems)
        if new != old:
            sides = [align_phrases(utt, ref, {utt: text}, glossary) for text in (new, old)]
            texts = {"ref": ref, "hyp": new, "was": old}
            rows += [
                {"utt": utt, "kind": kind, "phrase": phrase, **texts}
                for kind, phrase in compare_sides(*sides)
            ]
    return rows


def compare_sides(new: PhraseAlignment, old: PhraseAlignment) -> list[tuple[str, str]]:
    """Return kind and phrase of each change of an utterance."""
    missed, false = (
        [count_written(side) for side in sides]
        for sides in ((new.missed(), old.missed()), (new.false_alarms(), old.false_alarms()))
    )
    kinds = {
        FOUND: missed[1] - missed[0],
        LOST: missed[0] - missed[1],
        FALSE: false[0] - false[1],
        AVOIDED: false[1] - false[0],
    }
    return [(kind, phrase) for kind, phrases in kinds.items() for phrase in phrases.elements()]


def count_written(spans: Iterable[Span]) -> Counter[str]:
    """Count spans by their phrases."""
    return Counter(span.written for span in spans)


def count_kinds(rows: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """Count rows by kind."""
    return dict(Counter(row["kind"] for row in rows))
