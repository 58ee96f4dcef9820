"""Content of the page's utterance browser: every utterance with its reference and every system's
choice, aligned.
"""

from collections.abc import Sequence

from lmtools.report.names import Names
from lmtools.report.rescoring.measure import Measured
from lmtools.types import NBest


def browser_data(sets: Sequence[Measured], names: Names) -> dict:
    """Return the browser's data as a JSON-able tree; judged sets come first.

    {"systems": [[name, label]], "sets": [{"name", "utts": [[id, reference, [[text, operations]],
    [choice of each system]]]}]}; `operations` has one letter a step of the alignment: Correct,
    Substituted, Deleted, Inserted; a choice is an index or null.
    """
    systems = names.ordered({name for measured in sets for name in measured.results})
    arranged = sorted(sets, key=lambda measured: measured.sample.tuned)
    return {
        "systems": [[name, names.label(name)] for name in systems],
        "sets": [
            {
                "name": one.sample.name,
                "utts": [utterance(nbest, one, systems) for nbest in one.sample.nbests],
            }
            for one in arranged
        ],
    }


def utterance(nbest: NBest, measured: Measured, systems: Sequence[str]) -> list:
    """Return one row; a text that several systems chose stands there once."""
    texts: dict[str, str] = {}  # as chosen, by its words
    choices = []
    for system in systems:
        if system not in measured.results:
            choices.append(None)
            continue
        chosen = measured.results[system].texts.get(nbest.utt, "")
        words = " ".join(chosen.split())
        texts.setdefault(words, chosen)
        choices.append(list(texts).index(words))
    steps = [[words, measured.refs.align(nbest.utt, text).steps] for words, text in texts.items()]
    return [nbest.utt, " ".join((nbest.ref or "").split()), steps, choices]
