"""How work is computed: device, precision, batches, processes, cache, memory, and which part of it.
Imports no torch.
"""

import contextlib
import ctypes
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lmtools.base.options import check_options, option

ENGINES = ("auto", "torch", "prepared", "onnx")


@dataclass(frozen=True)
class Computing:
    """Options of the computation, the same for every model; results depend on `precision`, their
    last bits on `device`, `engine` and `rows` too (None: what suits the device; a batch that does
    not fit into memory is halved).
    """

    device: str = option(
        "auto", "where to compute: cpu, cuda, cuda:1 ..., or auto, a GPU if there is one"
    )
    precision: str = option(
        "float32",
        "precision of matrix products: float32, bfloat16, auto, and int8 on a CPU",
        rare=True,
    )
    engine: str = option(
        "auto",
        "what multiplies: torch, prepared (weights packed once for a CPU), onnx (ONNX Runtime, text"
        " by text), or auto (prepared if results stay the same, or in bfloat16 or int8)",
        choices=ENGINES,
        rare=True,
    )
    cache: str = option(
        "default",
        "directory that keeps scores between runs, or none (default: ~/.cache/lmtools)",
        metavar="DIR",
        rare=True,
        path=True,
    )
    rows: int | None = option(
        None,
        "number of sentences in a batch (default: 256 on a CPU, 4096 on a GPU)",
        metavar="N",
        least=1,
        rare=True,
    )
    nj: int = option(1, "number of processes", metavar="N", least=1)

    def __post_init__(self):
        check_options(self)


USUAL = Computing()


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

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of mallopt, see malloc.h of the GNU C library
KEPT = 1 << 28  # bytes


def keep_freed_memory(kept: int = KEPT) -> None:
    """Keep `kept` bytes that were given back for the next array, as far as the C library can: else
    the kernel clears the pages of each large one anew, a tenth of the time of sorting.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MMAP_THRESHOLD, kept)
        mallopt(TRIM_THRESHOLD, kept)
