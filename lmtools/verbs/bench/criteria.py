"""lmtools bench criteria: time and memory of a training step by criterion, against full cross
entropy
"""

from pathlib import Path

import torch

from lmtools.bench.criteria import Job, bench_criteria
from lmtools.config import override, read_layers
from lmtools.device import choose_device, resolve_precision
from lmtools.models import MODELS
from lmtools.outputs import CRITERIA
from lmtools.verbs.numbers import several

SIZES = [30_000, 200_000, 800_000]
PAPER = {"name": "sgd", "lr": 1.0, "clip": 1.0}


def arguments(parser):
    """Declare the benchmark's options."""
    help_text = "settings as of `lmtools train` instead, as conf/causal.yaml"
    parser.add("--conf", help=help_text)
    help_text = "model of 3 layers of 512, trained by SGD (default: %(default)s)"
    known = [name for name, kind in MODELS.items() if not kind.two_way and not kind.pairs]
    parser.add_argument("--architecture", choices=known, default="causal", help=help_text)
    parser.add(
        "--vocab-size",
        type=several,
        default=SIZES,
        metavar="N,...",
        help="sizes of the vocabulary (default: 30000,200000,800000)",
    )
    help_text = "sentences at once (default: 64)"
    parser.add("--batch", type=several, default=[64], metavar="N,...", help=help_text)
    parser.add("--length", default=25)
    help_text = "criteria that are measured beside softmax (default: %(default)s)"
    parser.add_argument(
        "--criteria", default=",".join(CRITERIA), metavar="NAME,...", help=help_text
    )
    parser.add("--repeats", help="turns of each criterion (default: %(default)s)")
    parser.add("--seconds")
    parser.add("--device", default="cpu")
    help_text = "override settings, as in output.samples=1024 optim.name=adam"
    parser.add_argument("settings", nargs="*", metavar="key=value", help=help_text)


def run(args):
    """Measure, print one table a vocabulary and batch; the figures, and no more lines."""
    torch.set_num_threads(args.threads)
    precision = resolve_precision(args.precision, choose_device(args.device))
    settings = override(
        read_layers(Path(args.conf)) if args.conf else usual_settings(args.architecture),
        args.settings,
    )
    output = settings.pop("output", None) or {}
    computing = {"device": args.device, "precision": precision, "threads": args.threads}
    jobs = [
        Job(settings, output, size, batch, tokens=args.length, **computing)
        for size in args.vocab_size
        for batch in args.batch
    ]
    return bench_criteria(jobs, args.criteria.split(","), args.repeats, args.seconds), []


def usual_settings(model: str) -> dict:
    """Return the settings of a model of 3 layers of 512 and the paper's optimiser."""
    return {
        "model": model,
        "objective": MODELS[model].objective,
        "arch": MODELS[model].arch_of_size(layers=3, dim=512),
        "optim": PAPER,
    }
