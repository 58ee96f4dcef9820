"""What corrections teach: which words are misheard and how surely (`confusions`), and whether that
helped in what came later (`halves`).
"""

VERBS = {
    "confusions": (
        "rescore N-best lists",
        "list what the recogniser mishears, with the precision on held-out lists",
        "lmtools.learning.verb",
    ),
    "learn": (
        "rescore N-best lists",
        "learn confusions, weights and phrases from corrected answers, tested in order of time",
        "lmtools.learning.learn_verb",
    ),
}
NETWORK_ACTIONS = {"undo": ("lmtools.learning.verb:declare_undo", "lmtools.learning.verb:undo")}
