"""ROVER: the outputs of several systems aligned into one network of words, and a vote in each slot
(Fiscus 1997), with the costs and the order of ties of NIST's `rover` (sctk).

Each system gives a word, or none, in every slot. A slot's candidates are compared by alpha times
their share of the votes and 1 - alpha times a confidence; none has the confidence `null`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.grammar import Amount
from lmtools.types import NO_WORD

# words that differ, a word alone, no word alone, a word beside none
SUBSTITUTED, ALONE, NULL_ALONE, BESIDE_NULL = map(np.float32, (4, 3, 0.001, 1))
PAIR, DELETE, INSERT = range(3)  # moves: a token in a slot, a slot without one, a token alone
BAND = 32  # tokens that a way may first be ahead of the slots, or behind
MOST = 1 << 29  # cells of an alignment, a byte each
FREQUENCY, AVERAGE, MAXIMUM, SHARE = "freq", "average", "maximum", "share"
VOTES = {
    FREQUENCY: "how many systems have it",
    AVERAGE: "mean confidence (rover: meth1)",
    MAXIMUM: "highest confidence (rover: maxconf)",
    SHARE: "share of all confidences (rover: avgconf)",
}


class Vote(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a slot's word is voted for: by the `method`, `alpha` times the share of votes and
    1 - alpha times the confidence; `null` is the confidence of no word, `trust` what the vote of
    each of `systems`, called as their files, counts.
    """

    method: Literal[tuple(VOTES)] = FREQUENCY
    alpha: Amount = 1.0
    null: Amount = 0.0
    trust: tuple[Amount, ...] = ()
    systems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Token:
    """A word of a system's output, or NO_WORD, with its confidence and times in seconds."""

    word: str
    confidence: float = 0.0
    time: tuple[float, float] | None = None


NOTHING = Token(NO_WORD)
Row = tuple[Token, ...]  # of a slot, a token a system


def align_systems(outputs: Sequence[Sequence[Token]]) -> list[Row]:
    """Return the slots of several outputs, each aligned with those before at least cost."""
    rows = [(token,) for token in outputs[0]]
    for number, output in enumerate(outputs[1:], 1):
        rows = merge_output(rows, output, number)
    return rows


def merge_output(rows: list[Row], output: Sequence[Token], systems: int) -> list[Row]:
    merged: list[Row] = []
    for slot, token in trace_back(rows, output):
        if slot is None:
            merged.append((NOTHING,) * systems + (token,))
        else:
            merged.append((*rows[slot], NOTHING if token is None else token))
    return merged


def trace_back(
    rows: Sequence[Row], output: Sequence[Token], band: int = BAND
) -> list[tuple[int | None, Token | None]]:
    """Return the alignment of a network with an output, in order: slot (None: a new one) and token
    (None: none). Each word of a slot is a row of the dynamic programming, as in NIST's. Outside a
    `band`, widened until that cannot be better, nothing is tried. UserError where it would take too
    much memory.
    """
    words: dict[str, int] = {NO_WORD: 0}
    slots = [[words.setdefault(w, len(words)) for w in dict.fromkeys(in_order(r))] for r in rows]
    tokens = [words.setdefault(token.word, len(words)) for token in output]
    longer = max(0, len(output) - len(rows))
    while True:
        table = AlignmentTable(slots, tokens, band)
        if band >= max(len(rows), len(output)) or table.cost < ALONE * (band + longer + 1):
            break
        band = min(2 * band + 1, int(table.cost / ALONE) - longer)
    steps = table.trace_back()
    return [(slot, None if place is None else output[place]) for slot, place in steps]


