"""Confusion networks of N-best lists, by posteriors from the weights of `lmtools tune` or a score
of the lists.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.networks.confusion import NetworkBuilder, share_out
from lmtools.networks.files import read_marks
from lmtools.rescoring.features import DERIVED, ScoreColumns, gather
from lmtools.rescoring.features import words as spaced
from lmtools.rescoring.lists import rescore
from lmtools.rescoring.risk import PosteriorDoubts, posterior, posterior_scores
from lmtools.rescoring.weights import Weights
from lmtools.types import TOTAL, ConfusionNetwork, Hypothesis, NBest

CHOICES = ("consensus", "best")


@dataclass(frozen=True)
class NetworkPlan:
    """How a list becomes a network: the posterior is softmax(scale * total) over its first `depth`;
    `choice` is the words of the consensus, or of the best hypothesis.
    """

    scale: float = 1.0
    depth: int | None = None
    choice: str = CHOICES[0]


def rank_lists(
    nbests: Iterable[NBest],
    weights: Weights | None,
    columns: ScoreColumns | None,
    source,
    score: str | None = None,
) -> Iterator[tuple[NBest, np.ndarray]]:
    """Yield each list, best hypothesis first, and their totals (hypotheses,): of `weights` with the
    columns of all lists, or the lists' own `score` (by default `total`, else that of `mbr`).

    One list at a time is in memory, if `nbests` are. Doubts about a score of the lists are said at
    the end. UserError as of `rescore`.
    """
    if weights is not None:
        derived = [name for name in (*DERIVED, "rank") if name in weights.features]
        features = gather(nbests, columns.values if columns else {}, source, derived)
        for nbest in rescore(nbests, features, weights, source):
            yield nbest, np.array([hyp.scores[TOTAL] for hyp in nbest.hyps])
        return
    doubts = PosteriorDoubts()
    for nbest in nbests:
        if not nbest.hyps:
            yield nbest, np.zeros(0)
            continue
        name = score or (TOTAL if TOTAL in nbest.hyps[0].scores else None)
        name, (totals,) = posterior_scores([nbest], name, source)
        doubts.add(nbest, name, totals)
        order = np.argsort(-totals, kind="stable")
        yield replace(nbest, hyps=tuple(nbest.hyps[place] for place in order)), totals[order]
    say_lines(doubts.describe(source))


def build_networks(
    ranked: Iterable[tuple[NBest, np.ndarray]], plan: NetworkPlan
) -> Iterator[ConfusionNetwork]:
    """Yield the network of each list that `rank_lists` gives; an empty list has one without
    slots, a single hypothesis the confidences and times that its format keeps.
    """
    for nbest, totals in ranked:
        shares = posterior(totals[: plan.depth], plan.scale)
        try:
            network = build_network(nbest, shares, plan.choice)
            yield mark_words(nbest, network) if len(shares) == 1 else network
        except UserError as error:
            raise UserError(f"utterance {nbest.utt!r}: {error}") from None


def mark_words(nbest: NBest, network: ConfusionNetwork) -> ConfusionNetwork:
    """Return the network of a hypothesis alone with its recogniser's confidences and times."""
    marks = read_marks(nbest.hyps[0])
    if marks is None:
        return network
    slots = [
        replace(
            slot,
            confidence=slot.confidence if mark.confidence is None else mark.confidence,
            time=(mark.start, mark.end),
        )
        for slot, mark in zip(network.slots, marks, strict=True)
    ]
    return replace(network, slots=tuple(slots))


def build_network(nbest: NBest, shares: Sequence[float], choice: str) -> ConfusionNetwork:
    """Return the network of a list's first hypotheses, best first, by their probabilities
    (hypotheses,), which sum to 1; equal texts count as one, those without any share are left out.
    """
    builder, placed = NetworkBuilder(), {}
    merged: dict[str, tuple[Hypothesis, int]] = {}
    parts = share_out(shares).tolist() if len(shares) else []
    for hyp, share in zip(nbest.hyps, parts, strict=False):
        first, before = merged.get(spaced(hyp), (hyp, 0))
        merged[spaced(hyp)] = (first, before + share)
    for text, (hyp, share) in sorted(merged.items(), key=lambda item: -item[1][1]):
        if share:
            marks = read_marks(hyp)
            times = [(mark.start, mark.end) for mark in marks] if marks else None
            placed[text] = builder.add_words(text.split(), share, times)
    if choice == CHOICES[0] or not placed:
        return builder.finish(nbest.utt, ref=nbest.ref)
    best = spaced(nbest.hyps[0])
    return builder.finish(nbest.utt, placed[best], best.split(), nbest.ref)
