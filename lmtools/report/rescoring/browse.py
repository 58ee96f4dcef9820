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
                "utts": [utterance(nbest, one, systems) for nbest in one.sample.nbests],
            }
            for one in arranged
        ],
    }


def utterance(nbest: NBest, measured: Measured, systems: Sequence[str]) -> list:
    """One row; a text that several systems chose is aligned once."""
    ref = (nbest.ref or "").split()
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
    aligned = [
        [text, "".join(LETTERS[operation] for operation, _, _ in align(ref, text.split()))]
        for text in texts
    ]
    return [nbest.utt, " ".join(ref), aligned, choices]
