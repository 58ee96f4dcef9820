"""How long a piece of work takes on many nodes, from what one core does: hours, core hours, cost,
and what bounds it, by the number of workers.

    benchmarks/scale.py measure --lm LM --nbest LISTS.jsonl [--out rates.json]
    benchmarks/scale.py measure-training --conf F.yaml --train F.bin --valid F.bin [--out R.json]
    benchmarks/scale.py plan --rates rates.json --items 100e6 --workers 1 10 100 1000

`measure` runs `lmtools score` on one and on two single-thread workers. Of one worker it takes three
times: of a part of the lists, of all of them, and of all of them from the cache, which costs all
but the model. They give what the model below needs; two workers then show how well it predicts.

    T(n) = start + start of workers (n > 1) + serial * items + makespan(work * items, n workers)

`plan` deals the items out to shards (one a worker, or --shards) and lets workers take them, an
event at a time: a worker that fails (--failures an hour) loses --lost items, waits --queue seconds
and starts again, as tasks of a cluster do; another worker never takes over a running shard.

`measure-training` runs `lmtools train` by one and by two single-thread processes, each for a few
and for some more steps. What n processes of a training do, they do together: an item is a step,
each computes its share, and all exchange gradients, of which a ring moves 2 (n - 1) / n times their
size through each:

    T(n) = start + items * (work / n + sync * 2 (n - 1) / n)

A process that fails stops all, and --lost steps are done again.
"""

import argparse
import heapq
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from measures.machine import describe_machine

from lmtools.base.atomic import atomic_text
from lmtools.formats import stream, write

SEED = 1


@dataclass(frozen=True)
class Rates:
    """Seconds of one core: until a worker works, and for each item, of what can be divided and of
    what one process does for all; of a training, what two processes need for exchanging gradients.
    """

    start: float
    work: float
    serial: float
    machine: str = ""
    sync: float | None = None


@dataclass(frozen=True)
class Cluster:
    """What else decides: shards (None: one a worker), seconds in the queue, failures a worker has
    in an hour, items of work that each of them loses.
    """

    shards: int | None = None
    queue: float = 0.0
    failures: float = 0.0
    lost: float = 0.0


