"""Small random lattices and what brute force says of them."""

import math
import random
from collections.abc import Mapping

from lmtools import Arc, Final, Lattice

WORDS = ("a", "b", "c")
# a path: its words, its arcs, its place among the finals
Way = tuple[tuple[str, ...], tuple[int, ...], int]


def random_lattice(
    rng: random.Random | int,
    states: int = 8,
    arcs: int = 16,
    words=WORDS,
    epsilons: float = 0.2,
    impossible: float = 0.0,
) -> Lattice:
    """An acyclic lattice of at most this size with scores `am` and `lm`, at least one path, and
    every oddity that is valid.

    States are numbered at random, some dead or unreachable, arcs parallel, finals several (with
    arcs out of them too), a share `epsilons` of the arcs without a word. Half of the lattices have
    multiples of 1/4 as scores, so that totals tie and add up exactly; a share `impossible` of the
    scores is -inf (a path may then be impossible, though one is there). Some have times, some
    extras.
    """
    rng = rng if isinstance(rng, random.Random) else random.Random(rng)
    while True:
        lattice = drawn(
            rng, rng.randint(1, states), rng.randint(0, arcs), words, epsilons, impossible
        )
        if all_paths(lattice):
            return lattice


def drawn(
    rng: random.Random, states: int, arcs: int, words, epsilons: float, impossible: float
) -> Lattice:
    """A lattice of this size, perhaps without a path."""
    ties, annotated, timed = rng.random() < 0.5, rng.random() < 0.3, rng.random() < 0.5
    # of the state at each place in an order without turning back
    number = rng.sample(range(states), states)

    def scores() -> dict[str, float]:
        drawn = {name: -rng.randrange(6) / 4 if ties else rng.gauss(-1, 1) for name in ("am", "lm")}
        return {
            name: -math.inf if rng.random() < impossible else value for name, value in drawn.items()
        }

    rows = []
    for index in range(arcs if states > 1 else 0):
        here = rng.randrange(states - 1)
        there = min(here + rng.choice((1, 1, 2, 3)), states - 1)
        word = None if rng.random() < epsilons else rng.choice(words)
        rows.append(
            Arc(
                number[here],
                number[there],
                word,
                scores(),
                {"id": f"arc {index}"} if annotated else {},
            )
        )
    first = rng.choice((0, 0, 0, min(1, states - 1)))  # not always a state that nothing leads to
    finals = {states - 1, *(place for place in range(states) if rng.random() < 0.15)}
    ends = [
        Final(number[place], scores(), {"id": f"end {place}"} if annotated else {})
        for place in sorted(finals)
    ]
    times = [0.25 * number.index(state) for state in range(states)] if timed else None
    return Lattice.of(f"utt{rng.randrange(100)}", states, number[first], rows, ends, times)


def all_paths(lattice: Lattice) -> list[Way]:
    """Every path from the start to a final state."""
    leaving = [[] for _ in range(lattice.states)]
    for arc, source in enumerate(lattice.source.tolist()):
        leaving[source].append(arc)
    ends = {state: place for place, state in enumerate(lattice.finals.tolist())}
    found, open_ = [], [(lattice.start, ())]
    while open_:
        state, arcs = open_.pop()
        if state in ends:
            found.append((words_of(lattice, arcs), arcs, ends[state]))
        open_ += [(int(lattice.target[arc]), (*arcs, arc)) for arc in leaving[state]]
    return found


def words_of(lattice: Lattice, arcs) -> tuple[str, ...]:
    return tuple(lattice.words[arc] for arc in arcs if lattice.words[arc] is not None)


def named_sums(lattice: Lattice, arcs, final: int) -> dict[str, float]:
    """The sum of each named score along a path."""
    return {
        name: math.fsum([*(column[arc] for arc in arcs), lattice.final_scores[name][final]])
        for name, column in lattice.scores.items()
    }


def path_score(lattice: Lattice, weights: Mapping[str, float], arcs, final: int) -> float:
    """The weighted score of a path; `words` counts, a score of weight 0 does not."""
    sums = {**named_sums(lattice, arcs, final), "words": len(words_of(lattice, arcs))}
    used = {name: weight for name, weight in weights.items() if weight}
    if any(sums[name] == -math.inf for name in used):
        return -math.inf
    return math.fsum(weight * sums[name] for name, weight in used.items())


def sentences(lattice: Lattice, weights: Mapping[str, float]) -> dict[tuple[str, ...], float]:
    """The score of the best path of each word sequence that has one of finite score."""
    best: dict[tuple[str, ...], float] = {}
    for words, arcs, final in all_paths(lattice):
        score = path_score(lattice, weights, arcs, final)
        if score > best.get(words, -math.inf):
            best[words] = score
    return best
