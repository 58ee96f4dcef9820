"""The path nearest to a reference: what the best possible rescoring of a lattice would reach."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmtools.lattice.arguments import check_arguments, list_words
from lmtools.lattice.forward import sweep
from lmtools.lattice.order import arcs_by_state, levels, no_path
from lmtools.types import Lattice

# in a cost, errors come before the words of the reference that were missed: errors * ERROR + missed
ERROR = 1 << 32
SUBSTITUTION, DELETION, INSERTION = ERROR + 1, ERROR + 1, ERROR
NEVER = np.iinfo(np.int64).max // 4


@dataclass(frozen=True)
class Oracle:
    """The errors of the path nearest to the reference, and the path: its words and arcs."""

    substitutions: int
    deletions: int
    insertions: int
    words: tuple[str, ...]
    arcs: tuple[int, ...]

    @property
    def errors(self) -> int:
        """Return substitutions, deletions and insertions together."""
        return self.substitutions + self.deletions + self.insertions


@check_arguments
def oracle(lattice: Lattice, ref: Sequence[str]) -> Oracle:
    """Return the path of the fewest errors (Levenshtein) against the words of `ref`, whatever its
    scores.

    Among those of the fewest errors one with the most correct words; further ties depend on the
    lattice alone. Takes memory of 8 bytes x states x (reference words + 1). UserError where there
    is no path or a cycle.
    """
    ref = list_words(ref, "ref")
    numbers = {word: number for number, word in enumerate(dict.fromkeys(ref))}
    reference = np.array([numbers[word] for word in ref], dtype=np.int64)
    words = np.array(
        [-2 if word is None else numbers.get(word, -1) for word in lattice.words], dtype=np.int64
    )
    cost = costs(lattice, words, reference)
    ends = cost[lattice.finals, len(ref)]
    if not len(ends) or ends.min() >= NEVER:
        raise no_path(lattice)
    counts, arcs = trace_path(
        lattice, words, reference, cost, state=int(lattice.finals[ends.argmin()])
    )
    return Oracle(
        *counts,
        tuple(lattice.words[arc] for arc in arcs if lattice.words[arc] is not None),
        tuple(arcs),
    )


def costs(lattice: Lattice, words: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the least cost (S, R + 1) of a way from the start to each state against the first r
    words.

    `reference` (R,) are numbers, `words` (A,) the arcs' words by the same numbers, -1 for others,
    -2 for epsilon.
    """
    deleted = DELETION * np.arange(len(reference) + 1)
    cost = np.full((lattice.states, len(reference) + 1), NEVER)
    cost[lattice.start] = deleted
    for rows, firsts, states in sweep(lattice.target, levels(lattice), lowest=1):
        before, word = cost[lattice.source[rows]], words[rows, None]  # (rows, R + 1), (rows, 1)
        after = before + INSERTION * (word != -2)
        paired = before[:, :-1] + SUBSTITUTION * (word != reference)
        np.minimum(after[:, 1:], np.where(word == -2, NEVER, paired), out=after[:, 1:])
        best = np.minimum.reduceat(after, firsts)
        best = np.minimum.accumulate(best - deleted, axis=1) + deleted
        cost[states] = np.minimum(best, NEVER)
    return cost


def trace_path(
    lattice: Lattice, words: np.ndarray, reference: np.ndarray, cost: np.ndarray, *, state: int
) -> tuple[list[int], list[int]]:
    """Return [substitutions, deletions, insertions] of a cheapest way to `state`, and its arcs."""
    entering, sources = arcs_by_state(lattice.target, lattice.states), lattice.source.tolist()
    place, counts, arcs = len(reference), [0, 0, 0], []
    while state != lattice.start or place:
        here, tried = cost[state, place], [(None, 1, DELETION, state)] if place else []
        tried += [
            (arc, *step, sources[arc])
            for arc in entering[state]
            for step in steps(int(words[arc]), reference, place)
        ]
        arc, back, price, state = next(
            step for step in tried if cost[step[3], place - step[1]] + step[2] == here
        )
        if price:
            counts[1 if arc is None else 0 if back else 2] += 1
        if arc is not None:
            arcs.append(arc)
        place -= back
    return counts, arcs[::-1]


def steps(word: int, reference: np.ndarray, place: int) -> list[tuple[int, int]]:
    """Return the ways to align an arc's word at a place of the reference: pairs of the number of
    reference words that it takes and the price.
    """
    if word == -2:
        return [(0, 0)]
    paired = [(1, SUBSTITUTION * int(word != reference[place - 1]))] if place else []
    return [*paired, (0, INSERTION)]
