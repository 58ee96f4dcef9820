"""lmtools tune: the weights of first-pass and language-model scores that are best on a development
set.
"""

from lmtools.errors import UserError
from lmtools.evaluate import METRICS
from lmtools.evaluate.metrics import METRIC_HELP
from lmtools.formats import kaldi_text, read
from lmtools.rescoring import (
    FORMS,
    LENGTHS,
    OBJECTIVES,
    Crossing,
    TuningOptions,
    of_system,
    read_scores,
    tune_lists,
)
from lmtools.rescoring.doubts import describe_doubts
from lmtools.verbs import say
from lmtools.verbs.experiment import complete_tuning
from lmtools.verbs.help import Rare
from lmtools.verbs.numbers import folds, named, share


def arguments(parser):
    """Declare the verb's options."""
    parser.epilog = (
        "Features are the lists' own scores (`rank` if they have none), each --scores column, and"
        " --lengths and --loop, counted in the text. `am` (else `score`, `rank`, or the first) has"
        " weight 1, unless --fix says otherwise; fixed at 0 it leaves its place to the next"
        " feature, language models first. Tune on a development set, never on the set that you"
        " report."
    )
    parser.add("--nbest", "--format", "--scores", "--experiment")
    about = f"what is tuned, over the whole set: {METRIC_HELP} (default: wer)"
    parser.add("--metric", default=None, help=about)
    about = (
        "expected: the metric that the lists expect, where no hypothesis has more errors than its"
        " reference has words, so that one bad utterance cannot spoil the weights; exact: the"
        " metric of the chosen hypotheses, searched line by line (default: expected)"
    )
    parser.add_argument("--objective", choices=OBJECTIVES, help=Rare(about))
    parser.add(
        "--seed",
        default=0,
        help="of random folds and of the exact search's starts (default: %(default)s)",
    )
    lengths = parser.add_mutually_exclusive_group()
    about = (
        "lengths of the hypothesis that are features: words (the word insertion bonus), characters,"
        " log-words: log(1 + words) (default: words)"
    )
    lengths.add_argument("--lengths", nargs="+", choices=LENGTHS, metavar="NAME", help=Rare(about))
    about = "no length is a feature"
    lengths.add_argument(
        "--no-words", dest="lengths", action="store_const", const=[], help=Rare(about)
    )
    about = (
        "`loop` is a feature, too: minus the words said in a loop (a poor poor poor poor: -2),"
        " with a weight of at least 0"
    )
    parser.add_argument("--loop", action="store_true", help=Rare(about))
    parser.add_argument(
        "--fix",
        type=named,
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=W",
        help="give a weight, do not tune it",
    )
    about = (
        "the feature with weight 1 that others scale against; rank, the order of the lists, is one"
        " if it is named here"
    )
    parser.add_argument("--reference", metavar="NAME", help=Rare(about))
    about = (
        "interpolation: (1 - lambda) first pass + lambda LM, no lengths; the first pass is the"
        " feature of weight 1, or what --fix says, as in --fix am=0.1 lm=1 (default: linear;"
        " of --experiment, as the file says)"
    )
    parser.add_argument("--form", choices=FORMS, default="linear", help=Rare(about))
    about = "let language models have negative weights"
    parser.add_argument("--allow-negative", action="store_true", help=Rare(about))
    about = (
        "let these features have negative weights: a language model that is subtracted (density"
        " ratio, LODR), or a cost"
    )
    parser.add_argument(
        "--negative", nargs="+", action="extend", default=[], metavar="NAME", help=Rare(about)
    )
    about = (
        "cross-validation: also weights tuned without each of N folds at random, without each"
        " speaker (speaker), or without each of N groups of speakers (speaker:N); lmtools rescore"
        " then chooses for each utterance by weights that did not see it"
    )
    parser.add_argument("--folds", type=folds, metavar="N|speaker", help=about)
    about = (
        "Kaldi utt2spk, the speaker of each utterance (default: what its id has before the first"
        " dash)"
    )
    parser.add_argument("--utt2spk", metavar="F", help=Rare(about))
    about = (
        "of the bound that `lmtools rescore --lm` stops by: the share of these lists that may get"
        " another choice (default: %(default)s)"
    )
    parser.add_argument("--tolerance", type=share, default=0.0, metavar="SHARE", help=Rare(about))
    parser.add("--out", metavar="F.json", help="weights; - is standard output")
    parser.add("--nj", help="processes that tune several systems (default: %(default)s)")
    parser.add("--cmd")


def run(args):
    """Read, tune, write, and say what was gained."""
    plans = complete_tuning(args)
    nbests = read(args.nbest, args.format)
    columns, systems = read_scores(args.scores, plans, nbests, args.nbest)
    places = {system: of_system(args.out, system) for system in systems}
    options = TuningOptions(
        args.metric,
        args.seed,
        dict(args.fix),
        (),
        args.form,
        args.allow_negative,
        args.reference,
        args.objective,
        args.negative,
    )
    crossing = cross(args, nbests)
    how = args.lengths, args.loop, crossing, args.nj, args.tolerance
    warnings, tuned = tune_lists(nbests, columns, systems, args.nbest, options, *how)
    say(warnings)
    for system, weights in tuned:
        weights.save(places[system])
        before = "" if system is None else f"{system}: "
        say(before + line for line in describe_weights(weights))


def cross(args, nbests) -> Crossing | None:
    """The folds that are asked for."""
    if args.folds is None:
        if args.utt2spk:
            raise UserError("--utt2spk: only --folds speaker asks for speakers; give both")
        return None
    speakers = kaldi_text.read(args.utt2spk) if args.utt2spk else None
    return Crossing(nbests, args.folds, args.seed, speakers, args.nbest)


def describe_weights(weights):
    """What to tell of the result, line by line."""
    dev = weights.dev
    found = ", ".join(f"{name} {weight:.4g}" for name, weight in weights.features.items())
    yield (
        f"{METRICS[weights.metric].title} {dev.first_pass:.2f} -> {dev.score:.2f} on"
        f" {dev.utterances} utterances of {dev.path}: {found}"
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
    yield from describe_doubts(weights)
    if is_worse(weights) and "costs" not in weights.search:
        remedy = "--reference rank tunes from that order on, --negative NAME may help"
        yield (
            "warning: that is worse than the lists' own order, which no weights found for these"
            f" features give; {remedy}"
        )
    yield METRICS[weights.metric].signature
    if "lambda" in weights.search:
        yield f"lambda {weights.search['lambda']:.4g}"
    for name, curve in weights.search["curves"].items():
        low, high = curve["flat"]
        yield f"{name}: scales from {low:.4g} to {high:.4g} are as good"


def is_worse(weights) -> bool:
    """Whether the weights choose worse hypotheses than the first ones, by what was tuned."""
    dev = {"first_pass": weights.dev.first_pass, weights.metric: weights.dev.score}
    dev |= weights.search.get("capped", {})
    gained = dev[weights.metric] - dev["first_pass"]
    return gained > 0 if METRICS[weights.metric].lower_is_better else gained < 0
