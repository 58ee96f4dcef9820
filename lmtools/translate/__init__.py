"""N-best lists of translations: beam search by a translation model, in a run that goes on after a
kill.
"""

VERBS = {
    "translate": (
        "make N-best lists",
        "translate sentences with a translation model",
        "lmtools.translate.verb",
    )
}
