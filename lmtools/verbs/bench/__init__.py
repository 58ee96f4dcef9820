"""lmtools bench: measurements of speed."""

import torch

from lmtools.base.seal import write_json
from lmtools.verbs.bench import criteria, engine, lattice, lists, lm, score
from lmtools.verbs.parser import add_actions, add_settings, read_settings

KINDS = {
    "score": score, "lists": lists, "lm": lm, "lattice": lattice, "criteria": criteria,
    "engine": engine,
}  # fmt: skip


def arguments(parser):
    """Declare the kinds and the options of each."""
    for sub, module in zip(add_actions(parser, KINDS), KINDS.values(), strict=True):
        add_settings(sub, module.SETTINGS)
        sub.add("--precision")
        sub.add("--out", required=False, metavar="F.json", help="write the figures")


def run(args):
    """Measure what was asked, write the figures, and print the lines that describe them."""
    kind = KINDS[args.action].SETTINGS
    settings = kind(**read_settings(args, kind))
    torch.set_num_threads(settings.threads)
    figures, lines = args.act(args, settings)
    if args.out:
        write_json(figures, args.out)
    print(*lines, sep="\n", end="\n" if lines else "")
