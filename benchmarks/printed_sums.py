#!/usr/bin/env python3
"""Where the sampled cross entropies that Gao et al. 2021 print could learn a model's posterior.

    python benchmarks/printed_sums.py --text test.txt exp/lm/lstm-ce-mcs

Without the target in the sum (Eqs. 9, 13, 17) a context's loss has no lower bound where a word is
more probable than its chance to be among the K ids of noise. Eq. 21 represents a context where p /
D varies by a factor of e at most; elsewhere the best that it can do is the noise with each word's
share raised or lowered within that. The noise is that of the model, K too. The text has one
sentence a line.
"""

import argparse
import math

import torch
from uncorrected import examples, states

from lmtools.base.files import read_lines
from lmtools.models.checkpoint import load_model


def best_of_eq21(p, noise):
    """The posterior (N, V) ~ noise exp(h) nearest to p, h between 0 and 1: h = log(p / noise) - a
    between these bounds, with -a the log-normaliser, which bisection finds.
    """
    ratio = (p / noise).log()
    low, high = -torch.ones(len(p), 1), torch.zeros(len(p), 1)
    for _ in range(20):
        a = (low + high) / 2
        above = a + (noise * (ratio - a).clamp(0, 1).exp()).sum(1, keepdim=True).log() > 0
        low, high = torch.where(above, low, a), torch.where(above, a, high)
    mass = noise * (ratio - low).clamp(0, 1).exp()
    return mass / mass.sum(1, keepdim=True)


@torch.inference_mode()
def main():
    """Print the shares of contexts and the perplexities."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", required=True, metavar="F")
    parser.add_argument("lm", metavar="DIR", help="of a sampled criterion")
    args = parser.parse_args()
    lm, subword = load_model(args.lm)
    used = lm.output.noise > 0
    noise, place = lm.output.noise[used], used.cumsum(0) - 1
    seen = 1 - (1 - noise.double()) ** lm.output.sampler.count
    contexts = sure = near = 0
    nats = {"the model's": 0.0, "Eq. 21's best": 0.0, "the noise": 0.0}
    for batch in examples(lm, subword, [line for _, line in read_lines(args.text)]):
        p = lm.output.distribution(states(lm, batch)).exp()[:, used]
        targets, ratio = place[batch.targets][:, None], p / noise
        contexts += len(p)
        sure += int((p > seen).any(1).sum())
        near += int((ratio.amax(1) <= math.e * ratio.amin(1)).sum())
        for name, q in zip(nats, (p, best_of_eq21(p, noise), noise.expand_as(p)), strict=True):
            nats[name] -= float(q.gather(1, targets).log().sum(dtype=torch.float64))
    print(f"{contexts:,} contexts; {sure / contexts:.2%} with a word more probable than drawn")
    print(f"{near / contexts:.2%} within a factor of e of the noise; perplexity of", end=" ")
    print(", ".join(f"{name} {math.exp(total / contexts):.2f}" for name, total in nats.items()))


if __name__ == "__main__":
    main()
