"""Tokens a second that trainings reach which share a machine, and the steps that fit into a time:
what a loan of a GPU is planned by. A step is all of a training's: making the batch, forward,
backward, clipping, update.
"""

import multiprocessing
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from measures.criteria import REFERENCE, Bench, Job
from measures.machine import describe_machine

SPARE = 0.9  # of the time: loading, validation and checkpoints take the rest


def train_for(job: Job, seconds: float, start, results) -> None:
    """Train from the moment when all others are ready, too; put (tokens, seconds) into `results`;
    runs in a process of its own.
    """
    torch.set_num_threads(job.threads)
    bench, number = Bench(job), 0
    bench.use(REFERENCE)
    bench.step(job.batch(0))
    synchronise(bench.device)
    start.wait()
    begin = time.perf_counter()
    while (spent := time.perf_counter() - begin) < seconds or not number:
        number += 1
        bench.step(job.batch(number))
        if number % 8 == 0:  # the host runs ahead of a GPU
            synchronise(bench.device)
    synchronise(bench.device)
    spent = time.perf_counter() - begin
    results.put((job.settings["model"], number * job.sentences * job.tokens / spent))


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def measure_together(jobs: Sequence[Job], seconds: float) -> list[dict]:
    """Return the tokens a second of each of jobs that train at the same time, a process each."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(len(jobs)), context.Queue()
    processes = [
        context.Process(target=train_for, args=(job, seconds, start, results)) for job in jobs
    ]
    for process in processes:
        process.start()
    rates = []
    while len(rates) < len(jobs):
        try:
            rates.append(results.get(timeout=1.0))
        except multiprocessing.queues.Empty:
            if any(process.exitcode for process in processes):
                start.abort()
                raise RuntimeError(
                    "a training that is measured ended; its error is above"
                ) from None
    for process in processes:
        process.join()
    return [{"model": model, "tokens_per_second": rate} for model, rate in sorted(rates)]


def bench_rate(
    jobs: Mapping[str, Job], together: Sequence[int], tokens: Sequence[int], seconds: float
) -> dict:
    """Measure so many trainings at once, of `jobs` by turns, by batches of so many tokens."""
    names, rows = list(jobs), []
    for count in together:
        for size in tokens:
            some = [jobs[names[number % len(names)]] for number in range(count)]
            some = [replace(job, sentences=max(1, size // job.tokens)) for job in some]
            rows.append({"together": count, "batch": size, "each": measure_together(some, seconds)})
    first = next(iter(jobs.values()))
    return {
        "rows": rows, "seconds": seconds, "precision": first.precision, "ids": first.size,
        "machine": describe_machine(torch.device(first.device)),
    }  # fmt: skip


def count_steps(figures: Mapping, together: int, batch: int, seconds: float) -> int:
    """Return the steps of batches of `batch` tokens that the slowest of so many trainings ends in
    `seconds`, by the measured rate.
    """
    return int(SPARE * seconds * slowest(figures, together, batch) / batch)


def slowest(figures: Mapping, together: int, batch: int) -> float:
    """Return the tokens a second of the slowest of so many trainings, as measured."""
    return min(
        each["tokens_per_second"]
        for row in figures["rows"]
        if (row["together"], row["batch"]) == (together, batch)
        for each in row["each"]
    )
