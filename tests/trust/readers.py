"""Damaged input for every reader of formats: what tests/fuzz.py does, a fixed number of reads of
each.
"""

import functools
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

from trust.common import Case, Wrong

READS = {"short": 160, "medium": 4000, "long": 100_000}  # of a family
BLOCK = 2500  # reads a case


@functools.cache
def targets():
    """fuzz.py's readers, made once."""
    import fuzz

    return fuzz.targets()


def families() -> dict[str, list[str]]:
    """Readers of lists, lattices, sentence pairs, columns and plain text."""
    found: dict[int, list[str]] = {}
    for name, target in targets().items():
        found.setdefault(id(target.formats), []).append(name)
    return dict(zip(("lists", "lattices", "pairs", "columns"), found.values(), strict=True))


def read(home: Path, name: str, seed: int, numbers: range) -> int:
    import fuzz

    target = targets()[name]
    signal.signal(signal.SIGALRM, fuzz.hangs)
    kept, os.fsync = os.fsync, lambda handle: None
    try:
        for number in numbers:
            signal.alarm(20)
            with tempfile.TemporaryDirectory(dir=home) as place:
                found = fuzz.turn(target, seed, number, Path(place))
            if found:
                outcome = (
                    "hang"
                    if "no answer within" in found[0]
                    else "traceback"
                    if "Traceback" in found[0]
                    else "no cause or remedy"
                )
                said = f"read as {found[1]!r}: {found[0][-800:]}\n{dict(found[2])!r}"
                raise Wrong(outcome, f"{name} turn {number}, {said}"[:3000])
    finally:
        signal.alarm(0)
        os.fsync = kept
    return len(numbers)


def cases(size: str, seed: int) -> Iterator[Case]:
    """As many reads of each family as the size says, shared by its readers, in blocks."""
    for family, names in families().items():
        total = -(-READS[size] // len(names))
        for name in names:
            for start in range(0, total, BLOCK):
                turns = range(start, min(start + BLOCK, total))
                yield Case.of(f"{family}-{name}-{start // BLOCK}", read, name, seed, turns)
