"""Vectors of sentences and of words in their context, and how well the cosines of sentences agree
with people's judgements of similarity (STS).
"""

VERBS = {
    "embed": ("more", "compute vectors of sentences or words", "lmtools.vectors.embed"),
    "sts": (
        "more",
        "measure how well sentence vectors agree with judged similarity",
        "lmtools.vectors.sts",
    ),
}
PICTURES = ("bar_pictures", "scatter_pictures")
HOOKS = {name: f"lmtools.vectors.report:{name}" for name in ("similarity_tables", *PICTURES)}
