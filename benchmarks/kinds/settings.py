"""Settings of all benchmarks."""

from dataclasses import dataclass

from measures.machine import CLOCKS

from lmtools.base.options import check_options, option


@dataclass(frozen=True)
class BenchSettings:
    """Settings of a benchmark; each kind adds its own."""

    threads: int = option(1, "of the process", least=1)
    repeats: int = option(3, "turns of each; the median", least=1)

    def __post_init__(self):
        check_options(self)


@dataclass(frozen=True)
class TimedSettings(BenchSettings):
    """Settings of a benchmark that a machine in use can run."""

    clock: str = option("wall", "time: wall, or processor, for a machine in use", choices=CLOCKS)
