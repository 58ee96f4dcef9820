"""A column of expected utilities: its options, and how it is written; `lmtools mbr`, and `lmtools
score` of an experiment.
"""

from lmtools.base.log import say
from lmtools.evaluate.metrics import METRIC_HELP, METRICS
from lmtools.formats import read, scores
from lmtools.rescoring.risk import UNIFORM, Risk, minimum_risk
from lmtools.verbs.numbers import metric


def add_risk(parser):
    """Declare how expected utilities are computed: fields of Risk, each an option."""
    parser.add_argument(
        "--utility",
        type=metric,
        metavar="METRIC",
        default=Risk.utility,
        help=f"the metric whose expectation is computed: {METRIC_HELP} (default: %(default)s)",
    )
    help_text = "multiply scores by X before softmax; 0: all count alike (default: %(default)s)"
    parser.add("--scale", default=Risk.scale, help=help_text)
    help_text = "score of the lists to use (default: am, score, rank, or the first)"
    parser.add_argument("--score", metavar="NAME", help=help_text)
    parser.add("--depth", help="use only the first N hypotheses of a list as references")


def write_risk(args):
    """Read the lists, write their expected utilities, and say on standard error what was scored."""
    nbests = read(args.nbest, args.format or ("jsonl" if args.nbest == "-" else None))
    table = minimum_risk(nbests, Risk(args.utility, args.scale, args.score, args.depth), args.nbest)
    scores.write(table, nbests, args.out)
    if table.signature["posterior"] == UNIFORM:
        say(
            f"{args.nbest}: indicators of systems are no scores, so that hypotheses of a list"
            " count by the systems that gave them"
        )
    hypotheses = sum(map(len, table.log_prob.values()))
    other = sum(values.argmax() > 0 for values in table.log_prob.values() if len(values))
    summary = (
        f"expected {METRICS[args.utility].title} of {hypotheses:,} hypotheses of {len(nbests):,}"
        " utterances"
    )
    say(f"{args.out}: {summary}; another than the first is best in {other:,} lists")
