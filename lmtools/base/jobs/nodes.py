"""One training on the nodes of a job: srun runs `python -m lmtools.base.jobs node PROCESSES
WORD...` on each, which starts the processes there by torchrun.

They meet at the first node: told by the job rather than by its name, which on some clusters is not
that of the address.
"""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

PORTS = range(15000, 30000)  # below those that systems give to whoever asks for any


def join_node(processes: int, words: Sequence[str]) -> NoReturn:
    """Become the torchrun of this node; `words` follow its options. Jobs that share a node have
    numbers, so ports, of their own.
    """
    job = os.environ["SLURM_JOB_ID"]
    cpus = os.environ.get("SLURM_CPUS_PER_TASK", "1")
    threads = os.environ.get("OMP_NUM_THREADS", cpus)
    if threads == cpus:  # the task's default: all processes' share
        threads = str(max(1, int(cpus) // processes))
    address = os.environ["SLURM_LAUNCH_NODE_IPADDR"]
    port = PORTS[int(job) % len(PORTS)]
    command = [sys.executable, "-m", "torch.distributed.run"]
    command += ["--nnodes", os.environ["SLURM_JOB_NUM_NODES"], "--nproc-per-node", str(processes)]
    command += ["--rdzv-backend", "c10d", "--rdzv-id", job, "--rdzv-endpoint", f"{address}:{port}"]
    command += ["--rdzv-conf", f"is_host={os.environ['SLURM_NODEID'] == '0'}"]
    os.execve(sys.executable, [*command, *words], {**os.environ, "OMP_NUM_THREADS": threads})
