"""Hypotheses a second of processor time by large language models, which take turns: the first
hypotheses of lists, each model on all of them, --turns times. A server's own time is not counted.
"""

import argparse
import json
import resource
import statistics

import numpy as np

from lmtools import read
from lmtools.base.computing import Computing
from lmtools.base.errors import exit_with_message
from lmtools.score import load, score_texts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nbest", required=True)
    parser.add_argument("--lm", action="append", required=True)
    parser.add_argument("--hypotheses", type=int, default=60)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    texts = [hyp.text for nbest in read(args.nbest) for hyp in nbest.hyps[:10]]
    texts = list(dict.fromkeys(texts))[: args.hypotheses]
    computing = Computing("cpu", cache="none")
    models = {lm: load(lm, computing) for lm in args.lm}
    speeds: dict[str, list[float]] = {lm: [] for lm in models}
    sums: dict[str, np.ndarray] = {}
    for _ in range(args.turns):
        for lm, model in models.items():
            before = spent()
            sums[lm] = score_texts(texts, model, computing).log_prob
            speeds[lm].append(len(texts) / (spent() - before))
    first = next(iter(sums.values()))
    for lm, each in speeds.items():
        row = {"lm": lm, "hypotheses": len(texts), "per_second": statistics.median(each)}
        row |= {"turns": each, "most_nats_from_first": float(np.abs(sums[lm] - first).max())}
        print(json.dumps(row))


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    with exit_with_message():
        main()
