"""bench.py rate: tokens a second of trainings that share a machine, and steps that fit a time"""

from dataclasses import dataclass
from pathlib import Path

from measures.criteria import Job
from measures.rate import bench_rate, count_steps, slowest

from kinds.settings import BenchSettings
from lmtools.base.config import override, read_layers
from lmtools.base.options import option
from lmtools.models.device import choose_device, resolve_precision

CONF = Path(__file__).parents[2] / "conf"
MODELS = ("tta", "masked", "causal")  # of the first N trainings; the paper's size


@dataclass(frozen=True)
class RateBench(BenchSettings):
    """Settings of the benchmark of trainings."""

    together: list[int] = option((1, 3), "trainings at once", least=1)
    batch: list[int] = option((8192,), "tokens of a batch", least=1)
    length: int = option(22, "tokens of a sentence", least=1)
    seconds: float = option(15.0, "of each", least=0)
    time: float = option(780.0, "seconds of training to plan", least=0)


SETTINGS = RateBench


def arguments(parser):
    """Measure tokens a second of trainings at the T-TA paper's size that share a machine, and the
    steps that fit into a time.
    """
    help_text = "ids of the models (default: %(default)s)"
    parser.add("--vocab-size", default=30_000, help=help_text)
    parser.add("--device", default="cpu")
    help_text = "settings over conf/{tta,masked,causal}.yaml, as in arch.dim=192"
    parser.add_argument("settings", nargs="*", metavar="key=value", help=help_text)


def run(args, settings):
    """Measure; the figures with the steps of each row, and a line a row."""
    precision = resolve_precision(args.precision, choose_device(args.device))
    jobs = {
        name: Job(
            override(read_layers(CONF / f"{name}.yaml"), args.settings), {}, args.vocab_size, 1,
            settings.length, device=args.device, precision=precision, threads=settings.threads,
        )
        for name in MODELS
    }  # fmt: skip
    figures = bench_rate(jobs, settings.together, settings.batch, settings.seconds)
    for row in figures["rows"]:
        some = figures, row["together"], row["batch"]
        row |= {"slowest": slowest(*some), "steps": count_steps(*some, settings.time)}
    return figures | {"time": settings.time}, [
        f"{figures['machine']}, {precision}",
        *(
            f"{row['together']} at once, {row['batch']:,} tokens a batch: "
            + ", ".join(f"{one['model']} {one['tokens_per_second']:,.0f}" for one in row["each"])
            + f" tokens/s; {row['steps']:,} steps in {settings.time:,.0f} s"
            for row in figures["rows"]
        ),
    ]
