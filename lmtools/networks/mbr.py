"""Minimum Bayes risk decoding of lattices: the word sequence of the least expected word errors, and
the confusion network that comes with it (Xu, Povey, Mangu and Zhu 2011; as Kaldi's
lattice-mbr-decode has it).

A sequence R, words and places for none in turn, is aligned with every path at once: the expected
edit distance to a state, and back, the share of the paths that put a word beside each place of R.
Each place takes its most probable word, until nothing changes; the expected error never rises.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmtools.base.errors import UserError
from lmtools.lattice.forward import forward, sweep
from lmtools.lattice.order import levels, trim
from lmtools.lattice.paths import best
from lmtools.lattice.weights import check_arguments, total
from lmtools.networks.confusion import MOST, share_out
from lmtools.types import NO_WORD, ConfusionNetwork, Lattice, Slot

DELTA = 1e-5  # what an inserted word costs beyond 1, so that places for none take it if they can
NEAR = 1e-9  # costs that differ less are equal
ROUNDS = 100


@dataclass(frozen=True)
class Prepared:
    """A lattice with one end: `share` (A,) of each arc at its target, `number` (A,) of words."""

    lattice: Lattice
    level: np.ndarray
    share: np.ndarray
    number: np.ndarray
    words: tuple[str, ...]
    end: int


@check_arguments
def decode_mbr(
    lattice: Lattice, weights: Mapping[str, float], scale: float = 1.0, rounds: int = ROUNDS
) -> ConfusionNetwork:
    """Return the network of a lattice with path probabilities softmax(scale * score), in which the
    words of least expected error are chosen; with `rounds` 0 the best path's. UserError for no
    path, a cycle, or a lattice too large.
    """
    prepared = prepare(lattice, weights, scale)
    rows = {word: row for row, word in enumerate(prepared.words)}
    sequence = spread([rows[word] for word in best(lattice, weights).words])
    timed, shared = lattice.times is not None, None
    for _ in range(rounds):
        shared = shares, _ = accumulate(prepared, sequence)
        old = shares[sequence, np.arange(len(sequence))]
        new = np.where(shares.max(0) > old + NEAR, shares.argmax(0), sequence)
        if (new == sequence).all():
            break
        sequence, shared = spread(new[new > 0]), None
    if timed or shared is None:
        shared = accumulate(prepared, sequence, timed)
    return as_network(prepared, sequence, shared)


def prepare(lattice: Lattice, weights: Mapping[str, float], scale: float) -> Prepared:
    lattice = join_ends(trim(lattice), weights, scale)
    arcs = lattice.scores["p"]
    level = levels(lattice)
    to = forward(lattice, arcs, np.logaddexp, level)
    with np.errstate(invalid="ignore"):  # behind states that nothing possible leads to
        share = np.exp(arcs + to[lattice.source] - to[lattice.target])
    share = np.where(np.isfinite(share), share, 0.0)
    words = (NO_WORD, *dict.fromkeys(word for word in lattice.words if word is not None))
    rows = {word: row for row, word in enumerate(words)} | {None: 0}
    number = np.array([rows[word] for word in lattice.words], dtype=np.int64)
    return Prepared(lattice, level, share, number, words, int(lattice.finals[0]))


def join_ends(lattice: Lattice, weights: Mapping[str, float], scale: float) -> Lattice:
    """Return the lattice with one final state and one score, `p`: scaled totals."""
    arcs, finals = (
        np.where(column > -np.inf, scale * np.maximum(column, np.finfo(float).min), -np.inf)
        for column in total(lattice, weights)
    )
    ends, end = len(lattice.finals), lattice.states
    times = lattice.times
    return replace(
        lattice,
        states=end + 1,
        source=np.concatenate([lattice.source, lattice.finals]),
        target=np.concatenate([lattice.target, np.full(ends, end)]),
        words=(*lattice.words, *[None] * ends),
        scores={"p": np.concatenate([arcs, finals])},
        finals=np.array([end]),
        final_scores={"p": np.zeros(1)},
        times=None if times is None else np.append(times, np.nan),
        extra={},
        final_extra={},
    )


def spread(rows: Sequence[int]) -> np.ndarray:
    """Return word rows (W,) with a place for none around each (2W + 1,)."""
    sequence = np.zeros(2 * len(rows) + 1, dtype=np.int64)
    sequence[1::2] = rows
    return sequence


def accumulate(
    prepared: Prepared, sequence: np.ndarray, timed: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability (words, places) that each word stands beside each place of `sequence`
    (places,), and with `timed` its start and end in seconds (words, places, 2), NaN where unknown.
    """
    cells = len(prepared.number) * (len(sequence) + 1)
    if cells > MOST:
        raise UserError(
            f"{prepared.lattice.utt}: {len(prepared.number)} arcs and {len(sequence) // 2} words"
            " are too many; prune the lattice"
        )
    groups = list(sweep(prepared.lattice.target, prepared.level, lowest=1))
    pairs, skips, _ = align_forward(prepared, sequence, groups)
    lattice, places = prepared.lattice, len(sequence)
    back = np.zeros((lattice.states, places + 1))
    back[prepared.end, places] = 1
    shares = np.zeros((len(prepared.words), places + 1))
    spans = np.zeros((*shares.shape, 3 if timed else 0))
    for rows, _, _ in reversed(groups):
        mass = prepared.share[rows, None] * back[lattice.target[rows]]
        pair, skip = pairs[rows], skips[rows]
        gap = ~(pair | skip)
        gap[:, 0] = False
        move_back(mass, gap)
        paired = np.where(pair, mass, 0)
        to = np.where(skip, mass, 0)
        to[:, :-1] += paired[:, 1:]
        np.add.at(back, lattice.source[rows], to)
        np.add.at(shares, prepared.number[rows], paired)
        shares[0] += np.where(gap, mass, 0).sum(0)
        if timed:
            np.add.at(spans, prepared.number[rows], weigh_times(lattice, rows, paired))
    # what is left of the sequence before the start of the paths
    first = np.cumsum(back[lattice.start, ::-1])[::-1]
    shares[0, 1:] += first[1:]
    if timed:
        with np.errstate(invalid="ignore"):
            spans = spans[..., 1:] / spans[..., :1]
    return shares[:, 1:], spans[:, 1:]


