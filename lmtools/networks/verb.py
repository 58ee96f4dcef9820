"""lmtools network: confusion networks of lists and lattices, their words and confidences."""

import math
from collections.abc import Iterable, Iterator, Mapping

from lmtools.base.atomic import atomic_binary
from lmtools.base.doors import collect, load
from lmtools.base.errors import UserError
from lmtools.base.log import say, say_lines
from lmtools.evaluate.corpus import evaluate
from lmtools.evaluate.nbest import UNTRIED
from lmtools.evaluate.show import NONE
from lmtools.formats import read, stream
from lmtools.formats.lattices import LATTICES, default_weights
from lmtools.formats.lattices import stream as stream_lattices
from lmtools.formats.registry import find_format
from lmtools.formats.texts import read_texts
from lmtools.lattice.check import drop_unusable
from lmtools.networks import confidence, systems
from lmtools.networks import files as network_files
from lmtools.networks.confidence import JudgedWords, judge_words
from lmtools.networks.confusion import as_lattice
from lmtools.networks.files import NETWORKS
from lmtools.networks.lists import NetworkPlan, build_networks, rank_lists
from lmtools.networks.mbr import ROUNDS, decode_mbr
from lmtools.networks.rover import FREQUENCY, VOTES, Vote
from lmtools.rescoring.defaults import load_weights
from lmtools.rescoring.features import read_columns
from lmtools.rescoring.lists import check_signatures
from lmtools.rescoring.weights import parse_weights
from lmtools.types import ConfusionNetwork
from lmtools.verbs.numbers import amount, share
from lmtools.verbs.parser import add_actions

CHOICES = CONSENSUS, BEST = "consensus", "best"
FORMATS = f"{', '.join(NETWORKS)}, or a format of lattices ({', '.join(LATTICES)})"
REF_HELP = "references: Kaldi text, trn, stm or ctm (default: those of the input)"

EXAMPLES = (
    "lmtools network build --nbest test.jsonl --out networks.json",
    "lmtools network rover a.txt b.txt c.txt --out combined.txt --to text",
)


def arguments(parser):
    list(add_actions(parser, ACTIONS))


def run(args):
    return args.act(args)


def declare_build(parser):
    """Build a confusion network of each N-best list or lattice: the words of its best hypothesis
    (of lattices the consensus), their posteriors, times and alternatives.
    """
    inputs = parser.groups["input"].add_mutually_exclusive_group(required=True)
    parser.add("--nbest", among=inputs, required=False)
    inputs.add_argument("--lattices", metavar="F", help="lattices, in place of N-best lists")
    parser.add("--format", "--scores")
    help_text = (
        "weights that `lmtools tune` wrote, or for lattices NAME=W,... (default: the score --score"
        " of lists, the own weights of lattices)"
    )
    parser.add("--weights", help=help_text)
    help_text = "score of the lists to make posteriors of (default: total, am, score or rank)"
    parser.add_argument("--score", metavar="NAME", help=help_text)
    parser.add("--scale", default=1.0)
    parser.add("--depth", help="use only the first N hypotheses of a list")
    help_text = (
        "of lattices, write the consensus of the words (the default), or the path with the best"
        " score, as of lists"
    )
    parser.add_argument("--choice", choices=CHOICES, help=help_text)
    add_output(parser)


def add_output(parser) -> None:
    help_text = "turn confidences into probabilities, as `lmtools network calibrate` learnt it"
    parser.add_argument("--calibration", metavar="F.json", help=help_text)
    parser.add("--out", help="networks to write; - prints them")
    parser.add(
        "--to", default="json", help=f"format of the output: {FORMATS} (default: %(default)s)"
    )


def build(args):
    networks = networks_of_lattices(args) if args.lattices else networks_of_lists(args)
    say(f"{args.out}: networks of {write_networks(networks, args)} utterances")


def networks_of_lists(args) -> Iterator[ConfusionNetwork]:
    """Return the networks of N-best lists, all read first where there are weights."""
    if args.choice == CONSENSUS:
        raise UserError("--choice consensus: is of --lattices; lists have their best hypothesis")
    plan = NetworkPlan(args.scale, args.depth)
    if not args.weights:
        if args.scores:
            raise UserError("--scores: needs --weights, which say how much each column counts")
        nbests = stream(args.nbest, args.format or ("jsonl" if args.nbest == "-" else None))
        return build_networks(rank_lists(nbests, None, None, args.nbest, score=args.score), plan)
    if args.score:
        raise UserError("--score: is of lists without --weights, which make the total")
    nbests = read(args.nbest, args.format)
    columns = read_columns(args.scores, nbests, args.nbest)
    weights = load_weights(args.weights, nbests, columns)
    say_lines([*columns.warn_unchecked(), *check_signatures(weights, columns, args.weights)])
    return build_networks(rank_lists(nbests, weights, columns, args.nbest), plan)


