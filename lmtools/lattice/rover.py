"""ROVER: the outputs of several systems aligned into one network of words, and a vote in each slot
(Fiscus 1997), with the costs and the order of ties of NIST's `rover` (sctk).

Each system gives a word, or none, in every slot. A slot's candidates are compared by alpha times
their share of the votes and 1 - alpha times a confidence; none has the confidence `null`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmtools.types import NO_WORD

# words that differ, a word alone, no word alone, a word beside none
SUBSTITUTED, ALONE, NULL_ALONE, BESIDE_NULL = map(np.float32, (4, 3, 0.001, 1))
FREQUENCY, AVERAGE, MAXIMUM, SHARE = "freq", "average", "maximum", "share"
VOTES = {
    FREQUENCY: "how many systems have it",
    AVERAGE: "mean confidence (rover: meth1)",
    MAXIMUM: "highest confidence (rover: maxconf)",
    SHARE: "share of all confidences (rover: avgconf)",
}


@dataclass(frozen=True)
class Vote:
    """How a slot's word is voted for: by the `method`, `alpha` times the share of votes and
    1 - alpha times the confidence; `null` is the confidence of no word, `trust` what the vote of
    each system counts.
    """

    method: str = FREQUENCY
    alpha: float = 1.0
    null: float = 0.0
    trust: tuple[float, ...] = ()


@dataclass(frozen=True)
class Token:
    """A word of a system's output, or NO_WORD, with its confidence and times in seconds."""

    word: str
    confidence: float = 0.0
    time: tuple[float, float] | None = None


NOTHING = Token(NO_WORD)
Row = tuple[Token, ...]  # of a slot, a token a system


def align_systems(outputs: Sequence[Sequence[Token]]) -> list[Row]:
    """Return the slots of several systems' outputs: each output after the first is aligned with the
    slots of those before it, at the least cost.
    """
    rows = [(token,) for token in outputs[0]]
    for number, output in enumerate(outputs[1:], 1):
        rows = merge_output(rows, output, number)
    return rows


def merge_output(rows: list[Row], output: Sequence[Token], systems: int) -> list[Row]:
    """Return the slots of `systems` systems with one more."""
    merged: list[Row] = []
    for slot, token in trace_back(rows, output):
        if slot is None:
            merged.append((NOTHING,) * systems + (token,))
        else:
            merged.append((*rows[slot], NOTHING if token is None else token))
    return merged


def trace_back(
    rows: Sequence[Row], output: Sequence[Token]
) -> list[tuple[int | None, Token | None]]:
    """Return the alignment of a network with an output, in order: the slot, None for a new one, and
    the token, None for none.

    Every word of a slot is a row of its own in the dynamic programming, as in NIST's: which of
    equal ways is taken depends on it.
    """
    arcs = [(slot, word) for slot, row in enumerate(rows) for word in in_order(row)]
    before, firsts = find_previous(arcs)
    costs, moves = fill_table(arcs, before, output)
    ends = range(firsts[-1], len(arcs) + 1) if rows else range(1)
    arc = min(ends, key=lambda end: costs[end][len(output)])
    place, steps = len(output), []
    while arc or place:
        move, back = moves[arc][place]
        if move == "insert":
            place -= 1
            steps.append((None, output[place]))
            continue
        slot = arcs[arc - 1][0]
        place -= move == "pair"
        steps.append((slot, output[place] if move == "pair" else None))
        arc = back
    return steps[::-1]


def in_order(row: Row) -> list[str]:
    """Return the words of a slot as arcs in NIST's order: that of the systems, but where a system
    opened the slot its word stands first.
    """
    words = [token.word for token in row]
    opener = next((place for place, word in enumerate(words) if word != NO_WORD), 0)
    return [words[opener], *words[:opener], *words[opener + 1 :]]


def find_previous(arcs: Sequence[tuple[int, str]]) -> tuple[list[range], list[int]]:
    """Return for each arc the numbers, from 1, of those of the slot before it (0: the start), and
    the first number of each slot.
    """
    firsts: list[int] = []
    for number, (slot, _) in enumerate(arcs, 1):
        if slot == len(firsts):
            firsts.append(number)
    starts = [0, *firsts, len(arcs) + 1]
    return [range(starts[slot], starts[slot + 1]) for slot, _ in arcs], firsts


