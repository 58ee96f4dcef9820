"""lmtools mbr: expected utilities of the hypotheses of N-best lists, for minimum Bayes risk
reranking.
"""

import sys

from lmtools.evaluate import METRICS
from lmtools.evaluate.metrics import METRIC_HELP
from lmtools.formats import read, scores
from lmtools.rescoring import Risk, minimum_risk
from lmtools.rescoring.risk import UNIFORM
from lmtools.verbs.numbers import metric


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = (
        "The utility of a hypothesis is the metric's score with each hypothesis of its list as the"
        " reference, averaged over them with the posterior softmax(scale * score); no language"
        " model is needed. The file is a column of `lmtools tune` and `rescore` like any other"
        " (--scores mbr=F). Units: sentence-level BLEU and chrF from 0 to 100, minus TER in"
        " percent, minus the number of errors for wer and cer. ter has no fast way, some"
        " milliseconds for each pair: take --depth 10. The scale is chosen on the development set:"
        " for each S of, say, 0 0.1 0.2 0.5 1, write a column with `lmtools mbr --scale S`, run"
        " `lmtools tune --scores mbr=F` with it (`--fix mbr=1000`: by the utility alone), and keep"
        " the S that gives the best figure."
    )
    parser.add("--nbest", help="N-best lists; - is standard input, in jsonl if not --format")
    parser.add("--format")
    add_risk(parser)
    about = "utt#rank, expected utility, words, check; - is standard output"
    parser.add("--out", metavar="F.scores", help=about)


def add_risk(parser):
    """Declare how expected utilities are computed: fields of Risk, each an option."""
    parser.add_argument(
        "--utility",
        type=metric,
        metavar="METRIC",
        default=Risk.utility,
        help=f"metric whose expectation is computed: {METRIC_HELP} (default: %(default)s)",
    )
    about = "factor of the scores in the posterior; 0: all count alike (default: %(default)s)"
    parser.add("--scale", default=Risk.scale, help=about)
    about = "component that makes the posterior (default: am, score, rank, the first)"
    parser.add_argument("--score", metavar="NAME", help=about)
    parser.add("--depth", help="only the first N of a list are references; all are scored")


def run(args):
    """Read, compute, write, and say what was scored."""
    nbests = read(args.nbest, args.format or ("jsonl" if args.nbest == "-" else None))
    table = minimum_risk(nbests, Risk(args.utility, args.scale, args.score, args.depth), args.nbest)
    scores.write(table, nbests, args.out)
    if table.signature["posterior"] == UNIFORM:
        print(
            f"{args.nbest}: indicators of systems are no scores, so that all hypotheses of a list"
            " count alike",
            file=sys.stderr,
        )
    hypotheses = sum(map(len, table.log_prob.values()))
    other = sum(values.argmax() > 0 for values in table.log_prob.values() if len(values))
    about = (
        f"expected {METRICS[args.utility].title} of {hypotheses:,} hypotheses of {len(nbests):,}"
        " utterances"
    )
    print(
        f"{args.out}: {about}; another than the first is best in {other:,} lists", file=sys.stderr
    )
