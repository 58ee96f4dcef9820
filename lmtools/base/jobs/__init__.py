"""Work that goes to a cluster's queue: items in shards, an array of jobs, one shard a task."""

from lmtools.base.jobs.arrays import QUEUES, find_queue, run_items
from lmtools.base.jobs.work import Work

__all__ = ["QUEUES", "Work", "find_queue", "run_items"]
