"""lmtools rescore: choose hypotheses with tuned weights."""

import sys

from lmtools.evaluate import METRICS
from lmtools.formats import kaldi_text, read, write
from lmtools.rescore import LENGTHS, check_signatures, gather, load, read_columns, rescore, set_hash
from lmtools.verbs.tune import add_inputs


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
    weights = load(args.weights)
    nbests = read(args.nbest, args.format)
    lengths = [name for name in (*LENGTHS, "rank") if name in weights.features]
    columns = read_columns(args.scores, nbests, args.nbest)
    features = gather(nbests, columns.values, args.nbest, lengths)
    lists = rescore(nbests, features, weights, args.nbest)
    warnings = [
        *columns.warnings,
        *features.warnings,
        *check_signatures(weights, columns, args.weights),
    ]
    if args.nbest_out:
        write(lists, args.nbest_out, args.to)
    kaldi_text.write(
        {nbest.utt: nbest.hyps[0].text if nbest.hyps else "" for nbest in lists}, args.out
    )
    for line in (*warnings, *notes(nbests, lists, weights, args)):
        print(line, file=sys.stderr)


def notes(nbests, lists, weights, args):
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
            f"warning: {args.nbest} is the set that the weights were tuned on; its figures flatter,"
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
    yield f"{args.out}: {len(lists)} utterances, {changed} changed"
