"""Confusion networks of weighted word sequences by progressive alignment: the most probable one
makes the slots, each other one is aligned with the network so far at the least expected number of
word errors (Mangu, Brill and Stolcke 2000; SRILM's nbest-lattice does the same to N-best lists).

Probabilities are whole numbers of ONE, so that those of a slot sum to it exactly, equal costs tie
exactly, and no order of summation changes a bit.
"""

import math
from collections.abc import Sequence

import numpy as np

from lmtools.base.errors import UserError
from lmtools.types import NO_WORD, Arc, ConfusionNetwork, Final, Lattice, Slot

ONE = 1 << 40  # a float holds sums of these exactly
MOST = 1 << 26  # cells of an alignment, 8 bytes each

Time = tuple[float, float]  # start and end of a word, in seconds


def share_out(probabilities: Sequence[float]) -> np.ndarray:
    """Return probabilities (N,) as whole numbers that sum to ONE, the rest to the largest."""
    values = np.asarray(probabilities, dtype=np.float64)
    values = values / values.sum()
    shares = np.floor(values * ONE).astype(np.int64)
    shares[values.argmax()] += ONE - shares.sum()
    return shares


class NetworkBuilder:
    """A network that grows by a word sequence at a time: `mass` (words, slots), row 0 no word;
    `order` holds the columns in the order of time.
    """

    def __init__(self):
        self.rows: dict[str, int] = {NO_WORD: 0}
        self.mass = np.zeros((8, 8), dtype=np.int64)
        self.order: list[int] = []
        self.total = 0
        self.timed: dict[tuple[int, int], list[float]] = {}

    def row(self, word: str) -> int:
        row = self.rows.setdefault(word, len(self.rows))
        if row == len(self.mass):
            self.mass = np.concatenate([self.mass, np.zeros_like(self.mass)])
        return row

    def new_column(self) -> int:
        column = len(self.order)
        if column == self.mass.shape[1]:
            self.mass = np.concatenate([self.mass, np.zeros_like(self.mass)], axis=1)
        self.mass[0, column] = self.total
        return column

    def add_words(
        self, words: Sequence[str], share: int, times: Sequence[Time | None] | None = None
    ) -> list[int]:
        """Add a word sequence of that probability, of ONE, with `times` averaged over the sequences
        that have them; return the column of each word.
        """
        check_size(len(words), len(self.order))
        rows = np.array([self.row(word) for word in words], dtype=np.int64)
        known = self.mass[:, self.order]
        gains = known[rows] - known[0] if self.order else np.zeros((len(rows), 0), dtype=np.int64)
        losses = np.full(len(rows), self.total)
        columns = self.place(align(gains, losses) if self.order else [None] * len(words))
        self.mass[0, self.order] += share
        self.mass[0, columns] -= share
        self.mass[rows, columns] += share
        self.total += share
        for row, column, time in zip(rows.tolist(), columns, times or (), strict=False):
            self.add_time(row, time, column, share)
        return columns

    def add_time(self, row: int, time: Time | None, column: int, share: int) -> None:
        if time is not None:
            sums = self.timed.setdefault((column, row), [0.0, 0.0, 0.0])
            for place, value in enumerate((1.0, *time)):
                sums[place] += share * value

    def place(self, steps: Sequence[int | None]) -> list[int]:
        """Return the columns that an alignment's steps name, after making new ones (None)."""
        before = len(self.order)
        columns, order, at = [], [], 0
        for step in steps:
            if step is None:
                column = self.new_column()
                self.order.append(column)  # counts it; the order is set below
            else:
                order += self.order[at:step]
                column, at = self.order[step], step + 1
            order.append(column)
            columns.append(column)
        self.order = order + self.order[at:before]
        return columns

    def finish(
        self, utt: str, chosen: Sequence[int] | None = None, words: Sequence[str] = (), ref=None
    ) -> ConfusionNetwork:
        """Return the network. What each slot has chosen is its most probable word, a word before
        none and the earlier one of equals; or `words`, which stand in the columns `chosen`.
        """
        names = list(self.rows)
        given = None if chosen is None else dict(zip(chosen, words, strict=True))
        slots = []
        for column in self.order:
            mass = self.mass[: len(names), column]
            rows = np.flatnonzero(mass).tolist()
            rows.sort(key=lambda row: (-int(mass[row]), row == 0, row))
            shares = {names[row]: int(mass[row]) / self.total for row in rows}
            word = names[rows[0]] if given is None else given.get(column, NO_WORD)
            time = self.timed.get((column, self.rows[word]))
            slots.append(
                Slot(
                    shares,
                    word,
                    shares.get(word, 0.0),
                    (time[1] / time[0], time[2] / time[0]) if time else None,
                )
            )
        return ConfusionNetwork(utt, tuple(slots), ref)


def check_size(units: int, slots: int) -> None:
    """Raise UserError where an alignment would take too much memory."""
    if (units + 1) * (slots + 1) > MOST:
        raise UserError(
            f"{units} words to align with {slots} slots are too many; cut the recording into"
            " utterances"
        )


def align(gains: np.ndarray, losses: np.ndarray) -> list[int | None]:
    """Return for each of W units its slot, or None for one of its own, of the highest sum: `gains`
    (W, S) of unit i in slot j over leaving it empty, `losses` (W,) of own slots. Among equals units
    share slots, the last possible.
    """
    units, slots = gains.shape
    best = np.zeros((units + 1, slots + 1), dtype=np.int64)
    for unit in range(units):
        row, before = best[unit + 1], best[unit]
        np.subtract(before, losses[unit], out=row)
        np.maximum(row[1:], before[:-1] + gains[unit], out=row[1:])
        np.maximum.accumulate(row, out=row)
    cell, gain, steps = best.item, gains.item, []
    unit, slot = units, slots
    while unit:
        here = cell(unit, slot)
        if slot and cell(unit - 1, slot - 1) + gain(unit - 1, slot - 1) == here:
            unit, slot = unit - 1, slot - 1
            steps.append(slot)
        elif slot and cell(unit, slot - 1) == here:
            slot -= 1
        else:
            unit -= 1
            steps.append(None)
    return steps[::-1]


def as_lattice(network: ConfusionNetwork) -> Lattice:
    """Return the lattice of a network, with logarithms of posteriors as `am`."""
    arcs = [
        Arc(place, place + 1, None if word == NO_WORD else word, {"am": math.log(share)})
        for place, slot in enumerate(network.slots)
        for word, share in slot.words.items()
        if share > 0
    ]
    end = len(network.slots)
    return Lattice.of(network.utt, end + 1, 0, arcs, [Final(end, {"am": 0.0})])
