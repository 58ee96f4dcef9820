"""lmtools mbr: expected utilities of the hypotheses of N-best lists, for minimum Bayes risk
reranking.
"""

from lmtools.verbs.risk import add_risk, write_risk

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