class AlignmentTable:
    """The least costs of each slot's words and place of an output, in a band, and the moves there;
    32-bit, as NIST's. A diagonal has one sum of slot and place, `words` (arcs, slots + 1) a column
    a slot, the start first.
    """

    def __init__(self, slots: Sequence[Sequence[int]], tokens: Sequence[int], band: int):
        self.ends = len(slots), len(tokens)
        arcs = max(map(len, slots), default=1)
        behind = band + max(0, len(slots) - len(tokens))
        ahead = band + max(0, len(tokens) - len(slots))
        check_size(slots, tokens, (arcs + 1) * (behind + ahead + 1))
        words = np.full((arcs, len(slots) + 1), -1, dtype=np.int32)
        for column, row in enumerate(slots, 1):
            words[: len(row), column] = row
        unlike, alone = (
            np.where(words < 0, np.float32(np.inf), np.where(words == 0, null, word))
            for null, word in ((BESIDE_NULL, SUBSTITUTED), (NULL_ALONE, ALONE))
        )
        backwards = np.array([*tokens[::-1], -2], dtype=np.int32)
        self.moves: list[tuple[int, np.ndarray, np.ndarray]] = []  # first column, moves, best arcs
        nothing = np.full(words.shape, np.inf, dtype=np.float32)
        costs, best, before = nothing, nothing[0], nothing[0]
        for diagonal in range(sum(self.ends) + 1):
            first = max(0, diagonal - len(tokens), -((ahead - diagonal) // 2))
            last = min(diagonal, len(slots), (diagonal + behind) // 2) + 1
            here, there = slice(first, last), slice(max(first - 1, 0), last - 1)
            start = np.full(int(first == 0), np.inf, dtype=np.float32)
            token = backwards[len(tokens) - diagonal + first :][: last - first]
            price = np.where(words[:, here] == token, np.float32(0), unlike[:, here])
            pair = np.concatenate([start, before[there]]) + price
            delete = np.concatenate([start, best[there]]) + alone[:, here]
            insert = costs[:, here] + ALONE
            if diagonal == 0:
                insert[0, 0] = 0
            move = np.where(delete < insert, np.uint8(DELETE), np.uint8(INSERT))
            move[(pair <= delete) & (pair <= insert)] = PAIR
            costs = nothing.copy()
            costs[:, here] = np.minimum(np.minimum(pair, delete), insert)
            self.moves.append((first, move, costs[:, here].argmin(0).astype(np.uint8)))
            before, best = best, nothing[0].copy()
            best[here] = costs[:, here].min(0)
        self.cost = best[-1]

    def trace_back(self) -> list[tuple[int | None, int | None]]:
        """Return the steps to the end: slot and place of a pair, one of them None."""
        (slot, place), steps = self.ends, []
        arc = self.best_arc(slot, place)
        while slot or place:
            first, moves, _ = self.moves[slot + place]
            move = moves[arc, slot - first] if slot else INSERT
            place -= move != DELETE
            slot -= move != INSERT
            steps.append((None if move == INSERT else slot, None if move == DELETE else place))
            arc = arc if move == INSERT else self.best_arc(slot, place)
        return steps[::-1]

    def best_arc(self, slot: int, place: int) -> int:
        """Return the word of the least cost, the first of equals."""
        first, _, arcs = self.moves[slot + place]
        return arcs[slot - first]


def check_size(slots: Sequence, tokens: Sequence, width: int) -> None:
    """Raise UserError where an alignment would take too much memory."""
    if (len(slots) + len(tokens)) * width // 2 > MOST:
        raise UserError(
            f"{len(tokens)} words to align with {len(slots)} slots are too many; cut the recording"
            " into utterances"
        )


def in_order(row: Row) -> list[str]:
    """Return a slot's words in NIST's order: of the systems, but the one that opened it first."""
    words = [token.word for token in row]
    opener = next((place for place, word in enumerate(words) if word != NO_WORD), 0)
    return [words[opener], *words[:opener], *words[opener + 1 :]]


class Ballots:
    """Votes of `rows` of N systems: candidates (rows, N) in NIST's order, and confidences."""

    def __init__(self, rows: Sequence[Row]):
        orders = [list(dict.fromkeys(in_order(row))) for row in rows]
        self.words = orders
        choices = [
            [order.index(t.word) for t in row] for row, order in zip(rows, orders, strict=True)
        ]
        self.choices = np.array(choices)
        known = [[np.nan if t.word == NO_WORD else t.confidence for t in row] for row in rows]
        self.confidences = np.array(known, dtype=np.float32).astype(np.float64)
        places = np.arange(max(map(len, orders)))
        self.members = self.choices[:, None] == places[:, None]  # (rows, candidates, N)
        self.absent = ~self.members.any(-1)

    def elect(self, vote: Vote) -> list[str]:
        """Return the winner of each row: the word of the highest score, the first of equals."""
        trust = np.array(vote.trust or (1.0,) * self.choices.shape[1])
        score = vote.alpha * (add_up(self.members * trust) / sum(trust.tolist()))
        if vote.method != FREQUENCY:
            score += (1 - vote.alpha) * self.measure_confidences(vote, trust)
        score[self.absent] = -1.0
        winners = zip(self.words, score.argmax(1).tolist(), strict=True)
        return [words[winner] for words, winner in winners]

    def measure_confidences(self, vote: Vote, trust: np.ndarray) -> np.ndarray:
        """Return the confidence of each candidate by the method, from 0 on (rows, candidates)."""
        given = np.where(np.isnan(self.confidences), vote.null, self.confidences)[:, None]
        if vote.method == MAXIMUM:
            return np.where(self.members, given, 0.0).max(-1)
        weighted = np.where(self.members, trust * given, 0.0)
        summed = add_up(weighted)
        whole = add_up(
            self.members * trust if vote.method == AVERAGE else weighted.reshape(len(weighted), -1)
        )
        whole = whole if vote.method == AVERAGE else whole[:, None]
        return np.divide(summed, whole, out=np.zeros_like(summed), where=whole != 0)


def add_up(values: np.ndarray) -> np.ndarray:
    """Return sums over the last axis, in its order, so that ties are those of a plain sum."""
    return values.cumsum(-1)[..., -1]


def average(row: Row, word: str, vote: Vote) -> Token:
    tokens = [token for token in row if token.word == word]
    if word == NO_WORD:
        return Token(word, vote.null)
    timed = [token.time for token in tokens if token.time is not None]
    means = [sum(values) / len(timed) for values in zip(*timed, strict=True)]
    confidence = sum(float(np.float32(token.confidence)) for token in tokens) / len(tokens)
    return Token(word, confidence, (means[0], means[1]) if means else None)


def elect(rows: Sequence[Row], vote: Vote) -> list[Token]:
    """Return each slot's winner, with mean confidence and times; the first among equals."""
    words = Ballots(rows).elect(vote) if rows else []
    return [average(row, word, vote) for row, word in zip(rows, words, strict=True)]
