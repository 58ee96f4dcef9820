"""The device that models compute on: its choice, the precision of matrix products, the rows of a
batch, what machine it is, and dropout that is cheap on a CPU.
"""

import contextlib
import platform
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.base.errors import UserError
from lmtools.types import NUMERICS

# of matrix products -> of what is multiplied; int8 takes float32 and rounds it by itself
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.float32}
# model rows of a batch; on a CPU a thread needs no more, and short lists fill up few
ROWS, ROWS_GPU = 256, 4096
# a byte decides over an element on the CPU, so that the rate there is the nearest multiple of 1/256
LEVELS = 256


def product_dtype(x: Tensor) -> torch.dtype:
    """Return the precision of matrix products with `x`: autocast's where it is on, else its own."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


def batch_rows(rows: int | None, device: torch.device) -> int:
    """Return the model rows of a batch: `rows`, or what suits the device where it is None."""
    return rows or (ROWS if device.type == "cpu" else ROWS_GPU)


def numerics(precision: str, device: torch.device, rows: int) -> dict[str, str]:
    """Return the part of a signature that only rounding depends on, as NUMERICS names it."""
    return dict(zip(NUMERICS, (precision, device.type, str(rows)), strict=True))


def autocast(device: torch.device, precision: str):
    """Return a context in which matrix products have that precision."""
    if PRECISIONS[precision] is torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, PRECISIONS[precision])


def resolve_precision(precision: str, device: torch.device, integers: bool = False) -> str:
    """Return the precision of a name; `auto`: bfloat16 where it is native, else float32."""
    if precision == "auto":
        if device.type == "cuda":
            fast = torch.cuda.is_bf16_supported(including_emulation=False)
        else:
            fast = cpu_multiplies_bfloat16()
        return "bfloat16" if fast else "float32"
    known = [name for name in PRECISIONS if integers or name != "int8"]
    if precision not in known:
        raise UserError(
            f"precision: {precision!r} is unknown here; known: auto, {', '.join(known)}"
        )
    return precision


@lru_cache
def onednn_computes_bfloat16() -> bool:
    """Return whether oneDNN has bfloat16 kernels for this processor: from AVX-512 on. Matrix
    products of torch do without; recurrent layers and prepared products stop with an error.
    """
    return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


@lru_cache
def cpu_multiplies_bfloat16() -> bool:
    """Return whether this processor has bfloat16 dot products, not slow emulated ones."""
    info = Path("/proc/cpuinfo")
    flags = info.read_text() if info.exists() else ""
    return "avx512_bf16" in flags or "amx_bf16" in flags


def name_processor(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )


def machine_facts(device: torch.device) -> dict[str, str | int]:
    """Return on what a training's last digits depend: processor, instructions, threads, torch."""
    return {
        "processor": name_processor(device), "capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "torch": str(torch.__version__), "device": device.type,
    }  # fmt: skip


def choose_device(name: str = "auto") -> torch.device:
    """Return the device of a name that torch knows; `auto`: the GPU where there is one."""
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


class Dropout(nn.Module):
    """Zeroes elements with probability `rate` in training, scales the rest: equal expectation."""

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        dropped = min(round(self.rate * LEVELS), LEVELS - 1)
        # eight decisions a draw
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
        keep = (words.view(torch.uint8)[: x.numel()] >= dropped).view_as(x)
        return x * (keep.to(x.dtype) * (LEVELS / (LEVELS - dropped)))
