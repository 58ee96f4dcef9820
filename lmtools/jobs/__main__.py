"""python -m lmtools.jobs task DIR: do the shard of an array whose number Slurm says.
python -m lmtools.jobs lines NJ COMMAND...: lmtools.jobs.commands.
"""

import os
import sys
from pathlib import Path

if sys.argv[1] == "task":  # before anything starts threads
    os.environ.setdefault("OMP_NUM_THREADS", os.environ.get("SLURM_CPUS_PER_TASK", "1"))

from lmtools.errors import exit_with_message
from lmtools.jobs import CMD
from lmtools.jobs.commands import run_lines
from lmtools.jobs.shards import run_shard


def main(what: str, first: str, *more: str) -> None:
    """Do one of both."""
    if what == "lines":
        run_lines(int(first), more)
        return
    os.environ.pop(CMD, None)  # what works here works here
    run_shard(Path(first), int(os.environ["SLURM_ARRAY_TASK_ID"]))


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
