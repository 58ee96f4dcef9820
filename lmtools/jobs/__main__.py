"""python -m lmtools.jobs DIR: the task of an array, whose number Slurm says, does its shard."""

import os
import sys
from pathlib import Path

# before anything starts threads
os.environ.setdefault("OMP_NUM_THREADS", os.environ.get("SLURM_CPUS_PER_TASK", "1"))

from lmtools.errors import UserError, one_line
from lmtools.jobs import CMD
from lmtools.jobs.shards import run_shard


def main() -> int:
    """0 done, 1 the work says why not."""
    os.environ.pop(CMD, None)  # what works here works here
    told = [os.environ.get(name, "0") for name in ("SLURM_JOB_ID", "SLURM_RESTART_COUNT")]
    try:
        run_shard(Path(sys.argv[1]), int(os.environ["SLURM_ARRAY_TASK_ID"]), "-".join(told))
    except (UserError, MemoryError) as error:
        print(one_line(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
