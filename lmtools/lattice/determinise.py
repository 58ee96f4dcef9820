"""The lattice in which every word sequence is one path."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lmtools.base.errors import UserError
from lmtools.lattice.arguments import check_arguments
from lmtools.lattice.forward import backward
from lmtools.lattice.order import Closures, Stops, no_path, trim, unroll_chain
from lmtools.lattice.weights import total
from lmtools.types import Lattice, rows_of

STATES = 100_000
DIGITS = 6  # after the point: scores that agree so far are the same
Scores = tuple[float, ...]  # the weighted score, then the named ones


@dataclass(frozen=True)
class Step:
    """From a set of states (by number) with a word to another, paying `scores`."""

    source: int
    target: int
    word: str
    scores: Scores


@check_arguments
def determinise(lattice: Lattice, weights: Mapping[str, float], states: int = STATES) -> Lattice:
    """Return the trimmed lattice with each word sequence once, scored as its best path under
    `weights`.

    No epsilons, and no two arcs of a state with the same word. Which part of a path's scores stands
    on which arc is arbitrary, their sum is not; extras are dropped, for an arc here stands for
    several there; a state's time is that of the best way to it. There can be exponentially many
    states: over `states` of them a UserError says so and advises pruning. A UserError too where
    there is a cycle or no possible path.
    """
    lattice = trim(lattice)
    builder = Builder(lattice, weights)
    ends: dict[int, Scores] = {}
    steps: list[Step] = []
    done = 0
    while done < len(builder.sets):
        followers, end = builder.after(builder.sets[done])
        if end:
            ends[done] = end
        for word, reached in followers.items():
            scores, rest = split_scores(reached)
            steps.append(Step(done, builder.number(rest), word, scores))
        if len(builder.sets) > states:
            raise UserError(
                f"{lattice.utt}: more than {states} states when determinised; prune it first, or"
                " allow more"
            )
        done += 1
    return build_lattice(lattice, builder.times(), steps, ends)


def split_scores(reached: dict[int, Scores]) -> tuple[Scores, dict[int, Scores]]:
    """Return the scores of the best way into a set, to be paid at once, and how the others differ;
    a named score of -inf, which nothing makes up for later, stays with its states.
    """
    best = max(reached.values(), key=lambda scores: scores[0])
    paid = tuple(score if score > -np.inf else 0.0 for score in best)
    return paid, {
        state: tuple(map(float.__sub__, scores, paid)) for state, scores in reached.items()
    }


class Builder:
    """The sets of states met so far, what each one's ways still pay, and the way on from each."""

    def __init__(self, lattice: Lattice, weights: Mapping[str, float]):
        arcs, finals = total(lattice, weights)
        self.lattice = lattice
        self.rest = backward(lattice, arcs, finals).tolist()
        if self.rest[lattice.start] == -np.inf:
            raise no_path(lattice)
        self.closures, self.stops = Closures(lattice, arcs), Stops(lattice, finals)
        self.arcs = rows_of(
            {"": arcs, **{f".{name}": column for name, column in lattice.scores.items()}}, len(arcs)
        )
        self.finals = rows_of(
            {"": finals, **{f".{name}": column for name, column in lattice.final_scores.items()}},
            len(finals),
        )
        self.sets: list[dict[int, Scores]] = []
        self.numbers: dict[tuple, int] = {}
        self.number({lattice.start: (0.0,) * (1 + len(lattice.scores))})

    def number(self, states: dict[int, Scores]) -> int:
        """Return the number of a set, a new one if none has the same scores to pay."""
        key = tuple(
            (state, *(round(score, DIGITS) for score in states[state])) for state in sorted(states)
        )
        if key not in self.numbers:
            self.numbers[key] = len(self.sets)
            self.sets.append(states)
        return self.numbers[key]

    def after(
        self, states: dict[int, Scores]
    ) -> tuple[dict[str, dict[int, Scores]], Scores | None]:
        """Return the best scores into each state by next word, and those of ending here or None."""
        followers: dict[str, dict[int, Scores]] = {}
        ends = []
        for state, paid in states.items():
            reach = self.closures.of(state)
            for here, _, chain in reach:
                scores = self.added(paid, *(self.arcs[arc] for arc in unroll_chain(chain)))
                for arc in self.closures.words_of[here]:
                    self.enter(followers, arc, scores)
            if stop := self.stops.best(reach):
                ends.append(
                    self.added(
                        paid,
                        *(self.arcs[arc] for arc in unroll_chain(stop.chain)),
                        self.finals[stop.final],
                    )
                )
        return followers, max(ends, key=lambda scores: scores[0], default=None)

    def enter(self, followers: dict[str, dict[int, Scores]], arc: int, scores: Scores) -> None:
        """Note a way over `arc` from where `scores` are paid, if it is possible and the best."""
        target = self.closures.target[arc]
        if self.rest[target] > -np.inf:
            reached = followers.setdefault(self.lattice.words[arc], {})
            there = self.added(scores, self.arcs[arc])
            if target not in reached or there[0] > reached[target][0]:
                reached[target] = there

    @staticmethod
    def added(*rows: Scores) -> Scores:
        return tuple(map(sum, zip(*rows, strict=True))) if len(rows) > 1 else rows[0]

    def times(self) -> np.ndarray | None:
        if self.lattice.times is None:
            return None
        return self.lattice.times[
            [max(states, key=lambda state: states[state][0]) for states in self.sets]
        ]


def build_lattice(
    lattice: Lattice, times: np.ndarray | None, steps: list[Step], ends: dict[int, Scores]
) -> Lattice:
    """Return the trimmed lattice of these steps and ends; the first set is the start."""
    width = 1 + len(lattice.scores)
    columns = np.array([step.scores for step in steps]).reshape(len(steps), width)
    final_columns = np.array(list(ends.values())).reshape(len(ends), width)
    return trim(
        Lattice(
            utt=lattice.utt,
            states=1 + max((step.target for step in steps), default=0),
            start=0,
            source=np.array([step.source for step in steps], dtype=np.int64),
            target=np.array([step.target for step in steps], dtype=np.int64),
            words=tuple(step.word for step in steps),
            scores={name: columns[:, n] for n, name in enumerate(lattice.scores, 1)},
            finals=np.array(list(ends), dtype=np.int64),
            final_scores={name: final_columns[:, n] for n, name in enumerate(lattice.scores, 1)},
            times=times,
            header=lattice.header,
        )
    )
