"""Lines of commands as jobs: `python -m lmtools.jobs lines NJ NODES COMMAND...` does with the queue
what `xargs -L 1 -P NJ COMMAND` does with processes; each job has so many nodes, on the first of
which the command runs.

What the commands say stands in their logs at once, and comes out here, in the order of the lines,
when all have ended.
"""

import shlex
import subprocess
import sys
from collections.abc import Sequence

from lmtools.errors import UserError
from lmtools.jobs.arrays import find_queue, run_items


def run_command(command: Sequence[str]) -> str:
    """Run it; what it said, which is printed too. UserError with its last line where it fails."""
    said = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        for line in process.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            said.append(line)
    if process.returncode:
        last = next((line for line in reversed(said) if line.strip()), b"it said nothing")
        raise UserError(
            f"status {process.returncode} of {shlex.join(command)}:"
            f" {last.decode(errors='replace').strip()}"
        )
    return b"".join(said).decode(errors="replace")


def run_lines(nj: int, nodes: int, command: Sequence[str]) -> None:
    """Run a job of so many nodes for each line of standard input, `nj` at a time."""
    lines = [[*command, *shlex.split(line)] for line in sys.stdin if line.strip()]
    if lines:
        for said in run_items(
            find_queue(), run_command, lines, len(lines), at_once=nj, nodes=nodes, fresh=True
        ):
            sys.stderr.write(said)
