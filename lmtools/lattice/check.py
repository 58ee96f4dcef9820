"""Problems of a lattice, and the nearest lattice that has none."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lmtools.lattice.order import alive, arcs_by_state, reachable, trim
from lmtools.lattice.weights import check_arguments
from lmtools.types import Final, Lattice

ERROR, HINT = "error", "hint"
IMPOSSIBLE = "impossible score"
HINTS = {IMPOSSIBLE, "unreachable state", "dead state", "time running backwards"}
# kind of problem, which places (bool) have it, what to say of one
Row = tuple[str, Sequence | np.ndarray, str | Callable[[int], str]]


@dataclass(frozen=True)
class LatticeProblem:
    """Problem, its count, the first case; an `error` stops algorithms, a `hint` does not."""

    kind: str
    count: int
    example: str
    severity: str = ERROR

    def __str__(self) -> str:
        return f"{self.severity}: {self.kind}: {self.count}, first {self.example}"


@check_arguments
def problems(lattice: Lattice) -> list[LatticeProblem]:
    """Return everything wrong with a lattice, the worst first; cycles only once the ends of arcs
    exist.

    Errors: no states, no start, a state that does not exist, no final state, repeated finals, no
    path, self loops, cycles, NaN and +inf scores, empty words and words with white space. Hints:
    -inf scores (impossible arcs), unreachable states, dead states (no way to the end), times that
    run backwards along an arc.
    """
    shape = collect_problems(find_ends(lattice))
    broken = any(problem.kind in ("no states", "no start", "no such state") for problem in shape)
    rest = collect_problems(() if broken else (*find_ways(lattice), *find_loops(lattice)))
    rest += collect_problems((*find_values(lattice), *find_words(lattice)))
    return sorted(shape + rest, key=lambda problem: problem.severity != ERROR)


def collect_problems(rows: Iterable[Row]) -> list[LatticeProblem]:
    problems = []
    for kind, where, example in rows:
        places = np.flatnonzero(where)
        if len(places):
            text = example if isinstance(example, str) else example(int(places[0]))
            severity = HINT if kind in HINTS else ERROR
            problems.append(LatticeProblem(kind, len(places), text, severity))
    return problems


def find_ends(lattice: Lattice) -> Iterator[Row]:
    """Yield rows of the start, the finals and the states that arcs name."""
    start = f"state {lattice.start} of {lattice.states}"
    finals = partial(describe_final, lattice)
    yield "no states", [lattice.states < 1], "the whole lattice"
    yield "no start", [not 0 <= lattice.start < lattice.states], start
    yield "no final state", [not len(lattice.finals)], "the whole lattice"
    yield "no such state", ~are_arcs(lattice), partial(describe_arc, lattice)
    yield "no such state", ~inside(lattice, lattice.finals), finals
    repeated = find_repeated(lattice.finals)
    yield "repeated final state", repeated, lambda final: f"state {lattice.finals[final]}"


def find_ways(lattice: Lattice) -> Iterator[Row]:
    reached, living = reachable(lattice), alive(lattice)
    lost = len(lattice.finals) and not living[lattice.start]
    yield "no path", [lost], f"from state {lattice.start} to a final state"
    yield "unreachable state", ~reached, "state {}".format
    yield "dead state", reached & ~living, "state {}".format


def find_loops(lattice: Lattice) -> Iterator[Row]:
    """Yield rows of arcs that lead back: self loops, and longer cycles by the arcs closing them."""
    looping, closing = lattice.source == lattice.target, find_closing_arcs(lattice)
    yield "self loop", looping, partial(describe_arc, lattice)
    yield "cycle", closing & ~looping, lambda arc: f"closed by {describe_arc(lattice, arc)}"


def find_values(lattice: Lattice) -> Iterator[Row]:
    kinds = {"NaN score": np.isnan, "infinite score": np.isposinf, IMPOSSIBLE: np.isneginf}
    sides = ((lattice.scores, describe_arc), (lattice.final_scores, describe_final))
    for kind, test in kinds.items():
        for columns, describe in sides:
            for name, column in columns.items():
                yield kind, test(column), lambda at, n=name, d=describe: f"{n} of {d(lattice, at)}"
    if lattice.times is not None:
        known = are_arcs(lattice)
        back = np.zeros(len(known), dtype=bool)
        back[known] = lattice.times[lattice.target[known]] < lattice.times[lattice.source[known]]
        yield "time running backwards", back, partial(describe_arc, lattice)


def find_words(lattice: Lattice) -> Iterator[Row]:
    split = [(word, None if word is None else word.split()) for word in lattice.words]
    yield "empty word", [parts == [] for _, parts in split], partial(describe_arc, lattice)
    spaced = [bool(parts) and parts != [word] for word, parts in split]
    yield "white space in a word", spaced, partial(describe_arc, lattice)


def describe_arc(lattice: Lattice, arc: int) -> str:
    word = "epsilon" if lattice.words[arc] is None else repr(lattice.words[arc])
    return f"arc {arc} ({lattice.source[arc]} -> {lattice.target[arc]}, {word})"


def describe_final(lattice: Lattice, final: int) -> str:
    return f"final state {lattice.finals[final]}"


def inside(lattice: Lattice, states: np.ndarray) -> np.ndarray:
    return (states >= 0) & (states < lattice.states)


def are_arcs(lattice: Lattice) -> np.ndarray:
    """Return which arcs (A,) bool have both ends among the states."""
    return inside(lattice, lattice.source) & inside(lattice, lattice.target)


def find_repeated(values: np.ndarray) -> np.ndarray:
    """Find which values occurred before, (N,) bool."""
    first = np.zeros(len(values), dtype=bool)
    first[np.unique(values, return_index=True)[1]] = True
    return ~first


def find_closing_arcs(lattice: Lattice) -> np.ndarray:
    """Find the arcs (A,) bool that close a cycle in a depth-first search of all states."""
    arcs_of, target = arcs_by_state(lattice.source, lattice.states), lattice.target.tolist()
    closing = np.zeros(len(target), dtype=bool)
    new, open_, done = range(3)
    mark = [new] * lattice.states
    for root in [lattice.start, *range(lattice.states)]:
        if mark[root] != new:
            continue
        mark[root] = open_
        way = [(root, iter(arcs_of[root]))]
        while way:
            state, arcs = way[-1]
            arc = next(arcs, None)
            if arc is None:
                mark[state] = done
                way.pop()
            elif mark[target[arc]] == open_:
                closing[arc] = True
            elif mark[target[arc]] == new:
                mark[target[arc]] = open_
                way.append((target[arc], iter(arcs_of[target[arc]])))
    return closing


@check_arguments
def repair(lattice: Lattice) -> tuple[Lattice, list[str]]:
    """Return the nearest trimmed lattice without problems but times, and a phrase for each thing
    done.

    Arcs and finals go that name states that do not exist or have NaN or infinite scores, repeated
    finals but the first, and the arcs that close cycles; a word of white space becomes an epsilon,
    white space within a word "_". Without a path, it becomes the lattice of the empty sentence with
    scores 0.
    """
    if lattice.states < 1 or not 0 <= lattice.start < lattice.states:
        return empty_sentence(lattice), ["no start: made it the empty sentence"]
    done: list[str] = []
    lattice = clean_words(lattice, done)
    drops = [
        ("arc", are_arcs(lattice), "of states that do not exist"),
        ("arc", finite(lattice.scores, len(lattice.words)), "with impossible scores"),
        ("final state", inside(lattice, lattice.finals), "that does not exist"),
        ("final state", ~find_repeated(lattice.finals), "given twice"),
        (
            "final state",
            finite(lattice.final_scores, len(lattice.finals)),
            "with impossible scores",
        ),
    ]
    keep = {
        kind: np.all([good for of, good, _ in drops if of == kind], axis=0)
        for kind in ("arc", "final state")
    }
    done += [
        f"dropped {plural(np.sum(~good), kind)} {reason}"
        for kind, good, reason in drops
        if not good.all()
    ]
    lattice = lattice.take(np.flatnonzero(keep["arc"]), np.flatnonzero(keep["final state"]))
    if not len(lattice.finals) or not alive(lattice)[lattice.start]:
        return empty_sentence(lattice), [*done, "no path: made it the empty sentence"]
    return acyclic(lattice, done), done


def drop_unusable(lattice: Lattice) -> tuple[Lattice, list[str]]:
    """Return the lattice, or the nearest one that algorithms can work on, and what was done."""
    if not any(problem.severity == ERROR for problem in problems(lattice)):
        return lattice, []
    better, done = repair(lattice)
    return better, [f"{lattice.utt}: {', '.join(done)}"]


def clean_words(lattice: Lattice, done: list[str]) -> Lattice:
    words = tuple(
        None if word is None else "_".join(word.split()) or None for word in lattice.words
    )
    if changed := sum(a != b for a, b in zip(words, lattice.words, strict=True)):
        done.append(f"took white space out of {plural(changed, 'word')}")
    return lattice.take(np.arange(len(words)), np.arange(len(lattice.finals)), words=words)


def acyclic(lattice: Lattice, done: list[str]) -> Lattice:
    """Return the trimmed lattice without arcs that close cycles; the start leads to the end."""
    back = find_closing_arcs(lattice)
    if back.any():
        done.append(f"cut {plural(back.sum(), 'arc')} that closed cycles")
    before = lattice.take(np.flatnonzero(~back), np.arange(len(lattice.finals)))
    after = trim(before)
    if after.states < before.states or len(after.words) < len(before.words):
        states, arcs = before.states - after.states, len(before.words) - len(after.words)
        done.append(
            f"dropped {plural(states, 'state')} and {plural(arcs, 'arc')} that are on no path"
        )
    return after


def empty_sentence(lattice: Lattice) -> Lattice:
    """Return the lattice of one state that is start and end, with the same score names."""
    finals = [Final(0, dict.fromkeys(lattice.scores, 0.0))]
    return Lattice.of(lattice.utt, 1, 0, [], finals=finals, header=lattice.header)


def finite(scores, count: int) -> np.ndarray:
    """Return which rows have finite scores only, (count,) bool."""
    return np.all([np.ones(count, dtype=bool), *map(np.isfinite, scores.values())], axis=0)


def plural(count: int, noun: str) -> str:
    """Return `1 arc`, `2 arcs`."""
    return f"{count} {noun}" + ("" if count == 1 else "s")
