"""Base of clusters' queues; each has a module with its commands."""

import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lmtools.base.errors import UserError

# `python -m lmtools.base.jobs` would take modules that lie in the working directory, which holds
# data
START = (
    "import sys; sys.path[:] = filter(None, sys.path); from runpy import run_module;"
    " run_module('lmtools.base.jobs', run_name='__main__', alter_sys=True)"
)


LONGEST = 1e6  # seconds between two questions, hours of a task


class Refused(UserError):
    """One of the queue's commands has failed, perhaps as its server does not answer."""


class Queued(NamedTuple):
    """Tasks of an array that are in the queue: the array's number, what the queue says of them,
    whether they run, and what to do where they are held.
    """

    number: str
    state: str
    runs: bool
    remedy: str = ""


@dataclass(frozen=True)
class Queue:
    """Request of a job to a queue, and the place of shards.

    `hours` a task may take; `memory` and `gpus` of a task, as the queue has them; `cpus`: threads
    of a task. `directory` is seen by all nodes; `poll`: seconds between two questions to the queue.
    """

    directory: str = "jobs"
    poll: float = 5.0
    hours: float | None = None
    memory: str | None = None
    cpus: int = 1
    gpus: str | None = None

    def __post_init__(self):
        for name, value in {"poll": self.poll, "hours": self.hours}.items():
            if value is not None and not 0 <= value <= LONGEST:
                raise UserError(
                    f"{name}: {value} is no time for a job; write a number, as {name}: 5"
                )

    def submit(
        self, name: str, folder: Path, numbers: Sequence[int], *, at_once: int | None, nodes: int
    ) -> str:
        """Have the queue run the tasks with these numbers; the array's own. A task whose node
        fails, or that has to make room for another job, is queued again.
        """
        raise NotImplementedError

    def entries(self, name: str) -> list[Queued]:
        """Return the user's tasks of that name."""
        raise NotImplementedError

    def cancel(self, name: str) -> None:
        """Take them out of the queue."""
        raise NotImplementedError


def task(folder: Path) -> str:
    """Return the shell command of a task, without its number."""
    return shlex.join([sys.executable, "-c", START, "task", str(folder)])


def ask(*command: str, script: str | None = None, directory: str | None = None) -> str:
    """Return what a command of the queue answers in that directory; UserError where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, input=script, cwd=directory)
    except FileNotFoundError:
        raise UserError(
            f"{command[0]}: no such program; run where the queue's commands are, or --cmd local"
        ) from None
    if done.returncode:
        cause = " ".join(done.stderr.split()) or f"status {done.returncode}"
        raise Refused(f"{command[0]}: {cause}; mend the options in --cmd's F.yaml, or try again")
    return done.stdout.strip()
