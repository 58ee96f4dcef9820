"""lmtools score: log-probabilities of every hypothesis of an N-best file."""

import sys

from lmtools.score import score_lists
from lmtools.verbs.options import COMPUTING, PROCESSES, SCORING, scoring_options


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = (
        "Lists from a pipe (--nbest - or an rspecifier such as ark:-) are scored utterance by"
        " utterance, each written as soon as it is done. A wspecifier as --out (ark,t:-) takes"
        " costs, the negated log-probabilities, under Kaldi's keys utt-n."
    )
    parser.add("--nbest", help="N-best lists; - is standard input, in jsonl if not --format")
    parser.add("--format")
    parser.add(*SCORING)
    about = "utt#rank, log-probability, tokens, check; - is standard output"
    parser.add("--out", metavar="F.scores", help=about)
    parser.add(*COMPUTING, *PROCESSES)


def run(args):
    """Score the lists, and say on standard error what was scored."""
    totals = score_lists(args.nbest, args.format, args.out, scoring_options(args))
    unknown, said = totals.unknown, ""
    if unknown:
        said = f", {unknown:,} unknown ({unknown / totals.tokens:.2%})"
        if args.oov_penalty:
            said += f" at a penalty of {unknown * args.oov_penalty:,.1f} nats in all"
    print(
        f"{args.out}: {totals.hypotheses:,} hypotheses of {totals.utterances:,} utterances,"
        f" {totals.tokens:,} tokens{said}",
        file=sys.stderr,
    )
