"""Counts of words or characters: exact, in bounded memory, by several processes."""

import heapq
import itertools
import operator
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

ROOM = 200_000  # distinct items held in memory, some 150 bytes each, before they go to disk


class TokenCounts:
    """A sum of counts: at most `room` distinct items in memory, and those of the last `add`.

    What is over goes, sorted, to unnamed files in the system's temporary directory (TMPDIR), which
    vanish with the process. `total` is the number of occurrences. Iterating gives pairs (item,
    occurrences), each item once. No item holds a tab or a line feed.
    """

    def __init__(self, room: int = ROOM):
        self.room, self.total = room, 0
        self.counts: Counter[str] = Counter()
        self.runs: list[BinaryIO] = []

    def add(self, counts: Mapping[str, int]) -> None:
        """Add how often each item occurred."""
        self.counts.update(counts)
        self.total += sum(counts.values())
        if len(self.counts) > self.room:
            self.spill()

    def spill(self) -> None:
        """Move the counts in memory to a file, in the order of the items."""
        run = tempfile.TemporaryFile()  # noqa: SIM115 (it is open as long as the tally)
        run.writelines(f"{item}\t{count}\n".encode() for item, count in sorted(self.counts.items()))
        self.runs.append(run)
        self.counts.clear()

    def __iter__(self) -> Iterator[tuple[str, int]]:
        if not self.runs:
            yield from self.counts.items()
            return
        merged = heapq.merge(*map(read_run, self.runs), sorted(self.counts.items()))
        for item, same in itertools.groupby(merged, operator.itemgetter(0)):
            yield item, sum(count for _, count in same)


def read_run(run: BinaryIO) -> Iterator[tuple[str, int]]:
    """Read the pairs in a file that `TokenCounts.spill` wrote."""
    run.seek(0)
    for line in run:
        item, _, count = line.decode().partition("\t")
        yield item, int(count)


def sum_counts(parts: Iterable[Mapping[str, int]], room: int = ROOM) -> TokenCounts:
    """Return the sum of all counts in `parts`."""
    whole = TokenCounts(room)
    for part in parts:
        whole.add(part)
    return whole
