"""lmtools mbr: expected utilities of the hypotheses of N-best lists, for minimum Bayes risk
reranking.
"""

from lmtools.verbs.risk import add_risk, write_risk


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
    help_text = "utt#rank, expected utility, words; - is standard output"
    parser.add("--out", metavar="F.scores", help=help_text)


def run(args):
    """Read, compute, write, and say what was scored."""
    write_risk(args)
