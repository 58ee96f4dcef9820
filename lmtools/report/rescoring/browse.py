"""What the page's utterance browser shows: every utterance with its reference and every system's
choice, aligned.
"""

from collections.abc import Sequence

from lmtools.evaluate import align
from lmtools.report.names import label, ordered
from lmtools.report.rescoring.measure import Measured
from lmtools.types import NBest

LETTERS = {"ok": "C", "sub": "S", "del": "D", "ins": "I"}


def browser_data(sets: Sequence[Measured]) -> dict:
    """A JSON-able tree; judged sets come first.

    {"systems": [[name, label]], "sets": [{"name", "utts": [[id, reference, [[text, operations]],
    [choice of each system]]]}]}; `operations` has one letter a step of the alignment: Correct,
    Substituted, Deleted, Inserted; a choice is an index or null.
    """
    systems = ordered({name for measured in sets for name in measured.results})
    arranged = sorted(sets, key=lambda measured: measured.sample.tuned)
    return {
        "systems": [[name, label(name)] for name in systems],
        "sets": [
            {
                "name": one.sample.name,
                "utts": [
                    utterance(place, nbest, one, systems)
                    for place, nbest in enumerate(one.sample.nbests)
                ],
            }
            for one in arranged
        ],
    }


def utterance(place: int, nbest: NBest, measured: Measured, systems: Sequence[str]) -> list:
    """One row; what the metric aligned already is not aligned again, nor is a text that several
    systems chose.
    """
    ref = (nbest.ref or "").split()
    known = {
        " ".join(alignments[place].hyp): alignments[place]
        for alignments in (one.alignments for one in measured.results.values())
        if alignments and measured.metric == "wer"
    }
    texts: dict[str, int] = {}
    choices = []
    for system in systems:
        chosen = (
            measured.results[system].texts.get(nbest.utt, "")
            if system in measured.results
            else None
        )
        choices.append(
            None if chosen is None else texts.setdefault(" ".join(chosen.split()), len(texts))
        )
    aligned = []
    for text in texts:
        alignment = known.get(text) or align(ref, text.split())
        aligned.append([text, "".join(LETTERS[operation] for operation, _, _ in alignment.steps)])
    return [nbest.utt, " ".join(ref), aligned, choices]
