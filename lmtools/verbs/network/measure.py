"""lmtools network measure: word errors of networks, normalised cross entropy and calibration error
of their confidences, a figure of reliability and ROC
"""

from lmtools.base.atomic import atomic_binary
from lmtools.base.log import say_lines
from lmtools.evaluate import evaluate
from lmtools.verbs.network.common import describe_confidences, judge_file


def arguments(parser):
    """Declare the action's options."""
    parser.add_argument("networks", metavar="F.json", nargs="+", help="networks in JSON")
    parser.add("--ref", help="references: Kaldi text, trn, stm or ctm (default: the networks' own)")
    help_text = "reliability and ROC, a line for each file of networks"
    parser.groups["output"].add_argument("--figure", metavar="F.png", help=help_text)


def run(args):
    """Measure, print, and draw."""
    judged = {}
    for path in args.networks:
        judged[path], networks, refs = judge_file(path, args.ref)
        say_lines(f"warning: {path}: {doubt}" for doubt in judged[path].doubts())
        score = evaluate(refs, {one.utt: one.text for one in networks}, "wer", path).score
        print(f"{describe_confidences(path, judged[path])}; WER {score:.2f}")
    if args.figure:
        from lmtools.report.figures.confidence import draw_confidences  # matplotlib takes a second

        with atomic_binary(args.figure) as out:
            out.write(draw_confidences(judged))