def networks_of_lattices(args) -> Iterator[ConfusionNetwork]:
    if args.scores or args.score or args.depth:
        raise UserError(
            "--lattices: all paths count by the scores on their arcs; leave --scores, --score and"
            " --depth"
        )
    weights = parse_weights(args.weights)
    for lattice in stream_lattices(args.lattices, args.format):
        lattice, messages = drop_unusable(lattice)
        say_lines(messages)
        chosen = default_weights(lattice) if weights is None else weights
        yield decode_mbr(lattice, chosen, args.scale, 0 if args.choice == BEST else ROUNDS)


def write_networks(networks: Iterable[ConfusionNetwork], args) -> int:
    """Write networks one by one, calibrated; return how many."""
    name, written = args.to.partition(":")[0], [0]
    if name not in NETWORKS and name not in LATTICES:
        raise UserError(f"--to {args.to}: no such format; give {FORMATS}")
    calibration = confidence.load_calibration(args.calibration) if args.calibration else None

    def counted():
        for network in confidence.calibrate(networks, calibration):
            written[0] += 1
            yield network

    if name in NETWORKS:
        find_format(args.to, NETWORKS).write(counted(), args.out)
    else:
        find_format(args.to, LATTICES).write(map(as_lattice, counted()), args.out)
    return written[0]


def declare_calibrate(parser):
    """Learn on a development set how posteriors become probabilities, for `--calibration` of the
    other actions.
    """
    parser.add_argument("networks", metavar="F.json", help="networks in JSON, not calibrated yet")
    parser.add("--ref", help=REF_HELP)
    help_text = (
        "kind of calibration: one factor of the logit (temperature), a factor and a shift"
        " (logistic), or rising steps (isotonic, for thousands of words); default: %(default)s"
    )
    methods = confidence.METHODS
    parser.add_argument("--method", choices=methods, default="logistic", help=help_text)
    parser.add("--out", metavar="F.json", help="calibration to write")


def calibrate(args):
    """Learn, write, and say what it brings on the set."""
    networks, refs, judged = judge_file(args.networks, args.ref)
    calibration = confidence.learn_calibration(judged, args.method)
    confidence.save_calibration(calibration, args.out)
    after = judge_words(list(confidence.calibrate(networks, calibration)), refs)
    say(describe_confidences(args.networks, judged))
    say(describe_confidences(f"{args.out} (on the set that it was learnt on)", after))


def judge_file(path, ref) -> tuple[list[ConfusionNetwork], dict[str, str], JudgedWords]:
    """Return the networks in a file, their references, and their words judged by these."""
    networks = list(network_files.read(path))
    refs = refs_of(networks, ref, path)
    try:
        judged = judge_words(networks, refs)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    say_lines(f"warning: {path}: {doubt}" for doubt in judged.doubts())
    return networks, refs, judged


def refs_of(networks: Iterable[ConfusionNetwork], ref: str | None, path) -> dict[str, str]:
    given: Mapping[str, str] | None = read_texts(ref) if ref else None
    refs = {}
    for network in networks:
        found = network.ref if given is None else given.get(network.utt)
        if found is None:
            raise UserError(f"{ref or path}: no reference of utterance {network.utt!r}; give --ref")
        refs[network.utt] = found
    return refs


def describe_confidences(name: str, judged: JudgedWords) -> str:
    nce, area = (
        NONE if math.isnan(value) else f"{value:.3f}"
        for value in (judged.cross_entropy, judged.area)
    )
    return (
        f"{name}: {len(judged.correct)} words, {100 * judged.correct.mean():.1f}% right; NCE {nce},"
        f" ECE {100 * judged.calibration_error:.2f}%, ROC area {area}"
    )


def declare_measure(parser):
    """Measure word errors of networks, normalised cross entropy and calibration error of their
    confidences; draw reliability and ROC.
    """
    parser.add_argument("networks", metavar="F.json", nargs="+", help="networks in JSON")
    parser.add("--ref", help=REF_HELP)
    help_text = "draw reliability and ROC, a line for each file of networks"
    parser.groups["output"].add_argument("--figure", metavar="F.png", help=help_text)


def measure(args):
    judged = {}
    for path in args.networks:
        networks, refs, judged[path] = judge_file(path, args.ref)
        score = evaluate(refs, {one.utt: one.text for one in networks}, "wer", path).score
        print(f"{describe_confidences(path, judged[path])}; WER {score:.2f}")
    if args.figure:
        from lmtools.networks.report import draw_confidences  # matplotlib takes a second

        with atomic_binary(args.figure) as out:
            out.write(draw_confidences(judged))


