"""lmtools train: from binarised corpora to a model directory; `torchrun --nproc-per-node N -m
lmtools train ...` trains by N processes.
"""

import contextlib
from pathlib import Path

from lmtools.base.config import build, merge, override, read_layers
from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pairs
from lmtools.base.log import say
from lmtools.base.specs import HF, find_model
from lmtools.text.corpus import read_header
from lmtools.text.unknown import warn_unknown
from lmtools.verbs.help import Rare

EXAMPLES = (
    "lmtools train --conf lstm.yaml --train train.bin --valid valid.bin --out lstm",
    "lmtools train --conf lstm.yaml --train train.bin --valid valid.bin --out lstm2 optim.lr=1e-3",
)


def arguments(parser):
    group = parser.groups["input"]
    parser.add("--conf", required=True)
    add = group.add_argument
    add(
        "--train",
        required=True,
        metavar="F.bin",
        help="training corpus that `lmtools corpus` wrote; with lists.loss N-best lists with"
        " references, of any format",
    )
    text = "validation corpus, which decides when to stop and which weights to keep"
    add("--valid", required=True, metavar="F.bin", help=text)
    text = "also report the loss on another corpus, such as that of the old domain"
    add("--also-valid", metavar="NAME=F.bin", action="append", default=[], help=Rare(text))
    text = "start from the weights of a model; if the vocabularies differ, those of equal pieces"
    add("--init", metavar="DIR", help=text)
    parser.add(
        "--out",
        metavar="DIR",
        help="model directory to write; the same command continues a run that was stopped",
    )
    text = "also write TensorBoard's event files, to a directory such as exp/events/NAME"
    parser.groups["output"].add_argument("--tensorboard", metavar="DIR", help=Rare(text))
    parser.add("--device")
    text = "settings that replace those of --conf, such as optim.lr=1e-3 arch.layers=6"
    parser.add_argument("settings", nargs="*", metavar="key=value", help=text)


def run(args):
    # --help needs no torch
    from lmtools.train import AlreadyReported, Stopped, first_process, train

    settings, init = read_settings(args)
    also = parse_pairs(args.also_valid, "--also-valid", "NAME=F.bin")
    with contextlib.suppress(UserError):  # all processes meet it in training, and one says so
        for path in (args.train, args.valid, *also.values()) if first_process() else ():
            header, _ = read_header(path)
            warn_unknown(path, header.unknown, header.tokens, "its vocabulary")
    try:
        where = {"out": args.out, "device": args.device, "init": init, "events": args.tensorboard}
        progress = train(settings, args.train, args.valid, **where, also=also)
    except Stopped as stopped:
        if first_process():
            say(stopped)
        return 128 + 15
    except AlreadyReported:
        return 1
    if not first_process():
        return 0
    spent = f"{progress.step} steps, {progress.tokens:,} tokens, {progress.seconds:.0f} s"
    others = (
        f"; {name} {best:.4f}, {first:.4f} at first"
        for name, (first, best) in progress.also.items()
    )
    best = f"best validation loss {progress.best:.4f} nats"
    if settings.lists.loss:
        best = f"best validation of lists {progress.best:.4f}, at step {progress.best_step}"
    print(f"{args.out}: {spent}, {best}{''.join(others)}")
    return 0


def read_settings(args):
    """Return the settings of a call, and the model that it starts from."""
    from lmtools.models.checkpoint import describe_architecture
    from lmtools.models.settings import Settings

    if (args.init or "").startswith(HF):
        raise UserError(
            f"--init {args.init}: train adapters of Hugging Face models by the package peft;"
            " --lm hf:DIR,adapter=DIR reads them"
        )
    init = args.init and find_model(args.init)
    tree = read_layers(Path(args.conf))
    if init and "model" not in tree:  # it says how to go on with any model
        tree = merge(describe_architecture(init), tree)
    tree = override(tree, args.settings)
    if "model" not in tree:
        raise UserError(
            f"{args.conf}: names no model; give --init DIR, a model to go on with, or model=NAME"
        )
    if "lora" in tree:
        raise UserError("lora: is gone; leave it out: all weights are trained, or freeze some")
    return build(Settings, tree, args.conf), init
