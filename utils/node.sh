#!/usr/bin/env bash
# node.sh PROCESSES WORD...: run torchrun WORD... with so many processes on this node of a job of
# Slurm; srun starts it on each. They meet at the first node, told by the job rather than by its
# name, which on some clusters is not that of the address, on a port that follows from the job's
# number.
set -euo pipefail
cpus=${SLURM_CPUS_PER_TASK:-1}
if [[ ${OMP_NUM_THREADS:-$cpus} = "$cpus" ]]; then # the task's default: all processes' share
  OMP_NUM_THREADS=$((cpus > $1 ? cpus / $1 : 1))
fi
export OMP_NUM_THREADS PYTHONSAFEPATH=1
is_host=False
[[ $SLURM_NODEID != 0 ]] || is_host=True
exec python3 -m torch.distributed.run \
  --nnodes "$SLURM_JOB_NUM_NODES" --nproc-per-node "$1" --rdzv-backend c10d \
  --rdzv-id "$SLURM_JOB_ID" --rdzv-conf is_host=$is_host \
  --rdzv-endpoint "$SLURM_LAUNCH_NODE_IPADDR:$((15000 + SLURM_JOB_ID % 15000))" "${@:2}"
