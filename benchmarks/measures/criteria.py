"""Cost of a training step by its criterion: time and memory against full cross entropy, the same
model and batches, in one run.

A step is forward, backward, clipping and the optimiser's update, as in lmtools.train; making the
batch is not counted, drawing the noise is. The criteria take turns in one process and share trunk
and output matrix; only the output layer is changed from one to the next. Adaptive softmax
has matrices of its own and leaves a tied input embedding without its second use.

The target: over 200,000 ids with 8192 samples, every sampled criterion takes at most 0.30 of full
cross entropy's time on a CPU, for an LSTM and for a Transformer of 3 layers of 512, and at most
0.68 on a GPU for the sampling paper's 42 layers (its Table 2); and memory does not grow with batch
x vocabulary: twice the batch adds the same megabytes at every vocabulary size.
"""

import gc
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lmtools.base.config import build
from lmtools.base.errors import UserError
from lmtools.base.workers import Work, WorkerPool
from lmtools.models.device import autocast, choose_device, resolve_precision
from lmtools.models.lm import LanguageModel
from lmtools.models.objectives import OBJECTIVES, Examples, excluded_ids
from lmtools.models.outputs import CRITERIA, OutputLayer, Targets
from lmtools.models.outputs.noise import LogUniform
from lmtools.models.settings import Settings
from lmtools.text.subword import SPECIALS
from lmtools.train.optim import build_optimiser, clip_gradients
from lmtools.version import __version__
from measures.machine import describe_machine, describe_trunk, stopwatch

REFERENCE = "softmax"
CUTOFFS = (4_000, 40_000, 200_000)  # those below the vocabulary's size
BATCHES = 4  # different ones, in turns
COUNTED = 1e9  # targets in the training corpus that counts are made up for
MEGA = 1e6