def main() -> None:
    """Measure, or plan with what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    measured = verbs.add_parser("measure")
    measured.add_argument("--lm", required=True)
    measured.add_argument("--nbest", required=True)
    measured.add_argument("--repeats", type=int, default=3)
    measured.add_argument("--precision", default="auto")
    measured.add_argument("--out")
    training = verbs.add_parser("measure-training")
    for name in ("conf", "train", "valid"):
        training.add_argument(f"--{name}", required=True)
    training.add_argument("--steps", type=int, nargs=2, default=[4, 16], metavar=("A", "B"))
    training.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    training.add_argument("--out")
    plan = verbs.add_parser("plan")
    plan.add_argument("--rates", help="what `measure` wrote; or the three below")
    for name in ("start", "work", "serial"):
        plan.add_argument(f"--{name}", type=float, default=0.0)
    plan.add_argument("--sync", type=float, help="of a training: an item is a step")
    plan.add_argument("--items", type=float, required=True)
    plan.add_argument("--workers", type=int, nargs="+", default=[1, 10, 100, 1000])
    plan.add_argument("--shards", type=int)
    for name in ("queue", "failures", "lost"):
        plan.add_argument(f"--{name}", type=float, default=0.0)
    plan.add_argument("--price", type=float, default=0.0, help="of a core for an hour")
    options = parser.parse_args()
    verbs = {"measure": measure, "measure-training": measure_training, "plan": print_plan}
    verbs[options.verb](options)


def measure(options) -> None:
    """Print and write the rates, and how well they predict two workers."""
    lists = list(stream(options.nbest))
    with tempfile.TemporaryDirectory() as place:
        part = lists[: len(lists) // 5]
        write(part, f"{place}/part.jsonl", "jsonl")
        write(lists, f"{place}/all.jsonl", "jsonl")
        few, all_ = (sum(len(nbest.hyps) for nbest in some) for some in (part, lists))
        runs = {"part": ("part", 1), "all": ("all", 1), "two": ("all", 2), "cached": ("all", 1)}
        times = {name: [] for name in runs}
        for turn in range(options.repeats):
            cache = f"{place}/cache{turn}"
            for name, (what, nj) in runs.items():
                keep = cache if name in ("all", "cached") else "none"
                times[name].append(
                    clock(options, f"{place}/{what}.jsonl", f"{place}/{name}.scores", nj, keep)
                )
        same = Path(f"{place}/all.scores").read_bytes() == Path(f"{place}/two.scores").read_bytes()
    seconds = {name: statistics.median(values) for name, values in times.items()}
    total = (seconds["all"] - seconds["part"]) / (all_ - few)
    start = max(0.0, seconds["all"] - total * all_)
    serial = max(0.0, (seconds["cached"] - start) / all_)
    rates = Rates(start, total - serial, serial, describe_machine(torch.device("cpu")))
    predicted = simulate(rates, all_, 2, Cluster())
    print(f"{all_:,} hypotheses: {', '.join(f'{k} {v:.1f} s' for k, v in seconds.items())}")
    print(f"start {start:.2f} s; a hypothesis {1e3 * rates.work:.3f} ms, serial {1e3 * serial:.3f}")
    print(f"two workers: {seconds['two']:.1f} s, predicted {predicted:.1f} s; same bytes: {same}")
    print(f"work alone: {(seconds['all'] - seconds['cached']):.1f} s of one worker")
    if options.out:
        with atomic_text(options.out) as out:
            json.dump(asdict(rates), out, indent=1)


def clock(options, lists: str, out: str, nj: int, cache: str) -> float:
    """Seconds of one command, each of its processes with one thread."""
    command = [sys.executable, "-m", "lmtools", "score", "--lm", options.lm, "--nbest", lists]
    command += ["--precision", options.precision, "--nj", str(nj), "--cache", cache, "--out", out]
    began = time.perf_counter()
    subprocess.run(
        command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL
    )
    return time.perf_counter() - began


def measure_training(options) -> None:
    """Print and write the rates of a training, seconds by the clock."""
    few, many = options.steps
    seconds = {
        (n, steps): clock_training(options, n, steps) for n in (1, 2) for steps in (few, many)
    }
    one, two = ((seconds[n, many] - seconds[n, few]) / (many - few) for n in (1, 2))
    start = max(0.0, seconds[1, few] - few * one)
    rates = Rates(start, one, 0.0, describe_machine(torch.device("cpu")), max(0.0, two - one / 2))
    print(f"start {start:.1f} s; a step {one:.3f} s, of two processes {two:.3f} s")
    print(f"so that they exchange for {rates.sync:.3f} s; two are {one / two:.2f} times one")
    if options.out:
        with atomic_text(options.out) as out:
            json.dump(asdict(rates), out, indent=1)


def clock_training(options, processes: int, steps: int) -> float:
    """Seconds of a training of so many steps, each of its processes with one thread."""
    command = [sys.executable, "-m", "lmtools"]
    if processes > 1:
        torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        command = [sys.executable, "-m", *torchrun, "-m", "lmtools"]
    command += ["train", "--conf", options.conf, "--train", options.train]
    command += ["--valid", options.valid, *options.set, f"steps={steps}"]
    with tempfile.TemporaryDirectory() as place:
        began = time.perf_counter()
        subprocess.run(
            [*command, "valid_every=100000", "checkpoint_every=100000", "--out", f"{place}/lm"],
            check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return time.perf_counter() - began


def simulate(rates: Rates, items: float, workers: int, cluster: Cluster) -> float:
    """Seconds until all is done and merged."""
    if rates.sync is not None:
        step = rates.work / workers + rates.sync * 2 * (workers - 1) / workers
        together = Rates(rates.start, step, 0.0)
        all_fail = replace(cluster, failures=cluster.failures * workers)
        draw = random.Random(SEED)
        return cluster.queue + rates.start + run_shard(step * items, together, all_fail, draw)
    alone = rates.start + rates.serial * items
    if workers == 1 and not cluster.shards:
        return alone + rates.work * items
    shards = cluster.shards or workers
    draw = random.Random(SEED)
    free = [0.0] * min(workers, shards)  # when each worker is free
    for _ in range(shards):
        at = heapq.heappop(free) + cluster.queue + rates.start
        heapq.heappush(free, at + run_shard(rates.work * items / shards, rates, cluster, draw))
    return alone + max(free)


def run_shard(seconds: float, rates: Rates, cluster: Cluster, draw: random.Random) -> float:
    """How long a shard takes with all the failures on its way."""
    spent, left = 0.0, seconds
    while cluster.failures:
        until = draw.expovariate(cluster.failures / 3600)
        if until >= left:
            break
        spent += until + cluster.queue + rates.start
        left -= max(0.0, until - cluster.lost * rates.work)
    return spent + left


def print_plan(options) -> None:
    """A table by the number of workers."""
    if options.rates:
        rates = Rates(**json.loads(Path(options.rates).read_text()))
    else:
        rates = Rates(options.start, options.work, options.serial, sync=options.sync)
    cluster = Cluster(options.shards, options.queue, options.failures, options.lost)
    one = simulate(rates, options.items, 1, Cluster())
    print("| workers | hours | core hours | times one | cost | bound by |")
    print("|---:|---:|---:|---:|---:|---|")
    for workers in options.workers:
        seconds = simulate(rates, options.items, workers, cluster)
        hours = seconds / 3600
        parts = {
            "the model": rates.work * options.items / workers,
            "reading and writing": rates.serial * options.items,
            "exchanging": (rates.sync or 0) * options.items * 2 * (workers - 1) / workers,
            "starting": 2 * rates.start + cluster.queue,
        }
        bound = max(parts, key=parts.get)
        cost = f"{hours * workers * options.price:,.0f}" if options.price else "-"
        print(
            f"| {workers:,} | {hours:,.2f} | {hours * workers:,.1f} | {one / seconds:,.1f} |"
            f" {cost} | {bound} ({parts[bound] / seconds:.0%}) |"
        )


if __name__ == "__main__":
    main()
