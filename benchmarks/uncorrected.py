#!/usr/bin/env python3
"""Perplexity of sampled criteria with and without their posterior corrections, and what is
predicted for the latter.

    python benchmarks/uncorrected.py --reference exp/lm/lstm-softmax --text test.txt
    exp/lm/lstm-bce-mcs exp/lm/lstm-ce-is ...

A criterion's raw output q (s(z) of binary, exp(z) of plain cross entropy and NCE) is normalised
over the vocabulary as if it were the posterior. What it should be comes from another model, trained
with full cross entropy: its posterior p put through the criterion's optimum (Gao et al. 2021, Eqs.
8-22). Directories are those of `lmtools train`; the text has one sentence a line.
"""

import argparse
import math

import torch
from torch.nn import functional as F

from lmtools.base.files import read_lines
from lmtools.models.checkpoint import load_model
from lmtools.models.outputs.sampled import SAMPLED

SENTENCES = 16  # at a time: the whole distribution of each of their positions is held


def examples(lm, subword, lines):
    """Batches of the text's sentences."""
    sentences = [ids for ids in subword.encode_batch(lines) if ids and len(ids) <= lm.longest]
    for begin in range(0, len(sentences), SENTENCES):
        yield lm.objective.scoring(sentences[begin : begin + SENTENCES])


def states(lm, batch):
    """The states (N, D) that predict the targets."""
    return lm.trunk.head(lm.trunk.hidden(batch.inputs, batch.lengths).flatten(0, 1)[batch.rows])


def raw(criterion, output, some):
    """log q (N, V) of a criterion's uncorrected output."""
    z = F.linear(some, output.weight, output.bias)
    return F.logsigmoid(z) if criterion in ("bce-mcs", "bce-is", "bce-cps") else z


def predicted(criterion, output, log_p):
    """log q (N, V) that the criterion makes of a posterior."""
    expected = output.log_expected().float()
    rival = {
        "bce-mcs": expected,
        "bce-is": 0 * expected,
        "bce-cps": expected + output.inflation.log(),
    }
    if criterion in rival:
        return log_p - torch.logaddexp(log_p, rival[criterion])
    return log_p - expected if criterion in ("ce-mcs", "ce-cps") else log_p


def perplexity(log_q, targets, output):
    """Summed -log q of the targets, normalised over the ids that are ever predicted."""
    log_q = log_q.masked_fill(output.noise == 0, -math.inf).log_softmax(-1)
    return -float(log_q.gather(1, targets[:, None]).sum(dtype=torch.float64))


@torch.inference_mode()
def main():
    """Print one line a model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", required=True, metavar="DIR")
    parser.add_argument("--text", required=True, metavar="F")
    parser.add_argument("lms", nargs="+", metavar="DIR")
    args = parser.parse_args()
    lines = [line for _, line in read_lines(args.text)]
    reference, subword = load_model(args.reference)
    print(
        f"{'criterion':12} {'corrected':>10} {'uncorrected':>12} {'predicted':>10}   perplexity of"
        f" {args.text}"
    )
    for directory in args.lms:
        lm, own = load_model(directory)
        criterion = lm.settings.criterion
        if criterion not in SAMPLED or own.hash != subword.hash:
            parser.error(
                f"{directory}: not a sampled criterion, or another vocabulary than {args.reference}"
            )
        sums, count = [0.0, 0.0, 0.0], 0
        for batch in examples(lm, subword, lines):
            some = states(lm, batch)
            log_p = reference.output.distribution(states(reference, batch))
            kinds = (
                lm.output.distribution(some),
                raw(criterion, lm.output, some),
                predicted(criterion, lm.output, log_p),
            )
            for i, log_q in enumerate(kinds):
                sums[i] += perplexity(log_q, batch.targets, lm.output)
            count += len(batch.targets)
        figures = [math.exp(total / count) for total in sums]
        print(
            f"{criterion:12} {figures[0]:10.1f} {figures[1]:12.1f} {figures[2]:10.1f}", flush=True
        )


if __name__ == "__main__":
    main()
