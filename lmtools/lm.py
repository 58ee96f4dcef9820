"""A neural language model: a trunk that makes states, an objective that says what they predict, an
output layer that predicts it.
"""

import contextlib
import platform
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from lmtools.errors import UserError
from lmtools.models import MODELS
from lmtools.objectives import OBJECTIVES, Examples, TwoWay, never
from lmtools.outputs import CRITERIA, Targets
from lmtools.settings import Settings
from lmtools.subword.spelled import WordTargets as Words
from lmtools.types import NUMERICS

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# model rows of a batch; on a CPU a thread needs no more, and short lists fill up few
ROWS, ROWS_GPU = 256, 4096


class LanguageModel(nn.Module):
    """Trunk and output layer of `settings` over a vocabulary of `size` ids, or of what spelled ones
    predict (`words`).

    `counts` (outputs,) says how often each id is a target in training; None: weights are loaded
    afterwards, or all ids are alike.
    """

    def __init__(
        self,
        settings: Settings,
        size: int,
        counts: np.ndarray | None = None,
        words: Words | None = None,
    ):
        super().__init__()
        self.settings, self.size = settings, size
        self.objective = OBJECTIVES[settings.objective](words)
        self.trunk = MODELS[settings.model](settings.architecture, size)
        if getattr(self.trunk, "two_way", False) != self.two_way:
            raise UserError(
                f"objective: {settings.objective} does not go with model {settings.model}; two-way"
                " is elmo's, and only elmo's"
            )
        targets = Targets(words.size if self.two_way else size, never(self.objective), counts)
        make = CRITERIA[settings.criterion].create
        self.output = make(
            settings.output_layer, self.trunk.shared, self.trunk.width, targets, settings.sparse
        )
        self.trunk.lookup.sparse = settings.sparse

    @property
    def two_way(self) -> bool:
        """Whether it reads spelled words and predicts each from either side."""
        return isinstance(self.objective, TwoWay)

    @property
    def shares(self) -> bool:
        """Whether the input embedding is the output matrix too; the adaptive softmax has matrices
        of its own in any case.
        """
        return (
            self.trunk.shared is not None
            and getattr(self.output, "weight", None) is self.trunk.shared
        )

    def sparse_parameters(self) -> list[nn.Parameter]:
        """The matrices whose gradients are sparse: the input embedding, unless it shares a dense
        one, and the output matrix.
        """
        if not self.trunk.lookup.sparse:
            return []
        output = [self.output.weight] if getattr(self.output, "sparse", False) else []
        return output if self.shares else [self.trunk.lookup.weight, *output]

    @property
    def longest(self) -> int:
        """The longest sentence that fits the positions, in tokens without boundary tokens."""
        return self.trunk.config.positions - self.objective.boundary

    def forward(self, examples: Examples) -> tuple[Tensor, int]:
        """The summed loss of the examples and their number; divide once, at the end."""
        return self.output(self.trunk.head(self.states(examples)), examples.targets)

    def states(self, examples: Examples) -> Tensor:
        """The states (N, D) that predict the targets."""
        return self.trunk.hidden(*examples.read).flatten(0, 1)[examples.rows]


def batch_rows(rows: int | None, device: torch.device) -> int:
    """The model rows of a batch: `rows`, or what suits the device where it is None."""
    return rows or (ROWS if device.type == "cpu" else ROWS_GPU)


def numerics(precision: str, device: torch.device, rows: int) -> dict[str, str]:
    """The part of a signature that only rounding depends on, under the names in
    lmtools.types.NUMERICS.
    """
    return dict(zip(NUMERICS, (precision, device.type, str(rows)), strict=True))


def autocast(device: torch.device, precision: str):
    """A context in which matrix products have that precision."""
    if PRECISIONS[precision] is torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, PRECISIONS[precision])


def resolve_precision(precision: str, device: torch.device) -> str:
    """`auto` is bfloat16 where the device multiplies it natively, else float32."""
    if precision == "auto":
        fast = (
            torch.cuda.is_bf16_supported(including_emulation=False)
            if device.type == "cuda"
            else cpu_multiplies_bfloat16()
        )
        return "bfloat16" if fast else "float32"
    if precision not in PRECISIONS:
        raise UserError(
            f"precision: {precision!r} is unknown; known: auto, {', '.join(PRECISIONS)}"
        )
    return precision


@lru_cache
def cpu_multiplies_bfloat16() -> bool:
    """Whether this processor has bfloat16 dot products (AVX-512 BF16 or AMX); elsewhere they are
    emulated and slow.
    """
    info = Path("/proc/cpuinfo")
    flags = info.read_text() if info.exists() else ""
    return "avx512_bf16" in flags or "amx_bf16" in flags


def processor(device: torch.device) -> str:
    """The name of the processor or GPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )


def machine_facts(device: torch.device) -> dict[str, str | int]:
    """What the last digits of a training depend on: processor, the instructions that torch uses,
    threads, torch, device.
    """
    return {
        "processor": processor(device), "capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "torch": str(torch.__version__), "device": device.type,
    }  # fmt: skip


def choose_device(name: str = "auto") -> torch.device:
    """`auto` is the GPU where there is one; otherwise any name that torch knows."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(
            f"device {name}: {str(error).splitlines()[0]}; use cpu, cuda or auto"
        ) from None
    return device
