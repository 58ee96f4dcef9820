"""python -m lmtools.base.jobs task DIR N: do shard N of an array.
python -m lmtools.base.jobs lines NJ NODES COMMAND...: lmtools.base.jobs.commands.
python -m lmtools.base.jobs node PROCESSES WORD...: lmtools.base.jobs.nodes.
"""

import os
import sys
from pathlib import Path

# of the programs that start here: they take no modules of the working directory, which holds data
os.environ.setdefault("PYTHONSAFEPATH", "1")
if sys.argv[1] == "task":  # before anything starts threads
    cpus = os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("NSLOTS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", cpus)
    os.environ.setdefault("SRUN_CPUS_PER_TASK", cpus)  # what the job has, srun has not by itself

from lmtools.base.errors import exit_with_message
from lmtools.base.jobs.commands import run_lines
from lmtools.base.jobs.nodes import join_node
from lmtools.base.jobs.shards import run_shard


def main(what: str, first: str, *more: str) -> None:
    """Do one of the three."""
    if what == "lines":
        run_lines(int(first), int(more[0]), more[1:])
        return
    if what == "node":
        join_node(int(first), more)
    run_shard(Path(first), int(more[0]))


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
