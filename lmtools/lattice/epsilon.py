"""Epsilon closures: states that can be reached without a word, as determinisation takes them."""

import heapq
from dataclasses import dataclass

import numpy as np

from lmtools.lattice.order import arcs_by_state, topological
from lmtools.types import Lattice

Chain = tuple | None  # arcs in a row: None, or (the chain before, the last arc)


def unroll_chain(chain: Chain) -> list[int]:
    """Return the arcs of a chain in order; an element that is a chain gives its own arcs."""
    arcs, open_ = [], [chain]
    while open_:
        item = open_.pop()
        if isinstance(item, tuple):
            open_ += item  # the last one comes out first: backwards
        elif item is not None:
            arcs.append(item)
    return arcs[::-1]


class Closures:
    """For each state, those that epsilon arcs lead to by the best way; computed when asked for.

    `scores` (A,) are the arcs' weighted scores. `words_of[state]` are the state's arcs that have a
    word. Impossible arcs are left out of both.
    """

    def __init__(self, lattice: Lattice, scores: np.ndarray):
        self.rank = np.empty(lattice.states, dtype=np.int64)
        self.rank[topological(lattice)] = np.arange(lattice.states)
        self.score, self.target = scores.tolist(), lattice.target.tolist()
        self.words_of: list[list[int]] = []
        self.epsilons_of: list[list[int]] = []
        for arcs in arcs_by_state(lattice.source, lattice.states):
            possible = [arc for arc in arcs if self.score[arc] > -np.inf]
            self.words_of.append([arc for arc in possible if lattice.words[arc] is not None])
            self.epsilons_of.append([arc for arc in possible if lattice.words[arc] is None])

    def of(self, state: int) -> list[tuple[int, float, Chain]]:
        """Return (reached state, score, chain of arcs), itself first, in topological order."""
        if not self.epsilons_of[state]:
            return [(state, 0.0, None)]
        reached, best, open_ = [], {state: (0.0, None)}, [(self.rank[state], state)]
        while open_:
            _, here = heapq.heappop(open_)
            score, chain = best[here]
            reached.append((here, score, chain))
            for arc in self.epsilons_of[here]:
                there, value = self.target[arc], score + self.score[arc]
                if there not in best:
                    heapq.heappush(open_, (self.rank[there], there))
                if there not in best or value > best[there][0]:
                    best[there] = value, (chain, arc)
        return reached


@dataclass(frozen=True)
class Stop:
    """An end after epsilons: the score of both, the chain of arcs, the index of the final state."""

    score: float
    chain: Chain
    final: int


class Stops:
    """The best end within the reach of a state; `finals` (F,) are the weighted scores of ending."""

    def __init__(self, lattice: Lattice, finals: np.ndarray):
        ends = enumerate(zip(lattice.finals.tolist(), finals.tolist(), strict=True))
        self.score = {state: (score, final) for final, (state, score) in ends if score > -np.inf}

    def best(self, reach: list[tuple[int, float, Chain]]) -> Stop | None:
        """Return the best end among `reach`, as Closures.of gives it; None if there is none."""
        stops = [
            Stop(score + self.score[state][0], chain, self.score[state][1])
            for state, score, chain in reach
            if state in self.score
        ]
        return max(stops, key=lambda stop: stop.score, default=None)
