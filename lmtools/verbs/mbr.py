"""lmtools mbr: expected utilities of the hypotheses of N-best lists, for minimum Bayes risk
reranking; `lmtools score` of an experiment writes them by the same options.
"""

from lmtools.base.log import say
from lmtools.evaluate.metrics import METRIC_HELP, METRICS
from lmtools.formats import read, scores
from lmtools.rescoring.risk import UNIFORM, Risk, minimum_risk
from lmtools.verbs.numbers import metric

EXAMPLES = (
    "lmtools mbr --nbest test.jsonl --utility bleu --out mbr.scores",
    "lmtools mbr --nbest test.jsonl --utility wer --scale 0.1 --depth 10 --out mbr.scores",
)


def arguments(parser):
    parser.epilog = (
        "The utility of a hypothesis is the metric's mean over all hypotheses of its list as"
        " references, weighted by softmax(scale * score). No language model is needed. The file is"
        " a column for `lmtools tune` and `rescore` (--scores mbr=F). BLEU and chrF are from 0 to"
        " 100, TER is negated, wer and cer are negated numbers of errors. TER is slow: use --depth"
        " 10. Choose the scale on a development set: write columns for 0 0.1 0.2 0.5 1, tune with"
        " each (--fix mbr=1000 uses it alone), and keep the best."
    )
    parser.add(
        "--nbest", help="N-best lists; - reads a pipe, as jsonl unless --format says otherwise"
    )
    parser.add("--format")
    add_risk(parser)
    help_text = (
        "scores to write, a line `utt#rank utility words` for each hypothesis; - prints them"
    )
    parser.add("--out", metavar="F.scores", help=help_text)


def run(args):
    """Read, compute, write, and say what was scored."""
    write_risk(args)


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
