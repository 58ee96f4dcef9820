"""lmtools rescore: choose hypotheses with tuned weights."""

import sys

from lmtools.evaluate import METRICS
from lmtools.formats import kaldi_text, read, write
from lmtools.rescore import (
    LENGTHS,
    check_signatures,
    gather,
    load,
    rescore,
    select_columns,
    set_hash,
)
from lmtools.verbs.tune import add_inputs, place, read_scores


def arguments(parser):
    """Declare the verb's options."""
    add_inputs(parser)
    parser.add_argument(
        "--weights", required=True, metavar="F.json", help="what `lmtools tune` wrote"
    )
    parser.add_argument(
        "--out",
        required=True,
        metavar="F",
        help="Kaldi text of the chosen hypotheses; - is standard output",
    )
    parser.add_argument(
        "--nbest-out",
        metavar="F",
        help="also the lists in their new order, with all features and `total`",
    )
    parser.add_argument(
        "--to", default="jsonl", metavar="FMT", help="format of --nbest-out (default: %(default)s)"
    )


def run(args):
    """Read, rescore, write, and say with which weights."""
    nbests = read(args.nbest, args.format)
    columns, systems = read_scores(args, nbests)
    tuned = {system: load(place(args.weights, system)) for system in systems}
    known = [{*weights.features} for weights in tuned.values()]
    lengths = [name for name in (*LENGTHS, "rank") if name in set().union(*known)]
    features = gather(nbests, columns.values, args.nbest, lengths)
    for line in (*columns.warnings, *features.warnings):
        print(line, file=sys.stderr)
    for system, weights in tuned.items():
        some = select_columns(features, columns.values, systems[system])
        unused = {*lengths} - {*weights.features}
        some = some.select([name for name in some.names if name not in unused])
        apply(args, nbests, columns.select(systems[system]), some, weights, system)


def apply(args, nbests, columns, features, weights, system):
    """Choose by the weights of one system, write, and say so."""
    lists = rescore(nbests, features, weights, args.nbest)
    warnings = check_signatures(weights, columns, place(args.weights, system))
    if args.nbest_out:
        write(lists, place(args.nbest_out, system), args.to)
    chosen = {nbest.utt: nbest.hyps[0].text if nbest.hyps else "" for nbest in lists}
    kaldi_text.write(chosen, place(args.out, system))
    for line in (*warnings, *notes(nbests, lists, weights, args.nbest, place(args.out, system))):
        print(line if system is None else f"{system}: {line}", file=sys.stderr)


def notes(nbests, lists, weights, source, out):
    """What to tell of the result, line by line."""
    dev = weights.dev
    metric = METRICS[weights.metric]
    yield (
        f"weights tuned on {dev.path} ({dev.utterances} utterances, {metric.title}"
        f" {dev.first_pass:.2f} -> {dev.score:.2f})"
    )
    yield metric.signature
    if set_hash(nbests) == dev.sha256:
        yield (
            f"warning: {source} is the set that the weights were tuned on; its figures flatter,"
            " report those of another set"
        )
    empty = [nbest.utt for nbest in nbests if not nbest.hyps]
    if empty:
        yield (
            f"warning: {len(empty)} of {len(nbests)} lists are empty (first {empty[0]!r}); each"
            " gives an empty hypothesis"
        )
    changed = sum(
        bool(old.hyps) and old.hyps[0].text.split() != new.hyps[0].text.split()
        for old, new in zip(nbests, lists, strict=True)
    )
    yield f"{out}: {len(lists)} utterances, {changed} changed"
