"""Confusion networks of N-best lists, by posteriors from the weights of `lmtools tune` or a score
of the lists.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.formats.marks import read_marks
from lmtools.networks.confusion import NetworkBuilder, share_out
from lmtools.rescoring.features import LENGTHS, ScoreColumns, gather
from lmtools.rescoring.lists import rescore
from lmtools.rescoring.risk import PosteriorDoubts, posterior, posterior_scores
from lmtools.rescoring.weights import Weights
from lmtools.text.scripts import split_letters
from lmtools.types import TOTAL, ConfusionNetwork, Hypothesis, NBest


@dataclass(frozen=True)
class NetworkPlan:
    """How a list becomes a network: softmax(scale * total) of its first `depth`. Chosen are the
    words of its best hypothesis; by `consensus`, which votes of systems take, the most probable one
    of each slot.
    """

    scale: float = 1.0
    depth: int | None = None
    consensus: bool = False


def rank_lists(
    nbests: Iterable[NBest],
    weights: Weights | None,
    columns: ScoreColumns | None,
    source,
    score: str | None = None,
) -> Iterator[tuple[NBest, np.ndarray]]:
    """Yield each list, best hypothesis first, and totals (hypotheses,): of `weights` with all
    columns, or of the lists' `score` (by default `total`, else as `mbr`). One list at a time is in
    memory; doubts are said at the end.
    """
    if weights is not None:
        derived = [name for name in (*LENGTHS, "rank") if name in weights.features]
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
    """Yield the network of each list of `rank_lists`; a single hypothesis keeps its own marks."""
    for nbest, totals in ranked:
        shares = posterior(totals[: plan.depth], plan.scale)
        try:
            network = build_network(nbest, shares, plan.consensus)
            yield mark_words(nbest, network) if len(shares) == 1 else network
        except UserError as error:
            raise UserError(f"utterance {nbest.utt!r}: {error}") from None


def spaced(hyp: Hypothesis) -> str:
    """Return the words of a hypothesis with single blanks between; letters where no blanks part
    words, but if each of its words has a mark.
    """
    return " ".join(hyp.text.split()) if read_marks(hyp) else split_letters(hyp.text)


def mark_words(nbest: NBest, network: ConfusionNetwork) -> ConfusionNetwork:
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


def build_network(
    nbest: NBest, shares: Sequence[float], consensus: bool = False
) -> ConfusionNetwork:
    """Return the network of a list's first hypotheses by their probabilities (hypotheses,)."""
    builder, placed = align_list(nbest, shares)
    if consensus or not placed:
        return builder.finish(nbest.utt, ref=nbest.ref)
    best = spaced(nbest.hyps[0])
    return builder.finish(nbest.utt, placed[best], best.split(), nbest.ref)


def align_list(
    nbest: NBest, shares: Sequence[float]
) -> tuple[NetworkBuilder, dict[str, list[int]]]:
    """Return the network of a list as it grew, and the columns of the words of each text."""
    builder, placed = NetworkBuilder(), {}
    if not len(shares):
        return builder, placed
    merged: dict[str, tuple[Hypothesis, int]] = {}
    for hyp, share in zip(nbest.hyps, share_out(shares).tolist(), strict=False):
        first, before = merged.get(spaced(hyp), (hyp, 0))
        merged[spaced(hyp)] = (first, before + share)
    for text, (hyp, share) in sorted(merged.items(), key=lambda item: -item[1][1]):
        if share:
            marks = read_marks(hyp)
            times = [(mark.start, mark.end) for mark in marks] if marks else None
            placed[text] = builder.add_words(text.split(), share, times)
    return builder, placed
