"""What scores that have the same bits in any batch cost: batches of one shape, filled up with
copies, and sentences of any lengths without padding (lmtools.models.ragged), against padded batches
as full as they come, whose bits depend on company.

A T-TA with random weights scores made-up sentences of 6 to 32 tokens, by one thread, all at once, a
list at a time and one by one. The ratios are of hypotheses a second, median of the turns, the kinds
of batches one after the other in each.

`--lists 16`, one thread of a busy machine, equal shapes and ragged: all 800 sentences at once keep
0.83 and 0.91 of the speed in float32, 0.64 and 0.84 in bfloat16; lists of 50 one by one 0.57 and
0.75, 0.54 and 0.71; a sentence by itself 0.33 and 1.07, 0.50 and 1.00.
"""

import argparse
import copy
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
from lmtools.score.neural import NeuralScorer
from lmtools.score.texts import run_batches

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
    alone = [[sentence] for sentence in lists[0]]
    print("precision, what is scored at a time: hypotheses a second as full as they come; of one")
    print("shape, ragged, each with its ratio to that")
    for precision in ("float32", "bfloat16"):
        subword, computing = SimpleNamespace(hash="0" * 64), Computing("cpu", precision)
        scorer = NeuralScorer(lm, subword, "0" * 16, LMSpec("-"), computing)
        equal = copy.copy(scorer)
        equal.ragged = False
        ways = (loose, scorer), (planned, equal), (planned, scorer)
        for name, parts in (("all", whole), ("a list", lists), ("one", alone)):
            turns = [[timed(*way, parts) for way in ways] for _ in range(args.turns)]
            count = sum(map(len, parts))
            rates = [count / statistics.median(column) for column in zip(*turns, strict=True)]
            ratios = [
                statistics.median(free / mine for free, *own in turns for mine in [own[number]])
                for number in (0, 1)
            ]
            cells = [
                f"{rate:,.0f} ({ratio:.2f})" for rate, ratio in zip(rates[1:], ratios, strict=True)
            ]
            print(f"{precision}, {name}: {rates[0]:,.0f}; {', '.join(cells)}", flush=True)


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


def planned(scorer: NeuralScorer, some: list) -> None:
    """Score in the scorer's own batches."""
    costs = [scorer.cost(sentence) for sentence in some]
    for batch in plan_batches(costs, scorer.rows, scorer.ragged):
        list(run_batches(scorer, [[some[i] for i in batch]], scorer.log_probs))


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
