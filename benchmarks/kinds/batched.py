"""bench.py batched: sentences a second of T-TA, biLM and uniLM that get many sentences at once"""

from dataclasses import dataclass

from measures.batched import Turns, bench_batched
from measures.machine import CLOCKS
from measures.score import FAMILIES, random_family

from kinds.score import PAPER
from kinds.settings import BenchSettings
from lmtools.base.computing import Computing
from lmtools.base.config import override
from lmtools.base.options import option


@dataclass(frozen=True)
class BatchedBench(BenchSettings):
    """Settings of the benchmark of batches."""

    length: list[int] = option((10, 20, 40), "words of a sentence", least=1)
    rows: list[int] = option((2048,), "positions of a batch, copies counted; the best of several",
                             least=1)  # fmt: skip
    seconds: float = option(0.5, "of a turn, one batch at least", least=0)
    clock: str = option("wall", "time: wall, or processor, for a machine in use", choices=CLOCKS)


SETTINGS = BatchedBench


def arguments(parser):
    """Measure T-TA, biLM (a copy a token, and shared) and uniLM on many sentences at once."""
    help_text = "ids of the models, whose weights are random (default: %(default)s)"
    parser.add("--vocab-size", default=30_000, help=help_text)
    parser.add("--device", default="cpu")
    help_text = "other sizes than the paper's, as in layers=1 dim=64"
    parser.add_argument("arch", nargs="*", metavar="key=value", help=help_text)


def run(args, settings):
    """Measure; the figures, and a line a task and length."""
    arch, computing = override(PAPER, args.arch), Computing(args.device, args.precision)
    scorers = {name: random_family(name, arch, args.vocab_size, computing) for name in FAMILIES}
    turns = Turns(settings.repeats, settings.seconds, settings.clock)
    figures = bench_batched(scorers, settings.length, settings.rows, turns)
    lines = [
        f"{figures['machine']}; {settings.threads} thread(s), {figures['precision']}, median of"
        f" {settings.repeats}, batches of {'/'.join(map(str, settings.rows))} positions"
    ]
    for row in figures["ratios"]:
        others = ", ".join(
            f"{lm} {row['rates'][lm]:,.0f} ({times:.2f} x)" for lm, times in row["times"].items()
        )
        first = f"{row['words']:3d} words {row['task']:9s}: tta {row['rates']['tta']:,.0f} a second"
        lines.append(f"{first}; {others}")
    return figures, lines
