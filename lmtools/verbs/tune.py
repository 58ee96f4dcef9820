"""lmtools tune: the weights of first-pass and language-model scores that are best on a development
set.
"""

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.evaluate.doctor.writing import doubt_writing
from lmtools.evaluate.metrics import METRIC_HELP, METRICS
from lmtools.formats import kaldi_text, read
from lmtools.rescoring.experiment import of_system
from lmtools.rescoring.features import NEAR
from lmtools.rescoring.lists import tune_lists
from lmtools.rescoring.tuning import FLAT, Crossing
from lmtools.rescoring.tuning_options import TuningOptions
from lmtools.rescoring.weights import describe_doubts
from lmtools.types import PHRASES
from lmtools.verbs.experiment import complete_tuning, read_all
from lmtools.verbs.help import Rare
from lmtools.verbs.numbers import folds, named
from lmtools.verbs.options import flags_of
from lmtools.verbs.parser import add_phrases, add_settings

# what --set may say; other options of tuning are flags
SETTINGS = (*("objective", "form", "lengths", "reference", "negative"),)

EXAMPLES = (
    "lmtools tune --nbest dev.jsonl --scores lm=dev.scores --out weights.json",
    "lmtools tune --nbest dev.jsonl --scores lm=dev.scores --metric cer --out cer.json",
)


def arguments(parser):
    parser.epilog = (
        "Weights are tuned for the lists' own scores (or `rank`, if they have none), for each"
        " --scores column and for the number of words. One weight is fixed at 1: the first of am,"
        " score, rank. With --fix am=0 it is an LM's. Tune on a development set, never on the set"
        " that you report."
    )
    parser.add("--nbest", "--format", "--scores", "--experiment")
    add_phrases(parser)
    parser.add(
        "--metric",
        help=f"the metric to optimise on the whole set: {METRIC_HELP} (default: wer)",
        default=None,
    )
    help_text = "give a weight instead of tuning it"
    parser.add_argument(
        "--fix",
        type=named,
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=W",
        help=help_text,
    )
    parser.add_argument("--folds", **flags_of(TuningOptions)["--folds"] | {"type": folds})
    help_text = (
        "Kaldi utt2spk, the speaker of each utterance (default: the part of its id before the first"
        " dash)"
    )
    parser.add_argument("--utt2spk", metavar="F", help=Rare(help_text))
    help_text = "seed of random folds and of the exact search (default: 0)"
    parser.add("--seed", default=None, help=help_text)
    add_settings(parser, TuningOptions, SETTINGS)
    parser.add("--out", metavar="F.json", help="weights to write; - prints them")
    parser.add("--nj", help="number of processes that tune several systems (default: %(default)s)")


def run(args):
    """Read, tune, write, and say what was gained."""
    options, plans = complete_tuning(args)
    nbests = read(args.nbest, args.format)
    columns, systems = read_all(args, nbests, plans)
    places = {system: of_system(args.out, system) for system in systems}
    crossing = cross(args, options, nbests)
    warnings, tuned = tune_lists(
        nbests, columns, systems, args.nbest, options=options, crossing=crossing, nj=args.nj
    )
    pairs = [(n.hyps[0].text, n.ref) for n in nbests if n.hyps and n.ref is not None]
    say_lines([*warnings, *doubt_writing(pairs, args.nbest, options.metric)])
    for system, weights in tuned:
        weights.save(places[system])
        before = "" if system is None else f"{system}: "
        say_lines(before + line for line in describe_weights(weights, system))


def cross(args, options: TuningOptions, nbests) -> Crossing | None:
    if options.folds is None:
        if args.utt2spk:
            raise UserError("--utt2spk: only --folds speaker asks for speakers; give both")
        return None
    speakers = kaldi_text.read(args.utt2spk) if args.utt2spk else None
    return Crossing(nbests, options, speakers, args.nbest)


def describe_weights(weights, system):
    dev = weights.dev
    values = ", ".join(f"{name} {weight:.4g}" for name, weight in weights.features.items())
    yield (
        f"{METRICS[weights.metric].title} {dev.first_pass:.2f} -> {dev.score:.2f} on"
        f" {dev.utterances} utterances of {dev.path}: {values}"
    )
    if weights.folds:
        yield (
            f"{weights.folds.describe()}: {METRICS[weights.metric].title}"
            f" {weights.folds.score:.2f} by weights that did not see the utterance"
        )
    if capped := weights.search.get("capped"):
        yield (
            f"with no more errors of a hypothesis than its reference has words:"
            f" {capped['first_pass']:.2f} -> {capped[weights.metric]:.2f}"
        )
    if weights.search.get("sharpened"):
        yield "sharpened: exact line searches are clearly better on this set"
    yield from describe_doubts(weights, system)
    if is_worse(weights) and "costs" not in weights.search:
        yield (
            "warning: no weights of these scores reach the recogniser's own ranking"
            f" ({dev.first_pass:.2f}); --set reference=rank tunes from that ranking on, --set"
            " negative=NAME may help"
        )
    yield METRICS[weights.metric].signature
    if "lambda" in weights.search:
        yield f"lambda {weights.search['lambda']:.4g}"
    yield from describe_phrases(weights.search.get(PHRASES))
    if note := weights.search.get(NEAR):
        saved = note["with"] - note["without"]
        wins = f"win by a margin of {note['margin']:.4g}, and save {saved:g} errors"
        yield f"new hypotheses {wins if note['new'] else 'never win: they save no errors surely'}"
    for name, curve in weights.search["curves"].items():
        low, high = curve["flat"]
        title = METRICS[weights.metric].title
        yield f"{name}: any weight from {low:.4g} to {high:.4g} gives this {title} within {FLAT}"


def describe_phrases(note):
    """Yield what the phrases bring and harm on dev, of the note on their weight."""
    if not note:
        return
    before, after = (
        note[key]["phrase_errors"] + note[key]["other_errors"] for key in ("without", "with")
    )
    low, high = note["change"]
    yield (
        f"phrases: in the {note['lists']} lists whose hypotheses differ in them: errors of all"
        f" words {before} -> {after}, change {after - before:+d} [95% CI {low:+.0f}, {high:+.0f}]"
    )
    yield from draw_curve("weight", note["curve"], note["weight"])
    if "margin" in note:
        wins = f"win by a margin of {note['margin']:.4g} a share of letters"
        yield f"new hypotheses {wins if note['new'] else 'never win: they save no errors here'}"
        yield from draw_curve("margin", note.get("margins", []), note["margin"])
    if note["weight"] == 0:
        yield (
            "warning: no weight of phrases saves more errors than it makes on these lists; phrases"
            " change nothing (--fix phrases=W gives a weight)"
        )


def draw_curve(name, rows, chosen):
    """Yield a table of what other weights bring and harm, `*` beside the chosen one."""
    heads = [name, "errors in phrases", "in other words", "false alarms"]
    for row in [heads, *([f"{weight:.4g}", *counts] for weight, *counts in rows)] if rows else ():
        cells = "  ".join(f"{cell!s:>{len(head)}}" for cell, head in zip(row, heads, strict=True))
        yield cells + (" *" if row[0] == f"{chosen:.4g}" else "")


def is_worse(weights) -> bool:
    """Return whether the weights choose worse hypotheses than the first ones, by what was tuned."""
    dev = {"first_pass": weights.dev.first_pass, weights.metric: weights.dev.score}
    dev |= weights.search.get("capped", {})
    gained = dev[weights.metric] - dev["first_pass"]
    return gained > 0 if METRICS[weights.metric].lower_is_better else gained < 0
