"""Recognisers asked about any text: how probable it is, given the sound. Their scores are a column
beside language models' and judge hypotheses that no list held.
"""

VERBS = {
    "pool": ("make N-best lists", "join the lists of several recognisers", "lmtools.ears.verb")
}
