"""Parts that all benchmarks share: the stopwatch, and the description of the machine."""

import os
import time
from collections.abc import Callable

import torch

from lmtools.models.device import name_processor

CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def stopwatch(function: Callable, device: torch.device, clock: str = "wall") -> float:
    """Return the seconds that a call takes by one of CLOCKS: of the wall, or of the processor, all
    threads together, which other programs on the machine change little.
    """
    begin = CLOCKS[clock]()
    function()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return CLOCKS[clock]() - begin


def describe_trunk(lm) -> str:
    """Return what a ratio of criteria is of: kind, layers, width and parameters of the network
    between embedding and output matrix.
    """
    layers = getattr(lm.settings.architecture, "layers", None)  # of stacks of equal ones
    count = sum(parameter.numel() for parameter in lm.trunk.parameters())
    count -= lm.trunk.lookup.weight.numel()
    size = f"{layers} layers of {lm.trunk.width:,}" if layers else f"states of {lm.trunk.width:,}"
    return f"{lm.settings.model}, {size}, {count / 1e6:,.1f} million parameters"


def describe_machine(device: torch.device) -> str:
    """Return the processor or GPU, its number of cores, and torch's version."""
    cores = "" if device.type == "cuda" else f"{os.cpu_count()} cores, "
    return f"{name_processor(device)}, {cores}torch {torch.__version__}"
