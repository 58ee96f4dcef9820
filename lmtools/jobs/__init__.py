"""Work that goes to a cluster's queue: items in shards, an array of jobs, one shard a task."""

from lmtools.jobs.slurm import CMD, find_slurm, run_items

__all__ = ["CMD", "find_slurm", "run_items"]