@dataclass(frozen=True)
class Job:
    """One model over `size` ids and the batches that it is trained on; `settings` name no
    criterion, `output` has its options.
    """

    settings: dict
    output: dict
    size: int
    sentences: int  # a batch
    tokens: int  # a sentence, without boundary tokens
    device: str = "cpu"
    precision: str = "float32"
    threads: int = 1
    clock: str = "wall"  # of `stopwatch`

    def of(self, criterion: str) -> Settings:
        """Return the settings of a training by that criterion; of `output` it takes the options
        that it has.
        """
        known = option_names(criterion)
        output = {name: value for name, value in self.output.items() if name in known}
        if criterion == "adaptive":
            cutoffs = [cutoff for cutoff in output.get("cutoffs", CUTOFFS) if cutoff < self.size]
            output["cutoffs"] = cutoffs or [max(1, self.size // 8)]
        return build(
            Settings,
            {
                **self.settings,
                "criterion": criterion,
                "output": output,
                "precision": self.precision,
            },
        )

    @cached_property
    def zipf(self) -> LogUniform:
        """Log-uniform over the words, of which the first id is the most frequent, as of a list
        sorted by frequency.
        """
        return LogUniform(np.arange(self.size, 0, -1), range(len(SPECIALS)))

    @property
    def counts(self) -> np.ndarray:
        """Return how often each id is a target in the corpus that the batches are from, (size,)."""
        counts = self.zipf.probability * COUNTED
        counts[list(OBJECTIVES[self.settings["objective"]].ends)] = COUNTED / self.tokens
        return counts

    def batch(self, number: int) -> Examples:
        """Return batch `number`, the same for every criterion."""
        generator = torch.Generator().manual_seed(number)
        ids = self.zipf.draw(self.sentences * self.tokens, generator)
        ids, objective = ids.reshape(self.sentences, -1), OBJECTIVES[self.settings["objective"]]()
        examples = objective.training(ids, np.random.default_rng(number), self.size)
        return examples.to(choose_device(self.device))


def option_names(kind: str) -> set[str]:
    """Return the names of a criterion's options."""
    return {field.name for field in fields(CRITERIA[kind].Config)}


class Bench:
    """The model of a job, whose criterion is changed by `use`; `step` is one training step."""

    def __init__(self, job: Job):
        torch.manual_seed(0)
        self.job, self.device = job, choose_device(job.device)
        self.precision = resolve_precision(job.precision, self.device)
        self.lm = LanguageModel(job.of(REFERENCE), job.size, job.counts).to(self.device).train()
        self.layers = {REFERENCE: self.lm.output}
        self.batches = [job.batch(number) for number in range(BATCHES)]
        # a step of full criteria takes minutes on a CPU
        small = job if self.device.type == "cuda" else replace(job, sentences=1)
        self.small = small.batch(0)

    def layer(self, criterion: str) -> OutputLayer:
        """Return the output layer of a criterion, with the matrix that all share unless it is
        adaptive.
        """
        if criterion not in self.layers:
            lm, settings = self.lm, self.job.of(criterion)
            shared = None if settings.criterion == "adaptive" else self.layers[REFERENCE].weight
            targets = Targets(lm.size, excluded_ids(lm.objective), self.job.counts)
            layer = CRITERIA[settings.criterion].create(
                settings.output_layer, shared, lm.trunk.width, targets, settings.sparse
            )
            self.layers[criterion] = layer.to(self.device)
        return self.layers[criterion]

    def use(self, criterion: str) -> None:
        """Go on with another criterion and an optimiser of its own."""
        lm, self.count = self.lm, 0
        lm.output, lm.settings = self.layer(criterion), self.job.of(criterion)
        lm.trunk.lookup.sparse = lm.settings.sparse
        self.optimiser = build_optimiser(lm, lm.settings.optim)
        self.step(self.small)  # makes the optimiser's state

    def step(self, examples: Examples | None = None) -> None:
        """Take one step, on the next batch unless examples are given; UserError where the loss is
        not finite.
        """
        if examples is None:
            examples, self.count = self.batches[self.count % BATCHES], self.count + 1
        optim = self.lm.settings.optim
        self.optimiser.zero_grad(set_to_none=True)
        with autocast(self.device, self.precision):
            loss, count = self.lm(examples)
        (loss / count).backward()
        if optim.clip:
            clip_gradients(self.lm.parameters(), optim.clip)
        if self.device.type == "cpu" and not math.isfinite(loss.item()):
            raise UserError(f"{self.lm.settings.criterion}: the loss is not finite; lower optim.lr")
        self.optimiser.step()

    def turn(self, criterion: str, least: float) -> list[float]:
        """Return the seconds of each of as many steps as take `least` seconds, one at least."""
        self.use(criterion)
        spent: list[float] = []
        while sum(spent) < least or not spent:
            spent.append(stopwatch(self.step, self.device, self.job.clock))
        self.optimiser.zero_grad(set_to_none=True)
        del self.optimiser
        return spent

    def memory(self, criterion: str) -> dict:
        """Return the bytes by which a step goes beyond parameters and optimiser state (None:
        unknown here), and those of the state.
        """
        self.use(criterion)
        self.optimiser.zero_grad(set_to_none=True)
        # the others would count, where nothing else holds them
        self.layers = {criterion: self.lm.output}
        gc.collect()
        state = sum(
            t.nbytes
            for s in self.optimiser.states().values()
            for t in s.values()
            if isinstance(t, Tensor)
        )
        return {"peak": measure_growth(self.step, self.device), "state": state}


def measure_growth(function: Callable, device: torch.device) -> int | None:
    """Return the bytes by which memory grows at most while `function` runs: torch's on a GPU,
    resident memory of this process on Linux, else None.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        function()
        return torch.cuda.max_memory_allocated(device) - before
    clear = Path("/proc/self/clear_refs")
    if not clear.exists():
        return None
    clear.write_text("5")  # forget the peak so far: proc(5)
    before = resident_bytes("VmRSS")
    function()
    return max(0, resident_bytes("VmHWM") - before)


def resident_bytes(name: str) -> int:
    """Return a line of this process's status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def measure_memory(job: Job, criterion: str) -> dict:
    """Return `Bench.memory` in a process where nothing else ran."""
    work = Work(partial(alone_memory, job))
    with WorkerPool(work, 1, remedy="measure a smaller --vocab-size or --batch") as alone:
        return alone.submit(criterion).result()


def alone_memory(job: Job, criterion: str) -> dict:
    """Measure the memory of a criterion's step; runs in a process of its own."""
    torch.set_num_threads(job.threads)
    return Bench(job).memory(criterion)


def measure_job(job: Job, criteria: Sequence[str], turns: int, least: float) -> Iterator[dict]:
    """Yield one row a criterion, of one job; memory first, while nothing else is loaded."""
    sizes = {criterion: measure_memory(job, criterion) for criterion in criteria}
    bench = Bench(job)
    spent: dict[str, list[float]] = {criterion: [] for criterion in criteria}
    for _ in range(turns):
        for criterion in criteria:
            spent[criterion] += bench.turn(criterion, least)
    medians = {criterion: statistics.median(seconds) for criterion, seconds in spent.items()}
    targets = statistics.mean(len(examples.targets) for examples in bench.batches)
    for criterion in criteria:
        yield {
            "criterion": criterion, "size": job.size, "sentences": job.sentences,
            "tokens": job.tokens, "targets": targets, "trunk": describe_trunk(bench.lm),
            "seconds_median": medians[criterion], "ratio": medians[criterion] / medians[REFERENCE],
            "peak_bytes": sizes[criterion]["peak"], "optimiser_bytes": sizes[criterion]["state"],
            "output": job.of(criterion).output, "sparse": job.of(criterion).sparse,
            "seconds": spent[criterion],
        }  # fmt: skip


def bench_criteria(
    jobs: Sequence[Job], criteria: Sequence[str], turns: int, least: float, say: Callable = print
) -> dict:
    """Measure everything of `bench.py criteria`; full cross entropy is always among the
    criteria. `say` gets each job's table.
    """
    criteria = list(dict.fromkeys([REFERENCE, *criteria]))
    check_options(jobs[0].output, criteria)
    rows = []
    for job in jobs:
        rows += (table := list(measure_job(job, criteria, turns, least)))
        say("\n".join(format_table(table)))
    first = jobs[0]
    return {
        "rows": rows, "settings": asdict(first.of(REFERENCE)), "output": first.output,
        "turns": turns, "least_seconds": least, "clock": first.clock,
        "threads": first.threads, "precision": first.precision, "device": first.device,
        "machine": describe_machine(choose_device(first.device)),
        "versions": {"lmtools": __version__, "torch": torch.__version__, "numpy": np.__version__},
    }  # fmt: skip


def check_options(output: Mapping, criteria: Sequence[str]) -> None:
    """Raise UserError for a criterion that is not known and for an option that none of the criteria
    has.
    """
    if unknown := [name for name in criteria if name not in CRITERIA]:
        raise UserError(f"criteria: {unknown[0]!r} is unknown; known: {', '.join(CRITERIA)}")
    known = set().union(*(option_names(name) for name in criteria))
    if unknown := [name for name in output if name not in known]:
        raise UserError(
            f"output.{unknown[0]}: no option of these criteria; known:"
            f" {', '.join(sorted(known)) or 'none'}"
        )


def format_table(rows: Sequence[Mapping]) -> Iterator[str]:
    """Yield the lines of the table of one job."""
    first = rows[0]
    yield (
        f"{first['size']:,} ids, {first['sentences']} sentences of {first['tokens']} tokens,"
        f" {first['targets']:,.0f} targets a batch; trunk: {first['trunk']}"
    )
    yield f"{'criterion':<16}{'ms a step':>11}{'of CE':>8}{'peak MB':>10}"
    for row in rows:
        peak = "-" if row["peak_bytes"] is None else f"{row['peak_bytes'] / MEGA:,.0f}"
        yield (
            f"{row['criterion']:<16}{row['seconds_median'] * 1e3:>11,.1f}"
            f"{row['ratio']:>8.3f}{peak:>10}"
        )
