"""lmtools network rover: several systems' outputs, lists or networks combined: a vote in each slot
of their alignment (ROVER), or one network of all
"""

from collections.abc import Iterator

from lmtools.base.log import say, say_lines
from lmtools.evaluate import evaluate
from lmtools.lattice.rover import Vote
from lmtools.rescoring.calibration import calibrate
from lmtools.rescoring.networks import NetworkPlan
from lmtools.rescoring.rover import (
    METHODS,
    SystemOutput,
    combine_systems,
    complete_systems,
    find_spellings,
    load_vote,
    read_system,
)
from lmtools.verbs.network.common import FORMATS, add_calibration, read_calibration, write_networks
from lmtools.verbs.numbers import amount, share


def add_systems(parser):
    """Declare the systems and how lists become networks."""
    help_text = "outputs of a system: texts with ids, ctm, N-best lists, or networks"
    parser.add_argument("systems", metavar="F", nargs="+", help=help_text)
    parser.add("--format", help="format of all of them (default: recognised one by one)")
    parser.add("--scale", default=1.0)
    parser.add("--depth")


def read_systems(args) -> list[SystemOutput]:
    """Read the systems that the options name; say what they lack and where they are unlike."""
    plan = NetworkPlan(args.scale, args.depth)
    systems, warnings = complete_systems(
        [read_system(path, args.format, plan) for path in args.systems]
    )
    say_lines([*warnings, *find_spellings(systems)])
    return systems


def arguments(parser):
    """Declare the action's options."""
    add_systems(parser)
    help_text = (
        "vote by freq (how many systems have a word), average, maximum or share of their"
        " confidences (rover's meth1, maxconf, avgconf); network: one network of all (default:"
        " %(default)s)"
    )
    parser.add_argument("--method", choices=METHODS, default=METHODS[0], help=help_text)
    help_text = "weight of the share of votes, 1 - alpha is that of the confidence"
    parser.add_argument("--alpha", type=share, default=1.0, metavar="X", help=help_text)
    help_text = "confidence of no word (default: %(default)s)"
    parser.add_argument("--null", type=amount, default=0.0, metavar="X", help=help_text)
    help_text = "what `lmtools network tune` wrote, in place of these three"
    parser.add("--weights", metavar="F.json", help=help_text)
    add_calibration(parser)
    parser.add("--out", help="networks; - is standard output")
    parser.add("--to", default="json", help=f"{FORMATS} (default: %(default)s)")


def run(args):
    """Combine, write, and say how."""
    vote = load_vote(args.weights) if args.weights else Vote(args.method, args.alpha, args.null)
    systems = read_systems(args)
    combined = list(combine_systems(systems, vote))
    count = write_networks(calibrate(combined, read_calibration(args)), args.out, args.to)
    say(f"{args.out}: {len(args.systems)} systems, {count} utterances, by {vote.method}")
    say_lines(compare_systems(systems, combined))


def compare_systems(systems, combined) -> Iterator[str]:
    """Yield a warning where a system alone has fewer word errors than all combined, if there are
    references.
    """
    refs = {one.utt: one.ref for one in combined if one.ref is not None}
    if not refs:
        return
    outputs = [system.networks for system in systems] + [{one.utt: one for one in combined}]
    *alone, together = (
        evaluate(refs, {utt: networks[utt].text for utt in refs}, "wer", "").score
        for networks in outputs
    )
    if min(alone) < together:
        best = systems[alone.index(min(alone))].path
        yield (
            f"warning: WER {together:.2f}, and {best} alone has {min(alone):.2f}; find weights of"
            " the systems on a development set (lmtools network tune), for --weights"
        )
