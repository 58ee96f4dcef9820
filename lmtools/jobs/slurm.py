"""Arrays of Slurm: submitted, waited for, and told of, by its own commands (sbatch, squeue,
scancel).

The array's name is that of its shards' directory, so that a command that was killed while its array
ran finds it again.
"""

import contextlib
import getpass
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmtools.config import from_yaml
from lmtools.errors import UserError
from lmtools.jobs.shards import LOG, Shards, write_shards
from lmtools.lock import hold_lock

CMD = "LMTOOLS_CMD"  # the variable that says where --nj pieces of work run
TASK = (sys.executable, "-m", "lmtools.jobs", "task")
SILENT = 60  # questions in a row that the queue may leave without an answer


class Refused(UserError):
    """One of Slurm's commands has failed, perhaps as its controller does not answer."""


@dataclass(frozen=True)
class Slurm:
    """What a job asks for, as sbatch calls it, and where shards lie.

    `hours` a task may take; `memory` and `gpus` of a task, as sbatch has them (8G; 1, a100:1);
    `cpus`: threads of a task. `directory` is seen by all nodes; `poll`: seconds between two
    questions to the queue.
    """

    directory: str = "jobs"
    poll: float = 5.0
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    hours: float | None = None
    memory: str | None = None
    cpus: int = 1
    gpus: str | None = None

    def options(self) -> list[str]:
        """Those that sbatch is given."""
        asked = {
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "constraint": self.constraint,
            "time": self.hours and max(1, round(self.hours * 60)),
            "mem": self.memory,
            "cpus-per-task": self.cpus,
            "gpus-per-task": self.gpus,
        }
        return [f"--{name}={value}" for name, value in asked.items() if value is not None]


def find_slurm() -> Slurm | None:
    """Where pieces of work run, as the variable says; None: by processes of this machine."""
    kind, _, path = (os.environ.get(CMD) or "local").partition(":")
    if kind == "local":
        return None
    if kind != "slurm":
        raise UserError(f"${CMD}: {kind!r} is unknown; write local, slurm or slurm:F.yaml")
    return from_yaml(Slurm, path) if path else Slurm()


def run_items(
    slurm: Slurm,
    work: Callable,
    items: Iterable,
    count: int,
    load: Callable | None = None,
    reads: Iterable = (),
    at_once: int | None = None,
    nodes: int = 1,
    fresh: bool = False,
) -> Iterator:
    """`work` of each item, in order, by an array of `count` tasks of so many `nodes`, `at_once` at a time
    (None: all), once the last has ended.

    As `lmtools.workers.map_ordered` has it. What tasks have done is kept until all is; the same
    call then submits only what is missing, and waits for an array of its own that still runs.
    `fresh`: what an array that has ended did is done again. UserError with the log of a task that
    failed.
    """
    shards = write_shards(Path(slurm.directory).absolute(), work, load, items, count, reads)
    with hold_lock(shards.folder):
        array = Array(slurm, shards, at_once, nodes)
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

    def __init__(self, slurm: Slurm, shards: Shards, at_once: int | None, nodes: int):
        self.slurm, self.shards, self.at_once, self.nodes = slurm, shards, at_once, nodes
        self.name = f"lmtools-{shards.folder.name}"

    def submit(self, missing: Sequence[int]) -> None:
        """Have the queue run the tasks of these shards; a task whose node fails, or that has to
        make room for another job, is queued again.
        """
        shards = self.shards
        limit = f"%{self.at_once}" if self.at_once else ""
        number = ask(
            *("sbatch", "--parsable", "--requeue", f"--job-name={self.name}"),
            f"--array={','.join(map(str, missing))}{limit}",
            *(f"--output={escape(shards.folder)}/%a{LOG}", "--open-mode=append"),
            *(f"--nodes={self.nodes}", "--ntasks-per-node=1"),
            *self.slurm.options(),
            f"--wrap=exec {shlex.join([*TASK, str(shards.folder)])}",
        )
        kept = f", {shards.count - len(missing)} are there" if len(missing) < shards.count else ""
        print(
            f"array {number}: {len(missing)} of {shards.count} shards{kept}; logs:"
            f" {shards.folder}/N{LOG}",
            file=sys.stderr,
        )

    def wait(self) -> bool:
        """Wait until no task is in the queue; whether there was one. If this process is stopped
        meanwhile, the tasks are taken out of the queue.
        """
        found, silent = False, 0
        with terminated_by_error():
            try:
                while True:
                    try:
                        states = ask("squeue", "-h", "-n", self.name, "-u", user(), "-o", "%T")
                    except Refused:
                        silent += 1
                        if silent == SILENT:
                            raise
                    else:
                        silent = 0
                        if not states:
                            return found
                        found = True
                    time.sleep(self.slurm.poll)
            except (KeyboardInterrupt, SystemExit):
                ask("scancel", "-n", self.name, "-u", user())
                raise

    def check(self) -> None:
        """UserError, naming the first log, where tasks have left no results."""
        if not (missing := self.shards.missing()):
            return
        log = self.shards.folder / f"{missing[0]}{LOG}"
        lines = log.read_text(errors="replace").split("\n") if log.exists() else []
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it never began")
        raise UserError(
            f"{log}: {last}; {len(missing)} of {self.shards.count} shards are missing and the"
            " others kept: the same command runs what is missing"
        )


def ask(*command: str) -> str:
    """What one of Slurm's commands answers; UserError where it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise UserError(
            f"{command[0]}: no such program; run where Slurm is, or --cmd local"
        ) from None
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"status {done.returncode}"
        raise UserError(
            f"{command[0]}: {said}; mend the options in --cmd slurm:F.yaml, or try again"
        )
    return done.stdout.strip()


def user() -> str:
    """Whose jobs these are."""
    return getpass.getuser()


def escape(path: Path) -> str:
    """A path in which sbatch replaces nothing."""
    return str(path).replace("%", "%%")


@contextlib.contextmanager
def terminated_by_error() -> Iterator[None]:
    """SIGTERM is a SystemExit in the block, so that what is under way can be called off."""
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
