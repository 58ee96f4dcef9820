"""lmtools show: N-best lists in a terminal, with the errors of each hypothesis in colours."""

import os
import sys
from collections.abc import Iterator
from itertools import islice

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.evaluate.blanks import advise_metric
from lmtools.evaluate.show_lists import COLOURS, PLAIN, list_lines
from lmtools.formats import edits, stream
from lmtools.formats.lists import join_refs
from lmtools.types import NBest
from lmtools.verbs.numbers import positive
from lmtools.verbs.parser import add_normaliser, add_references, normaliser_of

NO_COLOUR, COLOUR = "NO_COLOR", "FORCE_COLOR"  # variables of the environment, as no-color.org


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = (
        "In colours what a hypothesis lacks is red and crossed out, what it has too many is green,"
        " a substituted word yellow. Without a terminal, or with $NO_COLOR, they are [-words-] and"
        " {+words+}; $FORCE_COLOR has colours in a pipe. References are the lists' own, unless"
        " others are given; without any, hypotheses are compared with the first."
    )
    text = "N-best lists in any format, unless --nbest names them; - is a pipe"
    parser.add_argument("lists", metavar="LIST", nargs="?", help=text)
    parser.add("--nbest", required=False)
    text = "utterances to show, in the order of the lists (default: the first ones)"
    parser.add_argument("utts", metavar="ID", nargs="*", help=text)
    text = "lists to show, where no ids are given (default: %(default)s)"
    parser.add_argument("--count", metavar="N", type=positive, default=10, help=text)
    parser.add("--depth", default=10, help="hypotheses of each to show (default: %(default)s)")
    parser.add("--format")
    add_references(parser)
    parser.add("--metric", help="whose words, characters or tokens are aligned")
    add_normaliser(parser, "what is done to hypotheses and references before they are compared")


def run(args) -> None:
    """Print the lists."""
    if args.nbest:
        args.lists, args.utts = args.nbest, [*filter(None, [args.lists]), *args.utts]
    if not args.lists:
        raise UserError("no lists; give LIST, or --nbest F")
    marks = COLOURS if wants_colours(sys.stdout) else PLAIN
    normalise = normaliser_of(args)
    chosen = [edits.rewrite_list(one, hyps=normalise, refs=normalise) for one in choose_lists(args)]
    refs, hyps = ((nbest.ref or "" for nbest in chosen), (h.text for n in chosen for h in n.hyps))
    say_lines(advise_metric(refs, hyps, args.metric, args.lists))
    for number, nbest in enumerate(chosen):
        lines = list_lines(nbest, args.metric, marks, args.depth)
        print("\n" * (number > 0) + "\n".join(lines))


def choose_lists(args) -> Iterator[NBest]:
    """Yield the lists that are asked for, with their references; UserError for ids that are not
    there, and for no lists. No more is read than is shown.
    """
    lists = join_references(args)
    if not args.utts:
        chosen = list(islice(lists, args.count))
        if not chosen:
            raise UserError(f"{args.lists}: no utterances; give the recogniser's N-best lists")
        yield from chosen
        return
    wanted = dict.fromkeys(args.utts)
    for nbest in lists:
        if nbest.utt in wanted:
            del wanted[nbest.utt]
            yield nbest
        if not wanted:
            return
    missing = ", ".join(wanted)
    raise UserError(f"{args.lists}: no list of {missing}; give ids that are there")


def join_references(args) -> Iterator[NBest]:
    """Yield the lists with the references of --ref or --ref-lines, or with their own."""
    lists = stream(args.lists, args.format or ("jsonl" if args.lists == "-" else None))
    if not (args.ref or args.ref_lines):
        yield from lists
        return
    for nbest, ref in join_refs(lists, args.ref, args.ref_lines, args.lists):
        yield NBest(nbest.utt, nbest.hyps, ref, nbest.extra)


def wants_colours(out) -> bool:
    """Return whether colours go to `out`: to a terminal, unless the environment says otherwise."""
    if os.environ.get(NO_COLOUR):
        return False
    return bool(os.environ.get(COLOUR)) or (out.isatty() and os.environ.get("TERM") != "dumb")
