"""lmtools select: the lines of a large text that are most like a domain's."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lmtools.base.atomic import atomic_text, is_stream, workplace
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.base.options import fill
from lmtools.base.specs import LMSpec
from lmtools.score.lists import warn_scored
from lmtools.score.load import load
from lmtools.score.selection import (
    Estimation,
    Selection,
    find_common,
    measure_difference,
    read_lines,
    select_lines,
)
from lmtools.score.texts import score_texts
from lmtools.text.blocks import read_again
from lmtools.text.unknown import LOOKED_AT, doubt_text, warn_unknown
from lmtools.verbs.help import Rare
from lmtools.verbs.numbers import positive
from lmtools.verbs.options import COMPUTING
from lmtools.verbs.parser import add_lm, add_normaliser, normaliser_of

EXAMPLES = (
    "lmtools select --in-domain domain.txt --pool text.txt --keep 100 --out chosen.txt",
    "lmtools select --lm domain --general lm --pool text.txt --keep 100 --out chosen.txt",
)


def arguments(parser):
    parser.epilog = (
        "Keeps the lines with the lowest difference between their cross entropies (nats a word)"
        " under an LM of the domain and a general one (Moore and Lewis 2010). --in-domain estimates"
        " both: n-grams of this text, and of as many random lines of the pool, over the words that"
        " the domain has at least twice."
    )
    help_text = "text of the domain; both language models are estimated from it and from the pool"
    parser.add_argument("--in-domain", nargs="+", metavar="F", help=help_text)
    help_text = "text to choose from, one sentence on each line (.gz, .xz), of any size"
    parser.add_argument("--pool", nargs="+", required=True, metavar="F", help=help_text)
    help_text = "number of lines to keep; copies count once"
    parser.add_argument("--keep", type=positive, required=True, metavar="N", help=help_text)
    add_lm(parser, required=False, help="in place of --in-domain: a language model of the domain")
    parser.add_argument(
        "--general", metavar="DIR", help=Rare("with --lm: a language model of general text")
    )
    help_text = "length of the longest n-grams of the models (default: %(default)s)"
    parser.add_argument("--order", type=positive, default=4, metavar="N", help=help_text)
    parser.add("--seed")
    help_text = "lines to write, in the order of the pool; - prints them"
    parser.add("--out", metavar="F", help=help_text)
    help_text = "also write the difference of each line; the lowest are the most alike"
    parser.add_argument("--differences", metavar="F", help=Rare(help_text))
    parser.add(*COMPUTING, "--nj")
    parser.set_defaults(cache="none")
    add_normaliser(parser)
    parser.set_defaults(refuse=parser.error)


def run(args):
    """Make what LMs are not given, choose, write, and say what was found."""
    if bool(args.in_domain) == bool(args.lm) or bool(args.lm) != bool(args.general):
        args.refuse("give --in-domain TEXT, or --lm DIR and --general DIR")
    if "-" in args.pool and args.in_domain:
        raise UserError("--pool -: is read twice with --in-domain; write it to a file")
    for path in filter("-".__ne__, [*(args.in_domain or ()), *args.pool]):
        say_lines(doubt_text(path, read_again([path])))
    computing = fill(Computing, args)
    # beside the output the next run sweeps away what a kill leaves
    beside = not is_stream(args.out) and workplace(Path(os.path.realpath(args.out)))
    with beside or tempfile.TemporaryDirectory() as place:
        if args.in_domain:
            normaliser = normaliser_of(args, [*args.in_domain, *args.pool])
            estimation = Estimation(args.order, normaliser, args.seed)
            measure = estimation.measure(args.in_domain, args.pool, Path(place), computing)
        else:
            measure = measure_difference(
                LMSpec.parse(args.lm), LMSpec.parse(args.general), computing
            )
        selection = select_lines(read_lines(args.pool), measure, args.keep)
        warn_selected(selection.lines[:LOOKED_AT], args, computing)
    if not selection.lines:
        raise UserError(f"{args.pool[0]}: no sentence in the text; give text to choose from")
    for path, rows in ((args.out, selection.lines), (args.differences, selection.differences)):
        if path:
            with atomic_text(path) as text:
                text.writelines(f"{row}\n" for row in rows)
    say_lines(describe(args.out, selection, args.keep))


def warn_selected(lines: Sequence[str], args, computing: Computing) -> None:
    """Say where the domain's model, or its text, hardly knows a word of the chosen lines."""
    if not lines:
        return
    if args.lm:
        scorer = load(LMSpec.parse(args.lm), computing)
        scores = score_texts(lines, scorer, computing)
        counts = int(scores.unknown.sum()), int(scores.tokens.sum()) - len(lines)
        warn_scored(args.out, lines, counts, scorer)
        return
    normalise = normaliser_of(args)
    words = [word for line in lines for word in normalise(line).split()]
    known = find_common(args.in_domain, normalise)
    unknown = sum(word not in known for word in words)
    model = f"what {' and '.join(args.in_domain)} has at least twice"
    warn_unknown(
        args.out, unknown, len(words), model, texts=map(normalise, lines), known=known.__contains__
    )


def describe(out: str, selection: Selection, keep: int):
    first, middle, last = np.quantile(selection.differences, (0, 0.5, 1))
    yield (
        f"{out}: {len(selection.lines):,} of {selection.read:,} lines, {selection.repeated:,}"
        f" copies left out; cross-entropy difference {first:.3f} to {last:.3f} nats a word, median"
        f" {middle:.3f}"
    )
    if len(selection.lines) < keep:
        yield f"{out}: fewer different lines than --keep {keep}; all are there"
    elif last > 0:
        yield (
            f"{out}: lines above 0 are more like general text than like the domain's; a lower"
            " --keep may bring as much"
        )
