"""lmtools network calibrate: learn on a development set how sure a word of a posterior is, for
`--calibration` of the other actions
"""

from lmtools.base.log import say, say_lines
from lmtools.rescoring.calibration import METHODS, calibrate, learn_calibration, save_calibration
from lmtools.verbs.network.common import describe_confidences, judge_file


def arguments(parser):
    """Declare the action's options."""
    help_text = "networks in JSON, not calibrated"
    parser.add_argument("networks", metavar="F.json", help=help_text)
    parser.add("--ref", help="references: Kaldi text, trn, stm or ctm (default: the networks' own)")
    help_text = (
        "temperature: one factor of the logit; logistic: and a shift; isotonic: rising steps, for"
        " some thousand words (default: %(default)s)"
    )
    parser.add_argument("--method", choices=METHODS, default="logistic", help=help_text)
    parser.add("--out", metavar="F.json", help="the calibration")


def run(args):
    """Learn, write, and say what it brings on the set."""
    judged, networks, refs = judge_file(args.networks, args.ref)
    say_lines(f"warning: {args.networks}: {doubt}" for doubt in judged.doubts())
    calibration = learn_calibration(judged, args.method)
    save_calibration(calibration, args.out)
    after, _, _ = judge_file(args.networks, None, calibrate(networks, calibration), refs)
    say(describe_confidences(args.networks, judged))
    say(describe_confidences(f"{args.out} (on the set that it was learnt on)", after))
