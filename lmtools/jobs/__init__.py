"""Work that goes to a cluster's queue: items in shards, an array of jobs, one shard a task."""

from lmtools.jobs.arrays import CMD, QUEUES, find_queue, run_items

__all__ = ["CMD", "QUEUES", "find_queue", "run_items"]
