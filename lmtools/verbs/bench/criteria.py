"""lmtools bench criteria: time and memory of a training step by criterion, against full cross
entropy
"""

from pathlib import Path

import torch

from lmtools.bench.criteria import KNOWN, Job, bench_criteria
from lmtools.config import override, read_layers
from lmtools.device import choose_device, resolve_precision
from lmtools.models import MODELS
from lmtools.verbs.bench.common import save
from lmtools.verbs.numbers import amount, positive, several

SIZES = [30_000, 200_000, 800_000]
ARCH = {"lstm": {"layers": 3, "dim": 512, "units": 512}}
TRANSFORMER = {"layers": 3, "dim": 512}
OBJECTIVE = {"masked": "masked", "tta": "autoencoding"}
PAPER = {"name": "sgd", "lr": 1.0, "clip": 1.0}


def arguments(parser):
    """Declare the benchmark's options."""
    parser.add_argument(
        "--model",
        choices=MODELS,
        default="causal",
        help="of 3 layers of 512, trained by SGD (default: %(default)s)",
    )
    parser.add_argument(
        "--conf",
        metavar="F.yaml",
        help="settings as of `lmtools train` instead, as conf/causal.yaml",
    )
    parser.add_argument(
        "--sizes",
        type=several,
        default=SIZES,
        metavar="N,...",
        help="ids (default: 30000,200000,800000)",
    )
    parser.add_argument(
        "--batch",
        type=several,
        default=[64],
        metavar="N,...",
        help="sentences a batch (default: 64)",
    )
    parser.add_argument(
        "--tokens", type=positive, default=25, metavar="N", help="a sentence (default: %(default)s)"
    )
    parser.add_argument(
        "--criteria",
        default=",".join(KNOWN),
        metavar="NAME,...",
        help="beside softmax (default: %(default)s)",
    )
    parser.add_argument(
        "--turns",
        type=positive,
        default=3,
        metavar="N",
        help="of each criterion (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=amount,
        default=1.0,
        metavar="S",
        help="of steps a turn, one at least (default: %(default)s)",
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda ... (default: %(default)s)")
    parser.add_argument(
        "settings",
        nargs="*",
        metavar="key=value",
        help="override settings, as in output.samples=1024 optim.name=adam",
    )


def run(args):
    """Measure, print one table a vocabulary and batch, write."""
    torch.set_num_threads(args.threads)
    precision = resolve_precision(args.precision, choose_device(args.device))
    settings = override(
        read_layers(Path(args.conf)) if args.conf else of_model(args.model), args.settings
    )
    output = settings.pop("output", None) or {}
    how = {"device": args.device, "precision": precision, "threads": args.threads}
    jobs = [
        Job(settings, output, size, batch, args.tokens, **how)
        for size in args.sizes
        for batch in args.batch
    ]
    save(bench_criteria(jobs, args.criteria.split(","), args.turns, args.seconds), args.out)


def of_model(model: str) -> dict:
    """Settings of a model of 3 layers of 512 and the paper's optimiser."""
    return {
        "model": model,
        "objective": OBJECTIVE.get(model, "causal"),
        "arch": ARCH.get(model, TRANSFORMER),
        "optim": PAPER,
    }
