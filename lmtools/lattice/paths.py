"""The best path, and the exact n best distinct word sequences."""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lmtools.lattice.forward import backward, forward
from lmtools.lattice.order import Chain, Closures, Stop, Stops, levels, no_path, unroll_chain
from lmtools.lattice.weights import WORDS, check_arguments, total
from lmtools.types import TOTAL, Hypothesis, Lattice, NBest


@dataclass(frozen=True)
class Path:
    """A way through a lattice: words, arcs, the index of its end in `finals`, weighted score."""

    words: tuple[str, ...]
    arcs: tuple[int, ...]
    final: int
    score: float


@check_arguments
def best(lattice: Lattice, weights: Mapping[str, float]) -> Path:
    """Return the path of the highest score; UserError for none possible or a cycle."""
    return nbest(lattice, weights, 1)[0]


@check_arguments
def nbest(lattice: Lattice, weights: Mapping[str, float], n: int) -> list[Path]:
    """Return the n best distinct word sequences, or all, best first, each with its best path;
    exact.

    A* over sets of states that the same words lead to, so that each sequence comes out once; what a
    set's best path still has to score is known exactly, so at most n x (words of a sequence) sets
    are opened. Equal scores come in an order that depends on the lattice alone, not on n: a shorter
    list is the beginning of a longer one. UserError where no path is possible or there is a cycle.
    """
    search = Search(lattice, weights)
    more = 4 * n
    while search.narrow(more):
        if len(paths := search.first(n)) == n:
            return paths
        more *= 8
    return search.first(n)


# where the same words lead to: the score of the best way there, and the way
States = dict[int, tuple[float, Chain]]


