"""bench.py criteria: time and memory of a training step by criterion, against full cross
entropy
"""

from dataclasses import dataclass
from pathlib import Path

from measures.criteria import Job, bench_criteria

from kinds.settings import TimedSettings
from lmtools.base.config import override, read_layers
from lmtools.base.options import option
from lmtools.models import MODELS
from lmtools.models.device import choose_device, resolve_precision
from lmtools.models.outputs import CRITERIA
from lmtools.verbs.numbers import positive

SIZES = [30_000, 200_000, 800_000]
PAPER = {"name": "sgd", "lr": 1.0, "clip": 1.0}


@dataclass(frozen=True)
class CriteriaBench(TimedSettings):
    """Settings of the benchmark of training steps."""

    seconds: float = option(1.0, "of a turn, one step at least", least=0)
    batch: list[int] = option((64,), "sentences at once", least=1)
    length: int = option(25, "tokens of a sentence", least=1)
    architecture: str = option(
        "causal",
        "model of 3 layers of 512, trained by SGD",
        choices=[
            name
            for name, kind in MODELS.items()
            if kind.objective not in ("two-way", "translation")
        ],
    )
    criteria: list[str] = option(
        tuple(CRITERIA), "those that are measured beside softmax", choices=CRITERIA
    )


SETTINGS = CriteriaBench


def arguments(parser):
    """Measure time and memory of a training step by criterion, against full cross entropy."""
    help_text = "settings as of `lmtools train` instead, as conf/causal.yaml"
    parser.add("--conf", help=help_text)
    parser.add(
        "--vocab-size",
        type=several,
        default=SIZES,
        metavar="N,...",
        help="sizes of the vocabulary (default: 30000,200000,800000)",
    )
    parser.add("--device", default="cpu")
    help_text = "override settings, as in output.samples=1024 optim.name=adam"
    parser.add_argument("settings", nargs="*", metavar="key=value", help=help_text)


def run(args, settings):
    """Measure, print one table a vocabulary and batch; the figures, and no more lines."""
    precision = resolve_precision(args.precision, choose_device(args.device))
    training = override(
        read_layers(Path(args.conf)) if args.conf else usual_settings(settings.architecture),
        args.settings,
    )
    output = training.pop("output", None) or {}
    computing = {"device": args.device, "precision": precision, "threads": settings.threads}
    computing["clock"] = settings.clock
    jobs = [
        Job(training, output, size, batch, tokens=settings.length, **computing)
        for size in args.vocab_size
        for batch in settings.batch
    ]
    return bench_criteria(jobs, list(settings.criteria), settings.repeats, settings.seconds), []


# of 3 layers of 512
ARCH = {
    "lstm": {"layers": 3, "dim": 512, "units": 512},
    "gcnn": {"dim": 512, "blocks": ["[4, 512] x 3"]},
}


def usual_settings(model: str) -> dict:
    """Return the settings of a model of 3 layers of 512 and the paper's optimiser."""
    return {
        "model": model,
        "objective": MODELS[model].objective,
        "arch": ARCH.get(model, {"layers": 3, "dim": 512}),
        "optim": PAPER,
    }


def several(text: str) -> list[int]:
    """Parse whole numbers from 1 with commas between them."""
    return [positive(part) for part in text.split(",")]
