"""N-best lists of translations: beam search by a translation model, in a run that goes on after a
kill.
"""

VERBS = {
    "translate": (
        "more",
        "write N-best lists of translations, by a translation model",
        "lmtools.translate.verb",
    )
}
