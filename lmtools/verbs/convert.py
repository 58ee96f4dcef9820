"""lmtools convert: N-best lists or lattices from one format to another; lists detokenised, with references, cut or merged on the way."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace

from lmtools.errors import UserError
from lmtools.formats import FORMATS, form, kaldi_text, lists, plain
from lmtools.formats import read as read_nbests
from lmtools.formats.lattices import LATTICES
from lmtools.text.detokenise import detokeniser
from lmtools.types import Lattice

CASES = {"upper": str.upper, "lower": str.lower, "sentence": lists.capitalised}
KINDS = {"N-best lists": FORMATS, "lattices": LATTICES}


def arguments(parser):
    """Declare the verb's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n\n".join(f"Formats of {kind}:\n{form.about(formats)}" for kind, formats in KINDS.items())
    parser.add_argument("input", metavar="IN", help="file, directory or Kaldi rspecifier; - is standard input")
    parser.add_argument("output", metavar="OUT", help="file, directory or Kaldi wspecifier; - is standard output")
    parser.add_argument("--from", dest="source", metavar="FMT", help="format of IN, NAME or NAME:option=value,... (default: recognised)")
    parser.add_argument("--to", dest="target", metavar="FMT", help="format of OUT (default: jsonl, or slf for lattices)")
    parser.add_argument("--case", choices=CASES, help="of hypotheses; `sentence`: only the first letter, upper, for truecased output")
    refs = parser.add_mutually_exclusive_group()
    refs.add_argument("--ref", metavar="FILE", help="Kaldi text with the references")
    about = "plain text with the references, one a line, in the order of the lists; several files for metrics of several references"
    refs.add_argument("--ref-lines", nargs="+", metavar="FILE", help=about)
    about = "undo the tokenisation, escapes (&apos;) and split hyphens (@-@) that Moses's scripts made in"
    parser.add_argument("--detokenise", metavar="LANG", help=f"{about} the hypotheses (en, de, fr ..; subword marks: options of --from)")
    parser.add_argument("--detokenise-ref", metavar="LANG", help="the same for the references, which are often given without tokenisation")
    parser.add_argument("--depth", type=positive, metavar="N", help="keep the first N hypotheses of each list")
    parser.add_argument("--dedup", action="store_true", help="merge hypotheses of the same words, keeping the best rank")


def positive(text: str) -> int:
    """A whole number from 1, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is below 1")
    return value


def kind_of(spec: str) -> str:
    """The kind of what the format `spec` holds."""
    name = spec.partition(":")[0]
    for kind, formats in KINDS.items():
        if name in formats:
            return kind
    raise UserError(f"{spec}: no such format; known are {', '.join(FORMATS)} and, of lattices, {', '.join(LATTICES)}")


def run(args):
    """Read, edit, write, and say on standard error what was written."""
    source = args.source or form.detect(args.input, FORMATS | LATTICES)
    kind = kind_of(source)
    target = args.target or {"N-best lists": "jsonl", "lattices": "slf"}[kind]
    if kind_of(target) != kind:
        remedy = "take lists from lattices with `lmtools lattice nbest`" if kind == "lattices" else "choose a format of N-best lists"
        raise UserError(f"{args.input}: format {source} holds {kind}, {target} does not; {remedy}")
    if kind == "lattices":
        refuse_for_lattices(args)
        print(convert_lattices(args, source, target), file=sys.stderr)
    else:
        print(convert_lists(args, source, target), file=sys.stderr)


def refuse_for_lattices(args) -> None:
    """UserError for options that lattices do not have."""
    given = [args.ref, args.ref_lines, args.depth, args.dedup, args.detokenise, args.detokenise_ref, args.case == "sentence"]
    if any(given):
        options = "references, --depth, --dedup, --detokenise and --case sentence"
        raise UserError(f"{args.input}: {options} are for N-best lists, not for lattices; leave them out")


def convert_lists(args, source: str, target: str) -> str:
    """Convert N-best lists; what to say of it."""
    nbests = read_nbests(args.input, source)
    if not nbests:
        raise UserError(f"{args.input}: no utterances; give the recogniser's N-best lists")
    if args.ref:
        nbests = lists.attach(nbests, kaldi_text.read(args.ref), args.input, args.ref)
    if args.ref_lines:
        nbests = lists.attach_lines(nbests, {path: plain.read(path) for path in args.ref_lines}, args.input)
    if args.detokenise_ref:
        nbests = lists.rewritten_refs(nbests, detokeniser(args.detokenise_ref))
    if args.detokenise:
        nbests = lists.rewritten(nbests, detokeniser(args.detokenise))
    if args.case:
        nbests = lists.rewritten(nbests, CASES[args.case])
    if args.dedup:
        nbests = lists.dedup(nbests)
    if args.depth:
        nbests = lists.cut(nbests, args.depth)
    form.named(target, FORMATS).write(nbests, args.output)
    return f"{args.output}: {len(nbests)} utterances, {sum(len(n.hyps) for n in nbests)} hypotheses"


def convert_lattices(args, source: str, target: str) -> str:
    """Convert lattices one by one; what to say of them."""
    count = arcs = 0

    def counted():
        nonlocal count, arcs
        for lattice in form.named(source, LATTICES).read(args.input):
            count, arcs = count + 1, arcs + len(lattice.words)
            yield recased(lattice, CASES[args.case]) if args.case else lattice
        if not count:
            raise UserError(f"{args.input}: no lattices; give the recogniser's")

    form.named(target, LATTICES).write(counted(), args.output)
    return f"{args.output}: {count} lattices, {arcs} arcs"


def recased(lattice: Lattice, case: Callable[[str], str]) -> Lattice:
    """The lattice with `case` applied to its words."""
    return replace(lattice, words=tuple(word and case(word) for word in lattice.words))
