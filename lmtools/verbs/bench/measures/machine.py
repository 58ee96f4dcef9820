"""Parts that all benchmarks share: the stopwatch, and the description of the machine."""

import os
import time
from collections.abc import Callable

import torch

from lmtools.models.device import name_processor


def stopwatch(function: Callable, device: torch.device) -> float:
    """Return the seconds that a call takes."""
    begin = time.perf_counter()
    function()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def describe_machine(device: torch.device) -> str:
    """Return the processor or GPU, its number of cores, and torch's version."""
    cores = "" if device.type == "cuda" else f"{os.cpu_count()} cores, "
    return f"{name_processor(device)}, {cores}torch {torch.__version__}"
