"""lmtools merge: join the parts of an output, which --shard I/N made."""

from lmtools.verbs.parts import list_outputs, merge

EXAMPLES = ("lmtools merge test.scores", "lmtools merge a.scores b.scores")


def arguments(parser):
    help_text = "output whose parts OUT.I-of-N are there, such as test.scores"
    parser.groups["input"].add_argument("out", metavar="OUT", nargs="+", help=help_text)
    parser.add("--kenlm")


def run(args) -> int:
    """Join the parts of each output; return the highest of the verbs' exit statuses."""
    outs = [out for name in args.out for out in list_outputs(name)]
    return max(merge(out, kenlm=args.kenlm) for out in outs)
