"""Left-to-right LMs on lattices: states are split by history until every arc has one score.

Prefixes of equal futures share a node: KenLM's states, which make n-grams exact at the least work;
neural prefixes are merged by their last words.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from lmtools.base.batching import Numbering
from lmtools.base.errors import UserError
from lmtools.lattice.forward import changes, prune, sweep
from lmtools.lattice.histories import CachedPrefixes, Suffixes
from lmtools.lattice.order import levels, no_path
from lmtools.lattice.weights import total
from lmtools.types import EMPTY, Lattice

STATES = 200_000
ARCS = 16  # as many go with each state of the budget
# Kaldi's graph score without the language model, and the language model's
GRAPH, OLD = "graph", "lm"


class Prefixes(Protocol):
    """A left-to-right LM over the word prefixes of one utterance.

    Nodes are numbers from 0 below 2^31; prefixes with equal nodes have equal futures. `start` is
    the node of the empty prefix.
    """

    start: int

    def words(self, nodes: np.ndarray, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return (N,) natural-log p(word | prefix) and (N,) nodes of the longer prefixes."""

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """Return (N,) natural-log p(end of sentence | prefix)."""


class TooLarge(Exception):
    """The expansion would exceed its budget."""


@dataclass(frozen=True)
class Limits:
    """Limits of an expansion: histories a state within `beam` and among the best `tokens`, and
    `states` states with ARCS times as many arcs.
    """

    beam: float = math.inf
    tokens: int | None = None
    states: int = STATES


def expand(
    lattice: Lattice,
    lms: Mapping[str, Prefixes],
    weights: Mapping[str, float],
    *,
    order: Mapping[str, int | None] = EMPTY,
    old: Prefixes | None = None,
    **limits,
) -> tuple[Lattice, list[str]]:
    """Return the lattice with one more score a language model, on arcs and (end of sentence) on
    finals, and messages for the user, within `limits` as Limits has them.

    States are split by what the models need of the words before; a path keeps its words, scores and
    extras. `order`: where it is None, histories stay apart as long as the model tells them apart,
    and a path's scores are those of its words; n merges histories that share their last n - 1
    words, and what follows is scored after the one of best total (the n-gram approximation). Totals
    are sums from the start by `weights`, which may name the new scores and `words`; a model without
    weight does not count. Arcs without a word keep the history.

    `old` is the model whose score is in `graph`, where Kaldi has both as one cost: it becomes `lm`,
    and `graph` is left with the rest.

    Memory: 100 bytes an arc and 40 more a model; 24 bytes for each distinct pair of a history and a
    word a model; what the models keep. A lattice that exceeds the limits is pruned to half its
    arcs, a quarter ..., and a message says so. UserError for a score's name that is taken, a cycle,
    or no path.
    """
    given = Limits(**limits)
    if old is not None:  # totals of the parted scores, in terms of the sum and of the old model
        weights = {**weights, OLD: weights.get(OLD, 0.0) - weights.get(GRAPH, 0.0)}
    lms = lms if old is None else {**lms, OLD: old}
    refuse_taken(lattice, lms)
    tracks = Tracks(lms, weights, order)
    others = {name: weight for name, weight in weights.items() if name not in lms}
    smaller, messages, arcs = lattice, [], len(lattice.words)
    while True:
        try:
            room = replace(given, states=max(given.states, smaller.states))
            expanded = Expansion(smaller, tracks, others, room).result()
            return expanded if old is None else split_graph(expanded), messages
        except TooLarge:  # a single path always fits
            arcs //= 2
            smaller = prune(lattice, others, arcs=arcs)
            messages = [
                f"{lattice.utt}: splits into more than {given.states} states and"
                f" {ARCS * given.states} arcs; pruned from {len(lattice.words)} to"
                f" {len(smaller.words)} arcs before"
            ]


def refuse_taken(lattice: Lattice, lms: Mapping[str, Prefixes]) -> None:
    """Raise UserError where a new score would hide one of the lattice."""
    if taken := [name for name in lms if name in lattice.scores]:
        raise UserError(
            f"{lattice.utt}: the lattice has a score {taken[0]!r} already; give the language model"
            " another name"
        )


