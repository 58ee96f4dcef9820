"""Confusion networks of N-best lists, by posteriors from the weights of `lmtools tune` or a score
of the lists; and new hypotheses that a list lacks and its words can build: the most probable paths
of its network.

The first pass gave new hypotheses no scores. Its scores of the list's hypotheses are fitted as sums
over words in slots, by ridge regression with the penalty that predicts left-out hypotheses best,
and the sums of new paths stand for theirs; language models score the new texts as any other.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.formats.marks import read_marks
from lmtools.lattice.paths import nbest as best_paths
from lmtools.networks.confusion import NetworkBuilder, as_lattice, share_out
from lmtools.rescoring.features import LENGTHS, ScoreColumns, gather
from lmtools.rescoring.lists import rescore
from lmtools.rescoring.risk import PosteriorDoubts, posterior, posterior_scores
from lmtools.rescoring.weights import Weights
from lmtools.text.scripts import split_letters
from lmtools.types import NO_WORD, TOTAL, ConfusionNetwork, Hypothesis, NBest

CHOICES = ("consensus", "best")


@dataclass(frozen=True)
class NetworkPlan:
    """How a list becomes a network: softmax(scale * total) of its first `depth`, and `choice`."""

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
            network = build_network(nbest, shares, plan.choice)
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


def build_network(nbest: NBest, shares: Sequence[float], choice: str) -> ConfusionNetwork:
    """Return the network of a list's first hypotheses by their probabilities (hypotheses,)."""
    builder, placed = align_list(nbest, shares)
    if choice == CHOICES[0] or not placed:
        return builder.finish(nbest.utt, ref=nbest.ref)
    best = spaced(nbest.hyps[0])
    return builder.finish(nbest.utt, placed[best], best.split(), nbest.ref)


def align_list(nbest: NBest, shares: Sequence[float]) -> "Built":
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


MARK = "recombined"  # the extra of new hypotheses
PENALTIES = (0.01, 0.1, 1.0, 10.0)
Place = tuple[int, str]  # a slot and its word


def recombine_lists(
    lists: Iterable[NBest], ranked: Iterable[tuple[NBest, np.ndarray]], plan: NetworkPlan, most: int
) -> Iterator[NBest]:
    """Yield the lists with up to `most` new hypotheses each behind their own, most probable first,
    marked by the extra MARK; `ranked` are the same lists as `rank_lists` gives them.
    """
    for nbest, (by_total, totals) in zip(lists, ranked, strict=True):
        if len(nbest.hyps) < 2:
            yield nbest
            continue
        shares = posterior(totals[: plan.depth], plan.scale)
        yield add_paths(nbest, by_total, shares, most)


def add_paths(nbest: NBest, ranked: NBest, shares: Sequence[float], most: int) -> NBest:
    builder, _ = built = align_list(ranked, shares)
    own = {spaced(hyp) for hyp in nbest.hyps}
    lattice = as_lattice(builder.finish(nbest.utt))
    paths = best_paths(lattice, {"am": 1.0}, most + len(own))
    paths = [path for path in paths if " ".join(path.words) not in own][:most]
    if not paths:
        return nbest
    new = [list(enumerate(lattice.words[arc] or NO_WORD for arc in path.arcs)) for path in paths]
    hyps = [
        Hypothesis(" ".join(path.words), scores, {MARK: "yes"})
        for path, scores in zip(paths, estimate_places(nbest, built, new), strict=True)
    ]
    return replace(nbest, hyps=(*nbest.hyps, *hyps))


Built = tuple[NetworkBuilder, dict[str, list[int]]]  # what `align_list` returns


def grow_network(nbest: NBest, depth: int) -> Built:
    """Return the network of the first `depth` hypotheses of a list, as it grew, by their ranks."""
    some = replace(nbest, hyps=nbest.hyps[:depth])
    return align_list(some, [1 / (1 + rank) for rank in range(len(some.hyps))])


def estimate_scores(nbest: NBest, built: Built, texts: Sequence[str]) -> list[dict[str, float]]:
    """Return the first-pass scores of new texts, as those of `recombine_lists` are estimated."""
    builder, _ = built
    columns = [builder.add_words(text.split(), 0) for text in texts]
    slots = {column: slot for slot, column in enumerate(builder.order)}
    pairs = zip(texts, columns, strict=True)
    new = [fill_slots(text, [slots[at] for at in some], len(slots)) for text, some in pairs]
    return estimate_places(nbest, built, new)


def estimate_places(
    nbest: NBest, built: Built, new: Sequence[Sequence[Place]]
) -> list[dict[str, float]]:
    """Return the scores of new paths through the network of a list, from those of its own."""
    builder, placed = built
    slots = {column: slot for slot, column in enumerate(builder.order)}
    own: dict[str, Hypothesis] = {}
    for hyp in nbest.hyps:
        own.setdefault(spaced(hyp), hyp)
    names = list(nbest.hyps[0].scores)
    known = [
        fill_slots(text, [slots[column] for column in columns], len(slots))
        for text, columns in placed.items()
    ]
    values = np.array([[own[text].scores[name] for name in names] for text in placed])
    return [
        dict(zip(names, row, strict=True)) for row in predict_scores(known, values, new).tolist()
    ]


def fill_slots(text: str, columns: Sequence[int], slots: int) -> list[Place]:
    """Return the word or NO_WORD that a text has in each slot, given the slots of its words."""
    words = dict(zip(columns, text.split(), strict=True))
    return [(slot, words.get(slot, NO_WORD)) for slot in range(slots)]


def predict_scores(
    known: Sequence[Sequence[Place]], values: np.ndarray, new: Sequence[Sequence[Place]]
) -> np.ndarray:
    """Predict scores (new, names) from (known, names) as a constant plus a sum over places."""
    numbers: dict[Place, int] = {}
    rows = [[numbers.setdefault(place, len(numbers)) for place in path] for path in known]
    design = np.zeros((len(known), len(numbers)))
    for row, places in zip(design, rows, strict=True):
        row[places] = 1
    wanted = np.zeros((len(new), len(numbers)))
    for row, path in zip(wanted, new, strict=True):
        row[[numbers[place] for place in path if place in numbers]] = 1
    mean, means = design.mean(0), values.mean(0)
    return (wanted - mean) @ fit_ridge(design - mean, values - means) + means


def fit_ridge(design: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Fit weights (features, names), each name with the penalty best on rows left out."""
    eigenvalues, vectors = np.linalg.eigh(design @ design.T)
    eigenvalues, rotated = np.maximum(eigenvalues, 0), vectors.T @ targets
    errors, fits = [], []
    for penalty in PENALTIES:
        inverse = 1 / (eigenvalues + penalty)
        residuals = targets - vectors @ ((eigenvalues * inverse)[:, None] * rotated)
        leverage = (vectors**2) @ (eigenvalues * inverse)
        errors.append(((residuals / (1 - leverage)[:, None]) ** 2).sum(0))
        fits.append(design.T @ (vectors @ (inverse[:, None] * rotated)))
    chosen = np.argmin(errors, axis=0)
    return np.stack(fits)[chosen, :, np.arange(targets.shape[1])].T
