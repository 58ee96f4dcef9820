"""Arrays of tasks in a cluster's queue: submitted, waited for, and told of.

The array's name is that of its shards' directory, so that a command that was killed while its array
ran finds it again.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lmtools.base.config import from_yaml
from lmtools.base.context import CMD, LOCAL
from lmtools.base.errors import UserError
from lmtools.base.jobs.gridengine import GridEngine
from lmtools.base.jobs.queues import Queue, Queued, Refused
from lmtools.base.jobs.shards import LOG, Shards, write_shards
from lmtools.base.jobs.slurm import Slurm
from lmtools.base.jobs.work import Work
from lmtools.base.lock import hold_lock
from lmtools.base.log import say

QUEUES = {"slurm": Slurm, "queue": GridEngine}
SILENT = 60  # questions in a row that the queue may leave without an answer
IDLE = 12  # questions in a row at which no task runs, after which it is told why


def find_queue(cmd: str) -> Queue | None:
    """Return the queue that `--cmd` means; None: processes of this machine."""
    kind, _, path = cmd.partition(":")
    if cmd == LOCAL:
        return None
    if kind not in QUEUES:
        known = ", ".join(f"{name} or {name}:F.yaml" for name in QUEUES)
        raise UserError(f"--cmd, ${CMD}: {cmd!r} is unknown; write local, {known}")
    return from_yaml(QUEUES[kind], path) if path else QUEUES[kind]()


def run_items(
    queue: Queue,
    work: Work,
    items: Iterable,
    count: int,
    *,
    at_once: int | None = None,
    nodes: int = 1,
    fresh: bool = False,
) -> Iterator:
    """Yield the result of `work` for each item, in order, by an array of `count` tasks, once the
    last has ended; `at_once` run at a time (None: all), each on so many `nodes`.

    What tasks have done is kept until all is; the same call then submits only what is missing, and
    waits for an array of its own that still runs. `fresh`: what an array that has ended did is done
    again. UserError with the log of a task that failed.
    """
    shards = write_shards(Path(queue.directory).absolute(), work, items, count)
    with hold_lock(shards.folder):
        array = Array(queue, shards, at_once, nodes)
        if not array.wait() and fresh:
            shards.forget()
        if missing := shards.missing():
            array.submit(missing)
            array.wait()
            array.check()
        yield from shards.results()
        shards.remove()


class Array:
    """The array of some shards in the queue."""

    def __init__(self, queue: Queue, shards: Shards, at_once: int | None, nodes: int):
        self.queue, self.shards, self.at_once, self.nodes = queue, shards, at_once, nodes
        self.name = f"lmtools-{shards.folder.name}"

    def submit(self, missing: Sequence[int]) -> None:
        """Have the queue run the tasks of these shards."""
        shards = self.shards
        number = self.queue.submit(
            self.name, shards.folder, missing, at_once=self.at_once, nodes=self.nodes
        )
        kept = f", {shards.count - len(missing)} are there" if len(missing) < shards.count else ""
        say(
            f"array {number}: {len(missing)} of {shards.count} shards{kept}; logs:"
            f" {shards.folder}/N{LOG}"
        )

    def wait(self) -> bool:
        """Wait until no task is in the queue; whether there was one. If this process is stopped
        meanwhile, the tasks are taken out of the queue. UserError where all are held.
        """
        seen, silent, idle, reported = False, 0, 0, set()
        with terminated_by_error():
            try:
                while True:
                    try:
                        entries = self.queue.entries(self.name)
                    except Refused:
                        silent += 1
                        if silent == SILENT:
                            raise
                    else:
                        silent = 0
                        if not entries:
                            return seen
                        seen = True
                        idle = 0 if any(entry.runs for entry in entries) else idle + 1
                        if idle >= IDLE:
                            tell(entries, reported)
                    time.sleep(self.queue.poll)
            except (KeyboardInterrupt, SystemExit):
                self.queue.cancel(self.name)
                raise

    def check(self) -> None:
        """Raise UserError, naming the first log, where tasks have left no results."""
        if not (missing := self.shards.missing()):
            return
        log = self.shards.folder / f"{missing[0]}{LOG}"
        lines = log.read_text(errors="replace").split("\n") if log.exists() else []
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it never began")
        raise UserError(
            f"{log}: {last}; {len(missing)} of {self.shards.count} shards are missing and the"
            " others kept: the same command runs what is missing"
        )


def tell(entries: Sequence[Queued], reported: set[str]) -> None:
    """Say what the queue says of tasks none of which runs, each thing once; UserError where they
    never will by themselves.
    """
    first = entries[0]
    if all(entry.remedy for entry in entries):
        raise UserError(
            f"array {first.number}: {first.state}: no task starts by itself; {first.remedy}"
        )
    for entry in entries:
        if entry.state not in reported:
            reported.add(entry.state)
            say(f"array {entry.number} waits: {entry.state}")


@contextlib.contextmanager
def terminated_by_error() -> Iterator[None]:
    """Turn SIGTERM into a SystemExit in the block, so that what is under way can be called off."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number, frame):
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
