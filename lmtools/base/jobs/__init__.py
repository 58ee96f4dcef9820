"""Work that goes to a cluster's queue: items in shards, an array of jobs, one shard a task."""
