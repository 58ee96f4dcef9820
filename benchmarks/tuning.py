"""What tuning costs by metric: statistics of hypotheses, exact line searches, and single weight
vectors from cached statistics.

The lists are made up: references of 5 to 40 words, hypotheses of them with words replaced, dropped,
doubled or moved. Seconds are of processor time, so that other programs on the machine change them
little. TER's statistics take longer the more there is to move.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.nbest import nbest_statistics
from lmtools.rescoring.features import combine
from lmtools.rescoring.search import SearchSpace, search, sweep
from lmtools.rescoring.tuning import loss_of
from lmtools.types import Hypothesis, NBest

WORDS = [
    f"{stem}{end}"
    for stem in ("bear", "cart", "dun", "fell", "gap", "hum")
    for end in ("", "s", "ed", "ing", "er", ",", ".")
]


def main() -> None:
    """Measure metric by metric and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--metrics", nargs="+", choices=METRICS, default=list(METRICS), help="(default: all)"
    )
    parser.add_argument(
        "--lists", type=int, default=300, metavar="N", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--depth",
        type=int,
        default=50,
        metavar="N",
        help="hypotheses a list (default: %(default)s)",
    )
    parser.add_argument(
        "--weights", type=int, default=3, metavar="N", help="that are free (default: %(default)s)"
    )
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    nbests = [made_up(f"u{number}", args.depth, rng) for number in range(args.lists)]
    for metric in args.metrics:
        print(f"{metric}: {'; '.join(measured(nbests, metric, args.weights, rng))}", flush=True)


def made_up(utt: str, depth: int, rng: np.random.Generator) -> NBest:
    """A list of damaged references."""
    ref = rng.choice(WORDS, size=rng.integers(5, 41)).tolist()
    return NBest(
        utt, tuple(Hypothesis(" ".join(damaged(ref, rng))) for _ in range(depth)), " ".join(ref)
    )


def damaged(ref: list[str], rng: np.random.Generator) -> list[str]:
    """The reference with up to half of its words changed."""
    words = list(ref)
    for _ in range(rng.integers(0, 1 + len(ref) // 2)):
        place, new = rng.integers(len(words)), str(rng.choice(WORDS))
        taken = words[place]
        words[place : place + 1] = [[new], [], [taken, new]][rng.integers(3)]
        if rng.random() < 0.2:
            words.insert(rng.integers(len(words) + 1), taken)
        words = words or [new]
    return words


def measured(
    nbests: list[NBest], metric: str, weights: int, rng: np.random.Generator
) -> Iterator[str]:
    """The figures of one metric in words."""
    count = sum(len(nbest.hyps) for nbest in nbests)
    rows, seconds = timed(lambda: nbest_statistics(nbests, metric))
    yield (
        f"statistics of {count:,} hypotheses {seconds:.1f} s ({1e6 * seconds / count:.0f} us each)"
    )
    statistics = np.stack(rows)  # (U, K, width)
    gains = METRICS[metric].gain(statistics)
    columns = rng.normal(size=(1 + weights, *gains.shape)) + gains / gains.std()
    space = SearchSpace(
        columns,
        np.ones(columns.shape[1:], dtype=bool),
        statistics,
        loss_of(metric),
        np.zeros(weights, dtype=bool),
    )
    some = rng.normal(size=(500, 1 + weights))
    _, seconds = timed(lambda: [space.at(one) for one in some])
    yield f"{len(some) / seconds:,.0f} single weight vectors a second"
    lines = [combine(one, columns) for one in some[:21]]
    edges, seconds = timed(lambda: [points(space, *pair) for pair in pairwise(lines)])
    yield (
        f"a line's exact optimum {1000 * seconds / len(edges):.1f} ms, {sum(edges) / seconds:,.0f}"
        " of its intervals a second"
    )
    _, seconds = timed(lambda: search(space, 0))
    yield f"search over {weights} weights {seconds:.1f} s"


def points(space: SearchSpace, start: np.ndarray, slope: np.ndarray) -> int:
    """The intervals of a line, each with its score."""
    return len(space.loss(sweep(start, slope, space.valid, space.statistics).totals))


def timed(work: Callable) -> tuple:
    """What `work` returns, and its seconds of processor time."""
    begin = time.process_time()
    result = work()
    return result, time.process_time() - begin


if __name__ == "__main__":
    main()
