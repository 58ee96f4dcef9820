"""What scores that have the same bits in any batch cost: batches of one shape, filled up with
copies, against batches as full as they come.

A T-TA with random weights scores made-up sentences of 6 to 32 tokens, by one thread, all at once
and a list at a time. The ratio is of hypotheses a second, median of the turns, the two kinds of
batches one after the other in each.

`--lists 250 --turns 1`, one thread: 12,500 sentences at once keep 0.82 of the speed in float32 and
0.83 in bfloat16, lists of 50 one by one 0.65 and 0.49; a sentence by itself costs as much as eight.
"""

import argparse
import statistics
import time
from types import SimpleNamespace

import numpy as np
import torch

from lmtools.base.batching import plan_batches
from lmtools.base.computing import Computing
from lmtools.base.specs import LMSpec
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Settings
from lmtools.score.compute import score_batch
from lmtools.score.neural import NeuralScorer

SIZE, BUDGET = 2000, 4096  # pieces; model rows of a batch that is as full as it comes


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lists", type=int, default=24, metavar="N", help="(default: %(default)s)")
    parser.add_argument(
        "--depth",
        type=int,
        default=50,
        metavar="N",
        help="hypotheses a list (default: %(default)s)",
    )
    parser.add_argument("--turns", type=int, default=3, metavar="N", help="(default: %(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    lm = LanguageModel(
        Settings(
            "tta",
            "autoencoding",
            arch={"layers": 3, "dim": 192, "heads": 4, "ffn": 768, "positions": 256},
        ),
        SIZE,
    )
    lists = sentences(args.lists, args.depth)
    whole = [[sentence for some in lists for sentence in some]]
    print(
        "precision, what is scored at a time: hypotheses a second as full as they come, of one"
        " shape, ratio"
    )
    for precision in ("float32", "bfloat16"):
        subword, computing = SimpleNamespace(hash="0" * 64), Computing("cpu", precision)
        scorer = NeuralScorer(lm, subword, "0" * 16, LMSpec("-"), computing)
        for name, parts in (("all", whole), ("a list", lists)):
            seconds = [
                [timed(score, scorer, parts) for score in (loose, fixed)] for _ in range(args.turns)
            ]
            count, ratio = len(whole[0]), statistics.median(free / same for free, same in seconds)
            free, same = (
                count / statistics.median(column) for column in zip(*seconds, strict=True)
            )
            print(f"{precision}, {name}: {free:,.0f} {same:,.0f} {ratio:.2f}", flush=True)


def sentences(lists: int, depth: int) -> list[list[tuple[int, ...]]]:
    """Lists of sentences of about one length each."""
    rng = np.random.default_rng(0)
    lengths = [rng.integers(8, 30) + rng.integers(-2, 3, depth) for _ in range(lists)]
    return [[tuple(rng.integers(5, SIZE, length).tolist()) for length in some] for some in lengths]


def timed(score, scorer: NeuralScorer, parts: list) -> float:
    """Seconds of processor time."""
    begin = time.process_time()
    for part in parts:
        score(scorer, part)
    return time.process_time() - begin


def fixed(scorer: NeuralScorer, some: list) -> None:
    """Score in batches of one shape."""
    for batch in plan_batches([scorer.cost(sentence) for sentence in some], scorer.rows):
        score_batch(scorer, [some[i] for i in batch])


def loose(scorer: NeuralScorer, some: list) -> None:
    """Score in batches of neighbouring lengths, as many sentences as BUDGET holds, padded."""
    batch: list = []
    for sentence in sorted(some, key=scorer.cost):
        if batch and (len(batch) + 1) * scorer.cost(sentence) > BUDGET:
            scorer.log_probs(batch)
            batch = []
        batch.append(sentence)
    scorer.log_probs(batch)


if __name__ == "__main__":
    main()
