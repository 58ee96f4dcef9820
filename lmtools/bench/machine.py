"""What all benchmarks share: the stopwatch, and what the machine is."""

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import torch


def stopwatch(function: Callable, device: torch.device) -> float:
    """Seconds that a call takes."""
    begin = time.perf_counter()
    function()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def machine(device: torch.device) -> str:
    """The processor or GPU, its number of cores, and torch's version."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())
    return f"{name}, {os.cpu_count()} cores, torch {torch.__version__}"