class Search:
    """The n-best search in one lattice, perhaps among the best of its arcs.

    Losses are whole quanta of 1e-13 of the scores, each set's added to its predecessor's: as
    floats, scores that tie would differ in their last digits, and the search would open all of
    exponentially many ties before it finished one.
    """

    SLACK = 1000  # quanta that rounding may amount to

    def __init__(self, lattice: Lattice, weights: Mapping[str, float]):
        self.lattice, self.words = lattice, lattice.words
        self.arcs, self.finals = total(lattice, weights)
        level = levels(lattice)
        rest = backward(lattice, self.arcs, self.finals, level=level)
        self.best = float(rest[lattice.start])
        if self.best == -np.inf:
            raise no_path(lattice)
        self.rest, self.stops = rest.tolist(), Stops(lattice, self.finals)
        self.arc_losses = self.best - (
            forward(lattice, self.arcs, level=level)[lattice.source]
            + self.arcs
            + rest[lattice.target]
        )
        near = self.arc_losses <= self.arc_losses.min(initial=0) + 1e-6 * (1 + abs(self.best))
        self.quantum = 1e-13 * (1 + max(abs(self.best), np.abs(self.arcs[near]).max(initial=0)))

    def narrow(self, more: int) -> bool:
        """Leave out arcs but about `more` beside the best paths; False if none is: all are back."""
        slack = self.SLACK * self.quantum
        losses = np.sort(self.arc_losses[self.arc_losses < np.inf])
        place = int(np.searchsorted(losses, slack, side="right")) + more
        beam = losses[place] if place < len(losses) else np.inf
        # the loss up to which no sentence lacks a path
        self.limit = beam / self.quantum + self.SLACK
        self.closures = Closures(
            self.lattice, np.where(self.arc_losses <= beam + 2 * slack, self.arcs, -np.inf)
        )
        self.steps: dict[int, tuple[list, Stop | None]] = {}
        return beam < np.inf

    def first(self, n: int) -> list[Path]:
        """Return the n best paths; none that is certain only with the arcs left out."""
        # a heap: minus the n smallest losses of sequences that exist; nothing beyond is wanted
        known = [-math.inf] * (n - 1) + [0]
        # by loss; of equals the last one: ties are finished one by one
        open_: list = [(0, 0, {self.lattice.start: (0.0, None)})]
        paths: list[Path] = []
        count = 0
        while open_ and len(paths) < n and open_[0][0] <= self.limit:
            loss, _, item = heapq.heappop(open_)
            if isinstance(item, Path):
                worst = paths[-1].score if paths else math.inf
                # what ties may differ in the last digit
                paths.append(item if item.score <= worst else replace(item, score=worst))
                continue
            ranked = self.ranked(
                loss, self.followers(item, self.best + self.quantum * (known[0] - self.SLACK))
            )
            for new, _, _ in ranked[1:]:  # the first one is the sequence that `item` was known by
                heapq.heappushpop(known, -new)
            for new, _, follower in reversed(ranked):
                if new <= -known[0]:
                    count += 1
                    heapq.heappush(open_, (new, -count, follower))
        return paths

    def ranked(
        self, loss: int, followers: list[tuple[float, str, "States | Path"]]
    ) -> list[tuple[int, str, "States | Path"]]:
        """Return the followers of a set with losses, best first, from the set's `loss` on."""
        top = max((score for score, _, _ in followers), default=0)
        ranked = [
            (loss + round((top - score) / self.quantum), word, follower)
            for score, word, follower in followers
        ]
        return sorted(ranked, key=lambda follower: follower[:2])

    def followers(self, states: States, floor: float) -> list[tuple[float, str, "States | Path"]]:
        """Return (score, next word, states) after a set, and (score, "", finished path)."""
        sets: dict[str, States] = {}
        end = (-np.inf, None, 0)
        # what `floor` left out must not change the order
        for state, (score, way) in sorted(states.items()):
            steps, stop = self.after(state)
            if stop and score + stop.score > end[0]:
                end = (score + stop.score, (way, stop.chain), stop.final)
            for word, target, step, chain in steps:
                there = score + step
                if there + self.rest[target] >= floor:
                    reached = sets.setdefault(word, {})
                    if target not in reached or there > reached[target][0]:
                        reached[target] = there, (way, chain)
        result = [
            (max(score + self.rest[s] for s, (score, _) in reached.items()), word, reached)
            for word, reached in sets.items()
        ]
        return result + (
            [(end[0], "", self.path(*end[1:]))] if end[1] is not None and end[0] >= floor else []
        )

    def after(self, state: int) -> tuple[list[tuple[str, int, float, Chain]], Stop | None]:
        """Return the best step from a state for each word and next state, and the best end."""
        if state not in self.steps:
            reach = self.closures.of(state)
            steps = {}
            for here, score, chain in reach:
                for arc in self.closures.words_of[here]:
                    key = (self.words[arc], self.closures.target[arc])
                    step = score + self.closures.score[arc]
                    if self.rest[key[1]] > -np.inf and (key not in steps or step > steps[key][0]):
                        steps[key] = step, (chain, arc)
            self.steps[state] = (
                [(*key, *step) for key, step in steps.items()],
                self.stops.best(reach),
            )
        return self.steps[state]

    def path(self, way: Chain, final: int) -> Path:
        """Return the finished path of a way; its score is summed anew, whatever the search had."""
        arcs = tuple(unroll_chain(way))
        words = tuple(self.words[arc] for arc in arcs if self.words[arc] is not None)
        return Path(
            words,
            arcs,
            final,
            math.fsum([*self.arcs[list(arcs)].tolist(), float(self.finals[final])]),
        )


@check_arguments
def as_nbest(
    lattice: Lattice,
    weights: Mapping[str, float],
    n: int,
    ref: str | None = None,
    total: bool = False,
) -> NBest:
    """Return the n best distinct hypotheses with the unweighted sums of their best paths; `total`
    adds the weighted one. A lattice without arcs and scores gets 0 for the names in `weights`, as
    all lists of a set.
    """
    none = {} if lattice.words else {name: 0.0 for name in weights if name != WORDS}
    hyps = []
    for path in nbest(lattice, weights, n):
        scores = sums(lattice, path) or none
        hyps.append(
            Hypothesis(" ".join(path.words), {**scores, TOTAL: path.score} if total else scores)
        )
    return NBest(lattice.utt, tuple(hyps), ref)


def sums(lattice: Lattice, path: Path) -> dict[str, float]:
    """Return each named score summed along a path and its end."""
    arcs = list(path.arcs)
    return {
        name: math.fsum([*column[arcs].tolist(), float(lattice.final_scores[name][path.final])])
        for name, column in lattice.scores.items()
    }