def move_back(mass: np.ndarray, gap: np.ndarray) -> None:
    """Add what lies where a place is passed over (arcs, places + 1) to the place before it."""
    held = np.flatnonzero(mass.any(0))
    for place in range(held.max(initial=0), 0, -1):
        moved = mass[:, place] * gap[:, place]
        if place < held[0] and not moved.any():
            break
        mass[:, place - 1] += moved


def weigh_times(lattice: Lattice, rows: np.ndarray, paired: np.ndarray) -> np.ndarray:
    """Return the mass of arcs and its products with start and end (arcs, places, 3)."""
    ends = np.stack([lattice.times[lattice.source[rows]], lattice.times[lattice.target[rows]]], 1)
    known = np.isfinite(ends).all(1)
    values = np.concatenate([np.ones((len(rows), 1)), np.where(known[:, None], ends, 0)], axis=1)
    return (paired * known[:, None])[..., None] * values[:, None]


def align_forward(
    prepared: Prepared, sequence: np.ndarray, groups: Sequence
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return what each arc leads to beside each place or none, and the expected errors."""
    lattice, places = prepared.lattice, len(sequence)
    gaps = np.concatenate([[0.0], np.cumsum(sequence != 0)])  # cost of the places alone
    cost = np.zeros((lattice.states, places + 1))
    cost[lattice.start] = gaps
    pairs = np.zeros((len(prepared.number), places + 1), dtype=bool)
    skips = np.zeros_like(pairs)
    for rows, firsts, states in groups:
        before, number = cost[lattice.source[rows]], prepared.number[rows, None]
        alone = before + np.where(number != 0, 1 + DELTA, 0)
        beside = np.full_like(alone, np.inf)
        beside[:, 1:] = before[:, :-1] + (number != sequence)
        least = np.minimum.accumulate(np.minimum(alone, beside) - gaps, axis=1) + gaps
        pairs[rows] = beside <= least + NEAR
        skips[rows] = (alone <= least + NEAR) & ~pairs[rows]
        cost[states] = np.add.reduceat(prepared.share[rows, None] * least, firsts)
    return pairs, skips, float(cost[prepared.end, places])


def as_network(
    prepared: Prepared, sequence: np.ndarray, shared: tuple[np.ndarray, np.ndarray]
) -> ConfusionNetwork:
    """Return the network of the places of a sequence, without those that no word stands beside."""
    (shares, spans), timed = shared, prepared.lattice.times is not None
    slots = []
    for place, chosen in enumerate(sequence.tolist()):
        parts = share_out(np.maximum(shares[:, place], 0))
        rows = np.flatnonzero(parts).tolist()
        rows.sort(key=lambda row: (-int(parts[row]), row == 0, row))
        if chosen == 0 and rows == [0]:
            continue
        words = {prepared.words[row]: int(parts[row]) / int(parts.sum()) for row in rows}
        word = prepared.words[chosen]
        span = spans[chosen, place].tolist() if timed and chosen else [np.nan]
        time = None if np.isnan(span).any() else (span[0], span[1])
        slots.append(Slot(words, word, words.get(word, 0.0), time))
    return ConfusionNetwork(prepared.lattice.utt, tuple(slots))
