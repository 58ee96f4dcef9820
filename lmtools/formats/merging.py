"""Hypotheses of a list taken together or out: equal ones merged, loops dropped."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from lmtools.errors import UserError
from lmtools.text.loops import count_looped, is_looping
from lmtools.types import TOTAL, Hypothesis, NBest

MASS = "mass"


def merge_equal(
    nbests: Sequence[NBest], normalise: Callable[[str], str], source, mass: bool = False
) -> list[NBest]:
    """Lists in which what `normalise` makes the same words stands once, at its best rank.

    It is the hypothesis of the best total (`find_total`; the best rank of equals, and where no
    total is known), as it was. With `mass` each has the score MASS: the log of the sum of the
    probabilities of all that were merged. UserError about `source` where no total is known then.
    """
    return [merge_list(nbest, normalise, source, mass) for nbest in nbests]


def merge_list(nbest: NBest, normalise: Callable[[str], str], source, mass: bool) -> NBest:
    """Merge the hypotheses of one list."""
    total = find_total(nbest)
    if mass and nbest.hyps and total is None:
        raise UserError(
            f"{source}: utterance {nbest.utt!r}: no score that is the total, whose probabilities"
            " --mass adds up; `lmtools rescore` writes one, or leave --mass out"
        )
    groups: dict[str, list[Hypothesis]] = {}
    for hyp in nbest.hyps:
        groups.setdefault(" ".join(normalise(hyp.text).split()), []).append(hyp)
    merged = []
    for group in groups.values():
        best = group[0] if total is None else max(group, key=lambda hyp: hyp.scores[total])
        if mass:
            whole = float(np.logaddexp.reduce([hyp.scores[total] for hyp in group]))
            best = replace(best, scores={**best.scores, MASS: whole})
        merged.append(best)
    return replace(nbest, hyps=tuple(merged))


def find_total(nbest: NBest) -> str | None:
    """Find the score of a list that ranks hypotheses: `total`, or the only one; None without
    either.
    """
    names = {name for hyp in nbest.hyps for name in hyp.scores}
    name = TOTAL if TOTAL in names else min(names) if len(names) == 1 else None
    return name if all(name in hyp.scores for hyp in nbest.hyps) else None


def drop_loops(nbests: Sequence[NBest]) -> list[NBest]:
    """Lists without hypotheses that loop; of a list of nothing else the one that loops least
    stays.
    """

    def kept(nbest: NBest) -> tuple[Hypothesis, ...]:
        sound = tuple(hyp for hyp in nbest.hyps if not is_looping(hyp.text))
        return sound or (min(nbest.hyps, key=lambda hyp: count_looped(hyp.text)),)

    return [replace(nbest, hyps=kept(nbest)) if nbest.hyps else nbest for nbest in nbests]
