"""lmtools rescore: choose hypotheses with tuned weights."""

from functools import partial

from lmtools.evaluate import METRICS
from lmtools.formats import kaldi_text, read, write
from lmtools.rescoring import Weights, of_system, read_scores, rescore_lists, set_hash
from lmtools.rescoring.lists import warn_empty
from lmtools.verbs import say


def arguments(parser):
    """Declare the verb's options."""
    parser.add("--nbest", "--format", "--scores", "--systems")
    parser.add("--weights", required=True, metavar="F.json", help="what `lmtools tune` wrote")
    parser.add("--out", help="Kaldi text of the chosen hypotheses; - is standard output")
    about = "also the lists in their new order, with all features and `total`"
    parser.add("--nbest-out", help=about)
    parser.add("--nbest-to")


def run(args):
    """Read, rescore, write, and say with which weights."""
    nbests = read(args.nbest, args.format)
    columns, systems = read_scores(args.scores, args.systems, nbests, args.nbest)
    tuned = {system: Weights.load(of_system(args.weights, system)) for system in systems}
    place = partial(of_system, args.weights)
    warnings, chosen = rescore_lists(nbests, columns, systems, tuned, args.nbest, place)
    say(warnings)
    for system, lists, about in chosen:
        write_choice(args, nbests, lists, tuned[system], system, about)


def write_choice(args, nbests, lists, weights, system, warnings):
    """Write what the weights of one system chose, and say so."""
    if args.nbest_out:
        write(lists, of_system(args.nbest_out, system), args.nbest_to)
    chosen = {nbest.utt: nbest.hyps[0].text if nbest.hyps else "" for nbest in lists}
    out = of_system(args.out, system)
    kaldi_text.write(chosen, out)
    before = "" if system is None else f"{system}: "
    told = (*warnings, *describe_choice(nbests, lists, weights, args.nbest, out))
    say(before + line for line in told)


def describe_choice(nbests, lists, weights, source, out):
    """What to tell of the result, line by line."""
    dev = weights.dev
    metric = METRICS[weights.metric]
    yield (
        f"weights tuned on {dev.path} ({dev.utterances} utterances, {metric.title}"
        f" {dev.first_pass:.2f} -> {dev.score:.2f})"
    )
    yield metric.signature
    if weights.folds:
        held = sum(len(rows) for _, rows in weights.folds.divide([one.utt for one in nbests]))
        yield (
            f"{weights.folds.describe()}: {held} of {len(nbests)} utterances by weights that did"
            " not see them, the rest by those of all"
        )
    elif set_hash(nbests) == dev.sha256:
        yield (
            f"warning: {source} is the set that the weights were tuned on; its figures flatter,"
            " report those of another set"
        )
    yield from warn_empty(nbests, "gives")
    changed = sum(
        bool(old.hyps) and old.hyps[0].text.split() != new.hyps[0].text.split()
        for old, new in zip(nbests, lists, strict=True)
    )
    yield f"{out}: {len(lists)} utterances, {changed} changed"
