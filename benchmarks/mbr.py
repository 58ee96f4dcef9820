#!/usr/bin/env python3
"""Speed of expected utilities (`lmtools mbr`) beside sacrebleu's own sentence scores over the same
pairs of hypotheses.

    python benchmarks/mbr.py [--lists 800] [--depth 50] [--words 25]

Lists are made up: a sentence of frequent and rare words and its copies with words dropped, doubled,
swapped and replaced, as beam search gives them. sacrebleu is timed over a few lists, each
hypothesis against each of its list. Seconds are of processor time, so that other programs do not
count.
"""

import argparse
import math
import random
import time
from itertools import product

import sacrebleu

from lmtools.evaluate.metrics import METRICS
from lmtools.rescoring.risk import Risk, minimum_risk
from lmtools.types import Hypothesis, NBest

SACRE = {
    "bleu": sacrebleu.sentence_bleu,
    "chrf": sacrebleu.sentence_chrf,
    "ter": sacrebleu.sentence_ter,
}
SYLLABLES = [
    onset + vowel for onset in "bcdfghjklmnprstvw" for vowel in ("a", "e", "i", "o", "u", "ea")
]


def main() -> None:
    """Print one line a utility."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lists", type=int, default=800, help="(default: %(default)s)")
    parser.add_argument(
        "--depth", type=int, default=50, help="hypotheses a list (default: %(default)s)"
    )
    parser.add_argument("--words", type=int, default=25, help="a hypothesis (default: %(default)s)")
    parser.add_argument(
        "--sacrebleu",
        type=int,
        default=2,
        metavar="N",
        help="lists that it is timed on (default: %(default)s)",
    )
    args = parser.parse_args()
    rng = random.Random(1)
    nbests = [made_up(rng, f"u{number}", args.depth, args.words) for number in range(args.lists)]
    pairs = args.lists * args.depth**2
    print(
        f"{args.lists} lists of {args.depth} hypotheses of about {args.words} words: {pairs:,}"
        " pairs"
    )
    for utility in ("bleu", "chrf", "wer", "cer"):
        begin = time.process_time()
        minimum_risk(nbests, Risk(utility), "made-up lists")
        ours = pairs / (time.process_time() - begin)
        said = f"{utility:4}  lmtools {ours:12,.0f} pairs a second"
        if utility in SACRE:
            theirs = sacrebleu_speed(nbests[: args.sacrebleu], utility)
            said += f"  sacrebleu {theirs:9,.0f}  {ours / theirs:6.0f} times as fast"
        print(said, flush=True)
    short = NBest(nbests[0].utt, nbests[0].hyps[:10])
    print(
        f"ter   sacrebleu {sacrebleu_speed([short], 'ter'):,.0f} pairs a second, which is what"
        " lmtools uses"
    )


def made_up(rng: random.Random, utt: str, depth: int, words: int) -> NBest:
    """A list of variants of one sentence, with scores that fall."""
    first = [word(rng) for _ in range(max(1, round(rng.gauss(words, words / 3))))]
    texts = [" ".join(variant(rng, first)).capitalize() + "." for _ in range(depth)]
    return NBest(
        utt, tuple(Hypothesis(text, {"am": -0.2 * rank}) for rank, text in enumerate(texts))
    )


def word(rng: random.Random) -> str:
    """A word of one to four syllables, short ones more often, sometimes with a comma behind."""
    syllables = min(4, 1 + int(rng.expovariate(1)))
    return "".join(rng.choice(SYLLABLES[: 20 * syllables]) for _ in range(syllables)) + "," * (
        rng.random() < 0.07
    )


def variant(rng: random.Random, words: list[str]) -> list[str]:
    """`words` with one to six of them dropped, doubled, replaced or swapped with the next."""
    words = list(words)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(words))
        pair = words[at : at + 2]
        words[at : at + 2] = rng.choice(
            [pair[1:] or pair, pair[:1] + pair, [word(rng), *pair[1:]], pair[::-1]]
        )
    return words


def sacrebleu_speed(nbests: list[NBest], utility: str) -> float:
    """Pairs a second of sacrebleu's sentence score; it is checked against ours on the way."""
    begin, pairs = time.process_time(), 0
    scores = []
    for nbest in nbests:
        for hyp, ref in product(nbest.hyps, repeat=2):
            scores.append(SACRE[utility](hyp.text, [ref.text]).score)
            pairs += 1
    seconds = time.process_time() - begin
    check(nbests[0], utility, scores[: len(nbests[0].hyps) ** 2])
    return pairs / seconds


def check(nbest: NBest, utility: str, scores: list[float]) -> None:
    """Stop unless the means over the references are ours."""
    depth = len(nbest.hyps)
    sign = -1 if METRICS[utility].lower_is_better else 1
    wanted = [sign * math.fsum(scores[at : at + depth]) / depth for at in range(0, depth**2, depth)]
    found = minimum_risk([nbest], Risk(utility, scale=0), "made-up list").log_prob[nbest.utt]
    if any(
        not math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
        for a, b in zip(wanted, found, strict=True)
    ):
        raise SystemExit(f"{utility}: lmtools and sacrebleu differ")


if __name__ == "__main__":
    main()
