"""Lines of commands as jobs: `python -m lmtools.base.jobs lines NJ NODES COMMAND...` does with the
queue what `xargs -L 1 -P NJ COMMAND` does with processes; each job has so many nodes, on the first
of which the command runs.

What the commands say stands in their logs at once, and comes out here, in the order of the lines,
when all have ended.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence

from lmtools.base.context import CMD, LOCAL, current
from lmtools.base.errors import UserError
from lmtools.base.jobs.arrays import find_queue, run_items
from lmtools.base.jobs.work import Work


def run_command(command: Sequence[str]) -> str:
    """Run it; return what it printed, which is printed too. UserError with its last line where it
    fails. Its own pieces of work, of any --nj, are processes.
    """
    lines = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, CMD: LOCAL},
    ) as process:
        for line in process.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            lines.append(line)
    if process.returncode:
        last = next((line for line in reversed(lines) if line.strip()), b"it said nothing")
        raise UserError(
            f"status {process.returncode} of {shlex.join(command)}:"
            f" {last.decode(errors='replace').strip()}"
        )
    return b"".join(lines).decode(errors="replace")


def run_lines(nj: int, nodes: int, command: Sequence[str]) -> None:
    """Run a job of so many nodes for each line of standard input, `nj` at a time."""
    lines = [[*command, *shlex.split(line)] for line in sys.stdin if line.strip()]
    if lines:
        queue, work = find_queue(current().cmd), Work(run_command)
        sys.stderr.writelines(
            run_items(queue, work, lines, len(lines), at_once=nj, nodes=nodes, fresh=True)
        )