def split_graph(lattice: Lattice) -> Lattice:
    """Return the lattice with `lm` taken out of `graph` (0 where there was none)."""
    rows = [(lattice.scores, len(lattice.words)), (lattice.final_scores, len(lattice.finals))]
    arcs, finals = (
        {**columns, GRAPH: columns.get(GRAPH, np.zeros(size)) - columns[OLD]}
        for columns, size in rows
    )
    return replace(lattice, scores=arcs, final_scores=finals)


class Tracks:
    """Keys of histories: each model's node, and the number of its last words if merged.

    `caches` answer for these numbers, the models' first; `keys` are the places of those that keep
    histories apart.
    """

    def __init__(
        self,
        lms: Mapping[str, Prefixes],
        weights: Mapping[str, float],
        order: Mapping[str, int | None],
    ):
        self.names, self.weights = tuple(lms), [weights.get(name, 0.0) for name in lms]
        self.vocabulary = Numbering()
        lengths = [order.get(name) for name in lms]
        models = [
            *lms.values(),
            *(Suffixes(length - 1) for length in lengths if length is not None),
        ]
        self.caches = [CachedPrefixes(model, self.vocabulary.things) for model in models]
        merging = iter(range(len(lms), len(models)))
        self.keys = [
            place if length is None else next(merging) for place, length in enumerate(lengths)
        ]

    def ids(self, words: Sequence[str | None]) -> np.ndarray:
        """Return the numbers (A,) of words, -1 for none."""
        return np.array(
            [-1 if word is None else self.vocabulary(word) for word in words], dtype=np.int64
        )


class Columns:
    """Columns of equal length to which rows are added."""

    def __init__(self, first: Sequence[np.ndarray]):
        self.size, self.room = len(first[0]), list(first)

    def add(self, values: Sequence[np.ndarray]) -> None:
        size = self.size + len(values[0])
        for place, (column, new) in enumerate(zip(self.room, values, strict=True)):
            if size > len(column):
                column = self.room[place] = np.concatenate(
                    [column, np.empty(size, dtype=new.dtype)]
                )
            column[self.size : size] = new
        self.size = size