def declare_rover(parser):
    """Combine several systems' outputs, lists or networks, by a vote in each slot of their
    alignment (ROVER).
    """
    add_systems(parser)
    help_text = (
        "vote by the number of systems (freq), or by the average, maximum or share of their"
        " confidences (rover's meth1, maxconf, avgconf); default: %(default)s"
    )
    parser.add_argument("--method", choices=VOTES, default=FREQUENCY, help=help_text)
    help_text = "weight of the number of votes; the confidence has 1 - X (default: %(default)s)"
    parser.add_argument("--alpha", type=share, default=1.0, metavar="X", help=help_text)
    help_text = "confidence of an empty slot (default: %(default)s)"
    parser.add_argument("--null", type=amount, default=0.0, metavar="X", help=help_text)
    help_text = "settings that `lmtools network tune` wrote, in place of these three"
    parser.add("--weights", metavar="F.json", help=help_text)
    add_output(parser)


def add_systems(parser):
    help_text = "output of each system: text with ids, ctm, N-best lists or networks"
    parser.add_argument("systems", metavar="F", nargs="+", help=help_text)
    parser.add("--format", help="format of all of them (default: recognised one by one)")
    parser.add("--scale", default=1.0)
    parser.add("--depth")


def read_systems(args) -> list[systems.SystemOutput]:
    """Read the systems that the options name; say what they lack and where they are unlike."""
    plan = NetworkPlan(args.scale, args.depth, consensus=True)
    outputs = [systems.read_system(path, args.format, plan) for path in args.systems]
    outputs, warnings = systems.complete_systems(outputs)
    say_lines([*warnings, *systems.find_spellings(outputs)])
    return outputs


def rover(args):
    own = Vote(args.method, args.alpha, args.null)
    vote = systems.load_vote(args.weights) if args.weights else own
    args.systems, told = systems.order_systems(vote, args.systems)
    say_lines(told)
    outputs = read_systems(args)
    combined = list(systems.combine_systems(outputs, vote))
    count = write_networks(combined, args)
    say(f"{args.out}: {len(args.systems)} systems, {count} utterances, by {vote.method}")
    say_lines(compare_systems(outputs, combined))


def compare_systems(outputs, combined) -> Iterator[str]:
    """Yield a warning where a system alone has fewer word errors than all combined, or a hint
    where no reference tells.
    """
    refs = {one.utt: one.ref for one in combined if one.ref is not None}
    if not refs:
        yield UNTRIED.format("a vote", "tune it on a development set (lmtools network tune)")
        return
    sides = [output.networks for output in outputs] + [{one.utt: one for one in combined}]
    *alone, together = (
        evaluate(refs, {utt: networks[utt].text for utt in refs}, "wer", "").score
        for networks in sides
    )
    if min(alone) < together:
        best = outputs[alone.index(min(alone))].path
        yield (
            f"warning: WER {together:.2f}, and {best} alone has {min(alone):.2f}; find weights of"
            " the systems on a development set (lmtools network tune), for --weights"
        )


def declare_tune(parser):
    """Find on a development set how to combine systems: method, alpha, confidence of no word, what
    each system's vote counts.
    """
    add_systems(parser)
    parser.add("--ref", help=REF_HELP)
    parser.add("--out", metavar="F.json", help="settings to write, for `lmtools network rover`")


def tune(args):
    """Tune, write, and say what the settings bring on the set."""
    outputs = read_systems(args)
    refs = refs_of(outputs[0].networks.values(), args.ref, outputs[0].path)
    vote = systems.tune_vote(outputs, refs)
    systems.save_vote(vote, args.out)
    lines = [(output.path, output.networks.values()) for output in outputs]
    for path, networks in [*lines, (args.out, systems.combine_systems(outputs, vote))]:
        score = evaluate(refs, {one.utt: one.text for one in networks}, "wer", path).score
        say(f"{path}: WER {score:.2f}")
    trust = ", ".join(f"{value:g}" for value in vote.trust)
    say(f"by {vote.method}, alpha {vote.alpha:g}, null {vote.null:g}, trust {trust}")


BROUGHT = {name: tuple(map(load, pair)) for name, pair in collect("NETWORK_ACTIONS").items()}
# action -> (what declares its options, what does it), those that other doors bring among them
ACTIONS = {
    "build": (declare_build, build),
    "calibrate": (declare_calibrate, calibrate),
    "measure": (declare_measure, measure),
    "rover": (declare_rover, rover),
    **BROUGHT,
    "tune": (declare_tune, tune),
}
