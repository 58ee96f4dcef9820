"""The vote of several systems tuned on a development set."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rapidfuzz.distance import Levenshtein

from lmtools.lattice.confusion import is_certain
from lmtools.lattice.rover import VOTES, Ballots, Row, Vote, align_systems
from lmtools.rescoring.rover import (
    METHODS,
    NETWORK,
    SystemOutput,
    add_networks,
    join_systems,
    tokens_of,
)
from lmtools.types import NO_WORD, ConfusionNetwork

GRID = tuple(step / 10 for step in range(11))  # of alpha and of the confidence of none
TRUSTS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)


def tune_vote(systems: Sequence[SystemOutput], refs: Mapping[str, str], methods=METHODS) -> Vote:
    """Return the vote of the fewest word errors against the references: of each method the best
    alpha, confidence of none and trust, one after another until none gets better; among equals the
    earlier one in METHODS, and that nearest to trust 1.
    """
    trial = VoteTrial([(refs[utt].split(), parts) for utt, parts in join_systems(systems)])
    trust = (1.0,) * len(systems)
    tuned = [climb(trial.count_errors, Vote(method, trust=trust)) for method in methods]
    return min(tuned, key=first_of)[1]


class VoteTrial:
    """Word errors of votes on utterances of references and networks, counted only where systems
    differ, and where a vote chooses words for which they were not yet counted.
    """

    def __init__(self, utterances: Sequence[tuple[list[str], list[ConfusionNetwork]]]):
        self.sure, self.open = 0, []
        rows: list[Row] = []  # in which systems differ
        self.words: list[list[str | int]] = []  # of utterances in `open`; numbers: places in `rows`
        for ref, parts in utterances:
            shared = share_networks(parts)
            if all(part is shared[0] for part in shared):
                self.sure += count(ref, parts[0].text.split())
                continue
            self.open.append((ref, shared))
            self.words.append([])
            for row in align_systems([tokens_of(part) for part in parts]):
                same = len({token.word for token in row}) == 1
                self.words[-1].append(row[0].word if same else len(rows))
                rows += [] if same else [row]
        self.ballots = Ballots(rows) if rows else None
        self.counted: list[dict[tuple[str, ...], int]] = [{} for _ in self.open]
        self.votes: dict[Vote, int] = {}

    def count_errors(self, vote: Vote) -> int:
        """Return the errors of a vote."""
        if vote not in self.votes:
            chosen = map(tuple, self.choose(vote))
            pairs = zip(chosen, self.open, self.counted, strict=True)
            self.votes[vote] = self.sure + sum(
                counted[words] if words in counted else counted.setdefault(words, count(ref, words))
                for words, (ref, _), counted in pairs
            )
        return self.votes[vote]

    def choose(self, vote: Vote) -> Iterator[list[str]]:
        """Yield the words of each utterance in which systems differ."""
        if vote.method == NETWORK:
            yield from (add_networks(parts, vote).words() for _, parts in self.open)
            return
        won = self.ballots.elect(vote) if self.ballots else []
        for words in self.words:
            chosen = (won[word] if isinstance(word, int) else word for word in words)
            yield [word for word in chosen if word != NO_WORD]


def count(ref: Sequence[str], words: Sequence[str]) -> int:
    """Return the word errors of an utterance."""
    return Levenshtein.distance(ref, words)


def share_networks(parts: Sequence[ConfusionNetwork]) -> list[ConfusionNetwork]:
    """Return networks, those that are certain of the same words as one object, without times, for
    `add_networks`.

    One after another, a network puts each of its words where the first of them had put it: only
    this way gains the whole share of every word. So their shares may be added up.
    """
    known: dict[str, ConfusionNetwork] = {}
    return [
        known.setdefault(
            part.text, replace(part, slots=tuple(replace(slot, time=None) for slot in part.slots))
        )
        if is_certain(part)
        else part
        for part in parts
    ]


def climb(count_errors, vote: Vote) -> tuple[int, Vote]:
    """Return the fewest errors and the vote that has them, from `vote` on, a setting at a time."""
    best = count_errors(vote), vote
    while True:
        before = best[0]
        for name in ("alpha", "null") if vote.method in tuple(VOTES)[1:] else ():
            tries = [replace(best[1], **{name: value}) for value in GRID]
            best = min([best, *((count_errors(one), one) for one in tries)], key=first_of)
        for place in range(len(vote.trust)):
            tries = [replace(best[1], trust=put(best[1].trust, place, t)) for t in TRUSTS]
            best = min([best, *((count_errors(one), one) for one in tries)], key=first_of)
        if best[0] == before:
            return best


def first_of(pair: tuple[int, Vote]) -> int:
    """Return the errors of a pair."""
    return pair[0]


def put(values: tuple[float, ...], place: int, value: float) -> tuple[float, ...]:
    """Return the values with another at one place."""
    return (*values[:place], value, *values[place + 1 :])