class Expansion:
    """One attempt. A token is a lattice's state with one history; a state's tokens are in a row."""

    def __init__(
        self, lattice: Lattice, tracks: Tracks, weights: Mapping[str, float], limits: Limits
    ):
        self.lattice, self.tracks, self.limits = lattice, tracks, limits
        self.base, _ = total(lattice, weights)
        self.word = tracks.ids(lattice.words)
        # token first[s] .. first[s] + count[s] - 1 are of state s
        self.first, self.count = np.zeros((2, lattice.states), dtype=np.int64)
        self.count[lattice.start] = 1
        starts = [lattice.start, *(cache.lm.start for cache in tracks.caches)]
        # forward total, state, its history by track
        self.tokens = Columns([np.zeros(1), *(np.array([start]) for start in starts)])
        # a level: arcs (N,), tokens they leave and enter (N,), scores (models, N)
        self.arcs, self.made = 0, []

    def result(self) -> Lattice:
        """Return the lattice; TooLarge where it would be."""
        for rows, _, _ in sweep(self.lattice.target, levels(self.lattice)):
            self.enter(rows)
        finals, ending = self.spread(np.arange(len(self.lattice.finals)), self.lattice.finals)
        alive = np.zeros(self.tokens.size, dtype=bool)
        alive[ending] = True
        for _, source, target, _ in reversed(self.made):
            alive[source[alive[target]]] = True
        if not alive[0]:
            raise no_path(self.lattice)
        return self.assembled(alive, finals, ending)

    def enter(self, rows: np.ndarray) -> None:
        """Make the tokens of the states, all of one level, that the arcs `rows` lead to."""
        if self.arcs + self.count[self.lattice.source[rows]].sum() > ARCS * self.limits.states:
            raise TooLarge
        arcs, leaving = self.spread(rows, self.lattice.source[rows])
        forward, _, *before = (column[leaving] for column in self.tokens.room)
        scores, histories = self.advanced(before, self.word[arcs])
        forward += self.base[arcs]
        for weight, column in zip(self.tracks.weights, scores, strict=True):
            forward += np.where(column == -np.inf, -np.inf, weight * column) if weight else 0.0
        state = self.lattice.target[arcs]
        chosen, entering = merge_candidates(
            state, [histories[place] for place in self.tracks.keys], forward, self.limits
        )
        kept = np.flatnonzero(entering >= 0)
        self.made.append(
            (arcs[kept], leaving[kept], self.tokens.size + entering[kept], scores[:, kept])
        )
        self.arcs += len(kept)
        self.note(state[chosen])
        self.tokens.add([column[chosen] for column in (forward, state, *histories)])
        if self.tokens.size > self.limits.states:
            raise TooLarge

    def spread(self, rows: np.ndarray, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return `rows` (R,) once for every token of their `states` (R,), and those tokens."""
        counts = self.count[states]
        skipped = np.cumsum(counts) - counts - self.first[states]
        return np.repeat(rows, counts), np.arange(counts.sum()) - np.repeat(skipped, counts)

    def advanced(
        self, before: Sequence[np.ndarray], words: np.ndarray
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return scores (models, N) of words (N,) after histories (N,), and the longer ones."""
        spoken = np.flatnonzero(words >= 0)
        scores = np.zeros((len(before), len(words)))
        for cache, row, history in zip(self.tracks.caches, scores, before, strict=True):
            row[spoken], history[spoken] = cache.words(history[spoken], words[spoken])
        return scores[: len(self.tracks.names)], before

    def note(self, states: np.ndarray) -> None:
        """Note which tokens, about to be added, are of which state; `states` (T,) is sorted."""
        firsts = changes(states)
        self.first[states[firsts]] = self.tokens.size + firsts
        self.count[states[firsts]] = np.diff(firsts, append=len(states))

    def assembled(self, alive: np.ndarray, finals: np.ndarray, ending: np.ndarray) -> Lattice:
        """Return the lattice of tokens `alive`, `ending` (F,) of them final; arcs by source."""
        names, lattice = self.tracks.names, self.lattice
        nothing = (np.zeros(0, dtype=np.int64),) * 3, np.zeros((len(names), 0))
        chunks = [*self.made, (*nothing[0], nothing[1])]
        arcs, source, target, scores = (
            np.concatenate(column, axis=-1) for column in zip(*chunks, strict=True)
        )
        kept = np.flatnonzero(alive[target])
        kept = kept[np.argsort(source[kept], kind="stable")]
        number = np.cumsum(alive) - 1
        _, state, *histories = (column[: self.tokens.size] for column in self.tokens.room)
        ends = [
            cache.end(history[ending])
            for cache, history in zip(self.tracks.caches, histories, strict=False)
        ]
        taken = lattice.take(
            arcs[kept], finals, states=int(alive.sum()), start=0, source=number[source[kept]],
            target=number[target[kept]], finals=number[ending],
            times=None if lattice.times is None else lattice.times[state[alive]],
        )  # fmt: skip
        final_scores = {**taken.final_scores, **dict(zip(names, ends, strict=False))}
        return replace(
            taken,
            scores={**taken.scores, **dict(zip(names, scores[:, kept], strict=True))},
            final_scores=final_scores,
        )


def merge_candidates(
    state: np.ndarray, keys: Sequence[np.ndarray], forward: np.ndarray, limits: Limits
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best candidate (T,) of each state and keys, and for each candidate (N,) its place
    there, -1 for those that the limits drop.
    """
    order = np.lexsort((-forward, *keys, state))
    differs = np.zeros(len(order), dtype=bool)
    differs[:1] = True
    for column in (state, *keys):
        differs[1:] |= np.diff(column[order]) != 0
    chosen = order[differs]
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(differs) - 1
    keep = within_limits(state[chosen], forward[chosen], limits)
    return chosen[keep], np.where(keep, np.cumsum(keep) - 1, -1)[group]


def within_limits(state: np.ndarray, forward: np.ndarray, limits: Limits) -> np.ndarray:
    """Return which tokens (T,) bool, sorted by state, stay."""
    if limits.beam == math.inf and limits.tokens is None:
        return np.ones(len(state), dtype=bool)
    order = np.lexsort((-forward, state))
    firsts = changes(state)
    sizes = np.diff(firsts, append=len(state))
    rank = np.empty(len(state), dtype=np.int64)
    rank[order] = np.arange(len(state)) - np.repeat(firsts, sizes)
    best = np.repeat(forward[order[firsts]], sizes)
    most = len(state) if limits.tokens is None else limits.tokens
    return (forward >= best - limits.beam) & (rank < most)
