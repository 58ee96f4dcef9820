"""What tuned weights are worth on utterances that they did not see: tuned on one random half of
some lists, judged on the other, over and over.

    python benchmarks/transfer.py --lists dev.jsonl ngram=dev.scores --lists test.jsonl \\
      ngram=test.scores

For the first pass alone (its scores and the number of words), for all columns of scores, and with
--useless for each with two useless columns more (random numbers of the spread of the first column,
and this column shuffled inside each list), the table has for each objective: the metric of the
other half on average and at worst, the share of halves that it is worse than the first pass tuned
by the same objective, the mean gain over `exact` and what the useless columns cost, each with p of
the corrected resampled t-test (Nadeau and Bengio 2003), and seconds of processor time.

Tried and left out, as no better than `expected`: means of six halves of 900 lists of speechocean762
(SO), 467 of LibriSpeech (LS), 750 of egs/librispeech/mini (LM), WER with a 4-gram, and of 800 of
egs/wmt13 (its lists up to version 0.4), BLEU of the tuned first pass.

    weights of                                              SO     LS     LM  de-en  fr-en
    exact                                                29.82   6.43  18.10  21.42  20.00
    exact, ends within 0.1 nearest the first pass        29.89   6.42  18.09  21.43  19.89
    exact, errors capped at the reference's length       28.58   6.40  18.10
    the same, 25 resamples, unit weights averaged        28.64   6.36  18.06  21.45  19.88
    k-best MIRA (Cherry and Foster 2012), capped, C 0.1  28.47   6.42  18.05  21.20  19.72
    expected                                             28.43   6.17  18.00  21.40  20.06
    expected, errors not capped                          29.30   6.17  18.00
    expected, then exact line searches                   28.56   6.41  18.06  21.35  20.05
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import t as student

from lmtools.evaluate.metrics import METRICS
from lmtools.formats import read
from lmtools.formats.scores import hash_lists
from lmtools.rescoring.features import Features, best, combine, gather, read_columns
from lmtools.rescoring.tuning import DevSet, padded_statistics, spread, tune_features
from lmtools.rescoring.tuning_options import OBJECTIVES, TuningOptions

USELESS = ("random", "shuffled")


def parse_arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--lists",
        nargs="+",
        action="append",
        required=True,
        metavar="FILE",
        help="N-best lists, then NAME=FILE for each column of scores; all together are halved",
    )
    parser.add_argument("--metric", choices=METRICS, default="wer", help="(default: %(default)s)")
    parser.add_argument(
        "--halves", type=int, default=20, metavar="N", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--derived", nargs="*", default=["words"], help="lengths, loop (default: words)"
    )
    parser.add_argument(
        "--objectives", nargs="+", choices=OBJECTIVES, default=OBJECTIVES, help="(default: all)"
    )
    parser.add_argument("--useless", action="store_true", help="with useless columns, too")
    return parser.parse_args()


def main() -> None:
    """Read, tune on halves, print."""
    args = parse_arguments()
    parts = [read_part(*files, args.derived) for files in args.lists]
    lists = [nbest for nbests, _, _ in parts for nbest in nbests]
    whole = join([features for _, features, _ in parts])
    statistics = padded_statistics(lists, args.metric, "lists")
    dev = DevSet(statistics, hash_lists(lists), "lists")
    columns = parts[0][2]
    own = [name for name in whole.names if name not in columns]
    everything = add_useless(whole, columns[0])
    systems = {"first pass": own, "all": whole.names}
    if args.useless:
        systems |= {f"{name} + useless": [*names, *USELESS] for name, names in systems.items()}
    found = {}
    for name, names in systems.items():
        for objective in args.objectives:
            options = TuningOptions(
                args.metric, lms=[*columns, *USELESS, "lm"], objective=objective
            )
            found[name, objective] = transfer(everything.select(names), dev, options, args.halves)
    sign = 1 if METRICS[args.metric].lower_is_better else -1
    print(
        "| system | objective | mean | worst | worse than first pass % | gain over exact (p) |"
        " cost of useless (p) | s |\n|---|---|---:|---:|---:|---:|---:|---:|"
    )
    for (name, objective), (scores, seconds) in found.items():
        first, exact = found["first pass", objective][0], found.get((name, "exact"))
        plain = found[name.removesuffix(" + useless"), objective][0]
        cells = [
            f"{scores.mean():.2f}",
            f"{sign * (sign * scores).max():.2f}",
            f"{100 * np.mean(sign * scores > sign * first):.0f}",
            "" if not exact or objective == "exact" else gain(sign * (exact[0] - scores)),
            gain(sign * (scores - plain)) if name.endswith("useless") else "",
            f"{seconds:.2f}",
        ]
        print(f"| {name} | {objective} | {' | '.join(cells)} |", flush=True)


def read_part(path: str, *rest) -> tuple[list, Features, list[str]]:
    """The lists of a file, their features, and the names of its columns of scores."""
    *specs, derived = rest
    nbests = list(read(path, None))
    columns = read_columns(specs, nbests, path)
    return nbests, gather(nbests, columns.values, path, derived), list(columns.values)


def join(parts: Sequence[Features]) -> Features:
    """The features of all lists together."""
    depth = max(part.valid.shape[1] for part in parts)
    wider = [(0, depth - part.valid.shape[1]) for part in parts]
    values = [
        np.pad(part.select(parts[0].names).values, ((0, 0), (0, 0), more))
        for part, more in zip(parts, wider, strict=True)
    ]
    valid = [np.pad(part.valid, ((0, 0), more)) for part, more in zip(parts, wider, strict=True)]
    return Features(parts[0].names, np.concatenate(values, axis=1), np.concatenate(valid))


def add_useless(features: Features, name: str) -> Features:
    """The features and USELESS after the column `name`."""
    rng, valid = np.random.default_rng(0), features.valid
    noise = rng.normal(size=valid.shape) * spread(features.column(name), valid)
    keys = np.where(valid, rng.random(valid.shape), np.inf)  # padding stays behind
    shuffled = np.take_along_axis(features.column(name), keys.argsort(1), axis=1)
    more = np.stack([np.where(valid, noise, 0), shuffled])
    return replace(
        features, names=(*features.names, *USELESS), values=np.concatenate([features.values, more])
    )


def transfer(
    features: Features, dev: DevSet, options: TuningOptions, halves: int
) -> tuple[np.ndarray, float]:
    """The metric of each other half (halves,), and the seconds of one tuning."""
    scores, count, begin = [], len(features.valid), time.process_time()
    for number in range(halves):
        order = np.random.default_rng(number).permutation(count)
        one, other = order[: count // 2], order[count // 2 :]
        half = replace(features, values=features.values[:, one], valid=features.valid[one])
        weights = tune_features(half, replace(dev, statistics=dev.statistics[one]), options)
        totals = combine(
            [weights.features[name] for name in features.names], features.values[:, other]
        )
        chosen = best(totals, features.valid[other])
        scores.append(METRICS[options.metric].score(dev.statistics[other, chosen].sum(0)))
    return np.array(scores, float), (time.process_time() - begin) / halves


def gain(differences: np.ndarray) -> str:
    """The mean of paired differences and its two-sided p, corrected for halves that overlap."""
    count, mean = len(differences), differences.mean()
    if count < 2 or not np.ptp(differences):
        return f"{mean:+.2f} (- of {count} halves alike)"
    error = np.sqrt((1 / count + 1) * differences.var(ddof=1))
    return f"{mean:+.2f} ({2 * student.sf(abs(mean) / error, count - 1):.2f})"


if __name__ == "__main__":
    main()