def fill_table(arcs, before: Sequence[range], output: Sequence[Token]):
    """Return the least cost of each arc (0: the start) and place of the output, and the move that
    leads there with the arc that it comes from; 32-bit sums, as NIST's.
    """
    costs = [[np.float32(0)]]
    moves: list[list[tuple[str, int]]] = [[("", 0)]]
    for _ in output:
        costs[0].append(costs[0][-1] + ALONE)
        moves[0].append(("insert", 0))
    for (_, word), previous in zip(arcs, before, strict=True):
        alone = NULL_ALONE if word == NO_WORD else ALONE
        from_ = min(previous, key=lambda arc: costs[arc][0])
        row, way = [costs[from_][0] + alone], [("delete", from_)]
        for place, token in enumerate(output, 1):
            deleted = min(previous, key=lambda arc, at=place: costs[arc][at])
            paired = min(previous, key=lambda arc, at=place - 1: costs[arc][at])
            pair = costs[paired][place - 1] + price(word, token.word)
            delete = costs[deleted][place] + alone
            insert = row[-1] + ALONE
            if pair <= delete and pair <= insert:
                row.append(pair)
                way.append(("pair", paired))
            elif delete < insert:
                row.append(delete)
                way.append(("delete", deleted))
            else:
                row.append(insert)
                way.append(("insert", 0))
        costs.append(row)
        moves.append(way)
    return costs, moves


def price(known: str, word: str) -> np.float32:
    """Return the cost of a word beside a word of the network."""
    if known == word:
        return np.float32(0)
    return BESIDE_NULL if known == NO_WORD else SUBSTITUTED


def elect(row: Row, vote: Vote) -> Token:
    """Return the winner of a slot: its word, with the mean confidence and the mean times of the
    systems that have it; the first in order among equals.
    """
    trust = vote.trust or (1.0,) * len(row)
    whole = sum(trust)
    ballots: dict[str, list[tuple[float, Token]]] = {word: [] for word in in_order(row)}
    for token, weight in zip(row, trust, strict=True):
        confidence = vote.null if token.word == NO_WORD else float(np.float32(token.confidence))
        ballots[token.word].append((weight, replace(token, confidence=confidence)))
    confidences = sum(w * t.confidence for votes in ballots.values() for w, t in votes)
    best, top = NO_WORD, -1.0
    for word, votes in ballots.items():
        share = sum(weight for weight, _ in votes) / whole
        score = vote.alpha * share
        if vote.method != FREQUENCY:
            score += (1 - vote.alpha) * measure_confidence(votes, vote.method, confidences)
        if score > top:
            best, top = word, score
    return average(best, ballots[best])


def measure_confidence(
    votes: Sequence[tuple[float, Token]], method: str, confidences: float
) -> float:
    """Return the confidence of a word by the method, from 0 on."""
    if method == MAXIMUM:
        return max(0.0, *(token.confidence for _, token in votes))
    summed = sum(weight * token.confidence for weight, token in votes)
    if method == AVERAGE:
        weights = sum(weight for weight, _ in votes)
        return summed / weights if weights else 0.0
    return summed / confidences if confidences else 0.0


def average(word: str, votes: Sequence[tuple[float, Token]]) -> Token:
    """Return the mean token of a word."""
    timed = [token.time for _, token in votes if token.time is not None]
    time = None
    if timed and word != NO_WORD:
        starts, ends = zip(*timed, strict=True)
        time = (sum(starts) / len(starts), sum(ends) / len(ends))
    return Token(word, sum(token.confidence for _, token in votes) / len(votes), time)


def combine(outputs: Sequence[Sequence[Token]], vote: Vote) -> list[tuple[Row, Token]]:
    """Return each slot of the outputs and its winner."""
    return [(row, elect(row, vote)) for row in align_systems(outputs)]
