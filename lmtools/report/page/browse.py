"""Content of the page's utterance browser: every utterance with its reference and every system's
choice, aligned.
"""

from collections.abc import Sequence

from lmtools.report.parts.lists import RescoredLists
from lmtools.report.parts.measure import Measured
from lmtools.types import NBest


def browser_data(lists: RescoredLists) -> dict:
    """Return the browser's data as a JSON-able tree; judged sets come first.

    {"systems": [[name, label]], "sets": [{"name", "utts": [[id, reference, [[text, operations]],
    [choice of each system]]]}]}; `operations` has one letter a step of the alignment: Correct,
    Substituted, Deleted, Inserted; a choice is an index or null.
    """
    names = lists.names
    systems = names.ordered({name for measured in lists.sets for name in measured.results})
    arranged = sorted(lists.sets, key=lambda measured: measured.sample.tuned)
    return {
        "systems": [[name, names.label(name)] for name in systems],
        "sets": [
            {
                "name": measured.sample.name,
                "utts": [utterance(nbest, measured, systems) for nbest in measured.sample.nbests],
            }
            for measured in arranged
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
