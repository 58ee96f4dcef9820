"""Speed of models: `python benchmarks/bench.py score|batched|lists|lm|lattice|criteria|engine|rate`

Recipes call it by path; kinds/ declares what each kind measures, measures/ how.
"""

import sys
from functools import partial

import torch
from kinds import batched, criteria, engine, lattice, lists, lm, rate, score

from lmtools.base.options import fill, list_options, parse_option
from lmtools.base.seal import write_json
from lmtools.cli import run_verb
from lmtools.verbs.parser import Parser, add_actions, add_common

KINDS = {
    "score": score, "batched": batched, "lists": lists, "lm": lm, "lattice": lattice,
    "criteria": criteria, "engine": engine, "rate": rate,
}  # fmt: skip


def main(argv=None) -> int:
    """Measure what was asked; the exit status."""
    return run_verb(build_parser().parse_args(argv))


def build_parser() -> Parser:
    """The parser of all kinds."""
    parser = Parser(prog="bench.py", description="Measure the speed of models.")
    add_common(parser)
    actions = {name: (module.arguments, module.run) for name, module in KINDS.items()}
    for sub, module in zip(add_actions(parser, actions), KINDS.values(), strict=True):
        add_settings(sub, module.SETTINGS)
        sub.add("--precision")
        sub.add("--out", required=False, metavar="F.json", help="write the figures")
    parser.set_defaults(verb="bench", run=run)
    return parser


def add_settings(parser: Parser, kind: type) -> None:
    """Declare each option of a kind's settings as a flag."""
    for name, (hint, default, declared) in list_options(kind).items():
        flag, takes = f"--{name.replace('_', '-')}", {"default": default, "help": declared.help}
        if hint is bool:
            parser.add_argument(flag, action="store_true", **takes)
        else:
            parse = partial(parse_option, kind, name)
            parser.add_argument(flag, type=parse, metavar=declared.metavar, **takes)


def run(args) -> None:
    """Measure, write the figures, and print the lines that describe them."""
    settings = fill(KINDS[args.action].SETTINGS, args)
    torch.set_num_threads(settings.threads)
    figures, lines = args.act(args, settings)
    if args.out:
        write_json(figures, args.out)
    print(*lines, sep="\n", end="\n" if lines else "")


if __name__ == "__main__":
    sys.exit(main())
