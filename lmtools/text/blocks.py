"""Text in blocks of whole lines, and work on blocks by several processes, with the results in their order."""

import contextlib
import itertools
import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple, TypeVar

from lmtools.errors import UserError
from lmtools.files import DAMAGED, OPENERS, cannot
from lmtools.text.foreign import refuse_foreign, refuse_nul

SIZE = 1 << 20  # bytes of a block, at least; a line stays whole however long it is
AHEAD = 3  # blocks a process that are under way: what bounds the memory

Item, Result = TypeVar("Item"), TypeVar("Result")


class Block(NamedTuple):
    """Whole lines of a file, at least one: the number of the first (from 1), and the bytes of them all."""

    path: str
    first: int
    content: bytes

    def text(self) -> str:
        """The lines as they stand, without a byte-order mark; UserError with its number for one that is not UTF-8."""
        try:
            return self.content.decode("utf-8-sig" if self.first == 1 else "utf-8")
        except UnicodeDecodeError as error:
            line = self.first + error.object.count(b"\n", 0, error.start)
            raise UserError(f"{self.path}:{line}: not UTF-8; convert it with iconv") from None

    def lines(self) -> list[str]:
        """The lines without their ends, as lmtools.files.read_lines gives them: only LF, or CR and LF, ends one."""
        text = self.text()
        lines = text.removesuffix("\n").split("\n")
        return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def read_blocks(paths: Sequence, nul: bool = False) -> Iterator[Block]:
    """The blocks of UTF-8 texts (.gz, .xz, `-`: standard input), one after the other, lazily.

    UserError for what is no text, and unless `nul` for a NUL byte anywhere.
    """
    for path in paths:
        number = 1
        try:
            stream = sys.stdin.buffer if str(path) == "-" else OPENERS.get(Path(path).suffix, open)(path, "rb")
            with contextlib.nullcontext(stream) if str(path) == "-" else stream as whole:
                while content := whole.read(SIZE):
                    content += whole.readline()
                    if number == 1:
                        refuse_foreign(content, path)
                    if not nul:
                        refuse_nul(content, path, number)
                    yield Block(str(path), number, content)
                    number += content.count(b"\n")
        except DAMAGED as error:
            where = f"{path}:{number}: damaged archive from there on"
            raise UserError(f"{where} ({error}); fetch or write it again") from None
        except OSError as error:
            raise cannot("read", path, error) from None


def read_text(path, nul: bool = False) -> Iterator[tuple[int, str]]:
    """Pairs (line number from 1, line without its end) of a text, as lmtools.files.read_lines; UserErrors as `read_blocks`."""
    for block in read_blocks([path], nul):
        yield from enumerate(block.lines(), block.first)


def read_again(paths: Sequence) -> Iterator[str]:
    """The lines of those texts that can be read more than once: of files, not of pipes."""
    for path in paths:
        if Path(path).is_file():
            yield from (line for _, line in read_text(path))


def spread(work: Callable[[Item], Result], items: Iterable[Item], nj: int = 1) -> Iterator[Result]:
    """`work` of each item, in the order of the items, by `nj` processes; here where nj is 1 or there is but one item.

    `work` is pickled once a process, so that it may hold a large vocabulary (functools.partial).
    """
    items = iter(items)
    head = list(itertools.islice(items, 2))
    items = itertools.chain(head, items)
    if nj == 1 or len(head) < 2:
        yield from map(work, items)
        return
    waiting = deque()
    try:
        with ProcessPoolExecutor(nj, multiprocessing.get_context("spawn"), start_worker, (work,)) as pool:
            for item in items:
                waiting.append(pool.submit(work_on, item))
                if len(waiting) > AHEAD * nj:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    except BrokenProcessPool:
        raise UserError("a worker process was killed, perhaps for want of memory; give a lower --nj") from None


WORKER: dict[str, Callable] = {}  # a worker process's own work


def start_worker(work: Callable) -> None:
    """Say in a new worker process what its work is; it ends when its parent does, however that ends."""
    WORKER["work"] = work
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    """Wait for the parent's end and end this process."""
    multiprocessing.parent_process().join()
    os._exit(1)


def work_on(item):
    """What a worker does with an item."""
    return WORKER["work"](item)
