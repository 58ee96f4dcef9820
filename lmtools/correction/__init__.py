"""Answers of language models that write (`answers`) to whole lists, held to what the words of a
list can build (`allowed`), as further hypotheses (`lists`); and how often a glossary or such a
correction changes what was right, with an exact bound (`harm`, `share`).
"""

VERBS = {
    "correct": (
        "rescore N-best lists",
        "add what a large language model makes of each list, for tune to judge",
        "lmtools.correction.verb",
    ),
    "harm": (
        "rescore N-best lists",
        "bound how often a glossary or a correction changes what was right",
        "lmtools.correction.harm_verb",
    ),
}
