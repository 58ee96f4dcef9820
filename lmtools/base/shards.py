"""Parts of a verb's work, as the machines of a cluster do them: `--shard I/N`."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple


class Shard(NamedTuple):
    """The part of this number, from 1, of so many."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Parse I/N; ValueError for anything else."""
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise ValueError(f"{text[:40]!r} is no part; write I/N, as 1/4 for the first of four")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def share(self, make: Callable[[], Iterable]) -> Iterator:
        """Yield this part of what `make` makes, each time anew: consecutive things."""
        if self.count == 1:
            return iter(make())
        total = sum(1 for _ in make())
        begin, end = (total * number // self.count for number in (self.number - 1, self.number))
        return itertools.islice(make(), begin, end)


WHOLE = Shard()
