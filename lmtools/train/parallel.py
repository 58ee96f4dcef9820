"""Several processes that train one model, as torchrun starts them: each takes its share of every
batch, and gradients are summed.

What is drawn for a batch (masks, noise) is drawn for the whole of it in every process alike, so
that the number of processes changes nothing but the order of sums; dropout differs between
processes. The first process alone writes and prints.
"""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from lmtools.base.errors import UserError
from lmtools.models.device import choose_device
from lmtools.models.objectives import Examples

BUCKET = 1 << 26  # bytes of gradients that are summed at a time
# without an answer of another process; the first of them hashes corpora and writes checkpoints
TIMEOUT = timedelta(minutes=30)


class AlreadyReported(UserError):
    """Mistake of the user that the first process reports, so that the others need not."""


class World:
    """All processes of a training: this one alone, or `Several`; `rank` of `size`."""

    rank, size = 0, 1

    @property
    def first(self) -> bool:
        """Return whether this process is the one that writes and prints."""
        return self.rank == 0

    def device(self, name: str) -> torch.device:
        """Return the device of this process; `auto` is the GPU where there is one."""
        return choose_device(name)

    def agree(self, work: Callable):
        """Return `work`'s result after all processes have theirs; a UserError is everybody's."""
        return work()

    def error(self, message: str) -> UserError:
        """Return the error to raise for a mistake that all processes have seen."""
        return UserError(message)

    def sum(self, number: float) -> float:
        return number

    def any(self, flag: bool) -> bool:
        return flag

    def total(self, value: Tensor) -> Tensor:
        """Return the sum of a tensor over all processes."""
        return value

    def share(self, examples: Examples) -> Examples:
        """Return every `size`-th sentence of a batch, those of this process."""
        return examples

    def add_gradients(
        self, parameters: Iterable[nn.Parameter], sparse: Iterable[nn.Parameter]
    ) -> None:
        """Make every gradient the sum over all processes."""


class Several(World):
    """More than one process, each on its device; host values by gloo, of GPUs by NCCL."""

    def __init__(self):
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

    def device(self, name):
        if name in ("auto", "cuda") and torch.cuda.is_available():
            name = f"cuda:{os.environ.get('LOCAL_RANK', self.rank)}"
        device = choose_device(name)
        if device.type == "cuda":
            torch.cuda.set_device(device)
        return device

    def agree(self, work):
        result, error = None, None
        try:
            result = work()
        except (UserError, OSError) as wrong:
            error = str(wrong)
        errors = [None] * self.size
        with expect_answer():
            dist.all_gather_object(errors, error)
        if any(errors):
            raise self.error(next(filter(None, errors)))
        return result

    def error(self, message):
        return UserError(message) if self.first else AlreadyReported(message)

    def sum(self, number):
        return type(number)(self.total(torch.tensor(float(number), dtype=torch.float64)).item())

    def any(self, flag):
        return bool(self.sum(int(flag)))

    def total(self, value):
        with expect_answer():
            dist.all_reduce(value)
        return value

    def share(self, examples):
        return take_share(examples, self.rank, self.size)

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return a tensor of equal shape from each process."""
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        with expect_answer():
            dist.all_gather(parts, tensor.contiguous())
        return parts

    def add_gradients(self, parameters, sparse):
        """See World; where one process used a parameter, all get the gradient."""
        parameters, rowwise = [p for p in parameters if p.requires_grad], {id(p) for p in sparse}
        present = torch.tensor([p.grad is not None for p in parameters], dtype=torch.float32)
        used = self.total(present).tolist()
        parameters = [p for p, count in zip(parameters, used, strict=True) if count]
        for parameter in parameters:
            if id(parameter) in rowwise:
                parameter.grad = self.add_rows(parameter)
            elif parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        for bucket in split_buckets([p.grad for p in parameters if id(p) not in rowwise]):
            flat = self.total(torch.cat([gradient.flatten() for gradient in bucket]))
            sums = flat.split([gradient.numel() for gradient in bucket])
            for gradient, summed in zip(bucket, sums, strict=True):
                gradient.copy_(summed.view_as(gradient))

    def add_rows(self, parameter: nn.Parameter) -> Tensor:
        """Return the sum of a sparse gradient: the rows of all processes, each once."""
        values = parameter.detach()[:0]
        rows = torch.zeros(0, dtype=torch.long, device=parameter.device)
        if parameter.grad is not None:
            gradient = parameter.grad.coalesce()
            rows, values = gradient.indices()[0], gradient.values()
        counts = [int(count) for count in self.gather(torch.tensor(len(rows)))]
        # all processes send as many rows as the one that has most
        missing = max(counts) - len(rows)
        rows = self.gather(torch.cat([rows, rows.new_zeros(missing)]))
        values = self.gather(torch.cat([values, values.new_zeros(missing, *values.shape[1:])]))
        rows, values = (
            torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])
            for parts in (rows, values)
        )
        shape = parameter.shape
        return torch.sparse_coo_tensor(rows[None], values, shape, check_invariants=False).coalesce()


def take_share(examples: Examples, first: int, size: int) -> Examples:
    """Return every `size`-th sentence of a batch, from the one numbered `first`."""
    if size == 1:
        return examples
    width = examples.inputs.shape[1]
    # of a sentence; two-way models have one a direction
    states = width * (1 if examples.spellings is None else 2)
    sentence, place = examples.rows // states, examples.rows % states
    shared = sentence % size == first
    rows = sentence[shared] // size * states + place[shared]
    mine = slice(first, None, size)
    inputs, spellings = examples.inputs[mine], examples.spellings
    if spellings is not None:
        words, inputs = inputs.unique(return_inverse=True)
        spellings = spellings[words]
    changed = {"inputs": inputs, "rows": rows, "targets": examples.targets[shared]}
    for name in ("lengths", "sources", "source_lengths"):
        if (tensor := getattr(examples, name)) is not None:
            changed[name] = tensor[mine]
    return dataclasses.replace(examples, spellings=spellings, **changed)


def split_buckets(gradients: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """Yield gradients in groups of one type and about BUCKET bytes."""
    group, size = [], 0
    for gradient in gradients:
        if group and (size + gradient.nbytes > BUCKET or gradient.dtype != group[0].dtype):
            yield group
            group, size = [], 0
        group.append(gradient)
        size += gradient.nbytes
    if group:
        yield group


@contextlib.contextmanager
def expect_answer() -> Iterator[None]:
    """Wait for other processes inside the block; UserError where one has ended or is silent."""
    try:
        yield
    except RuntimeError as error:
        cause = str(error).strip().splitlines()[0][:100]
        raise UserError(
            f"another process of this training has ended or does not answer ({cause}); see what it"
            " says"
        ) from None


def first_process() -> bool:
    """Return whether this process is the first, or the only one, that torchrun started."""
    return int(os.environ.get("WORLD_SIZE", 1)) == 1 or int(os.environ["RANK"]) == 0


@contextlib.contextmanager
def join_processes(device: str) -> Iterator[World]:
    """Yield the world of this process by torchrun's variables; without them a world of one. Who
    trains twice in a process opens torch's process group before.
    """
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield World()
        return
    if dist.is_initialized():
        yield Several()
        return
    gpu = device != "cpu" and torch.cuda.is_available()
    with expect_answer():
        dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", timeout=TIMEOUT)
    try:
        yield Several()
    finally:
        dist.destroy_process_group()


def hash_seed(*numbers: int) -> int:
    """Return a seed for torch from several numbers: (seed, step) or (seed, step, process)."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
