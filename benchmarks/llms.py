"""Hypotheses a second of processor time by large language models, which take turns: the first
hypotheses of lists, each model on all of them, --turns times. A server's own time is not counted.
`--lm plain:DIR`: transformers as its users call it, batches of 8 and all logits, in float32.
`--lm NAME/precision=P`: any other one in precision P (bfloat16, int8).
"""

import argparse
import json
import resource
import statistics
from collections.abc import Callable, Sequence

import numpy as np
import torch
import transformers

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
    models = {lm: open_scorer(lm) for lm in args.lm}
    speeds: dict[str, list[float]] = {lm: [] for lm in models}
    sums: dict[str, np.ndarray] = {}
    for _ in range(args.turns):
        for lm, score in models.items():
            before = spent()
            sums[lm] = score(texts)
            speeds[lm].append(len(texts) / (spent() - before))
    first = next(iter(sums.values()))
    for lm, each in speeds.items():
        row = {"lm": lm, "hypotheses": len(texts), "per_second": statistics.median(each)}
        row |= {"turns": each, "most_nats_from_first": float(np.abs(sums[lm] - first).max())}
        print(json.dumps(row))


def open_scorer(lm: str) -> Callable[[Sequence[str]], np.ndarray]:
    """Return what gives log p of each text, in nats."""
    if lm.startswith("plain:"):
        return open_plain(lm.removeprefix("plain:"))
    name, _, precision = lm.partition("/precision=")
    computing = Computing("cpu", cache="none", precision=precision or "float32")
    model = load(name, computing)
    return lambda texts: score_texts(texts, model, computing).log_prob


def open_plain(directory: str) -> Callable[[Sequence[str]], np.ndarray]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    tokenizer.padding_side = "right"
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()

    @torch.inference_mode()
    def score(texts: Sequence[str]) -> np.ndarray:
        sums = []
        ends = [tokenizer.bos_token + text + tokenizer.eos_token for text in texts]
        for first in range(0, len(ends), 8):
            batch = tokenizer(
                ends[first : first + 8], return_tensors="pt", padding=True, add_special_tokens=False
            )
            logits = model(**batch).logits[:, :-1].log_softmax(-1)
            picked = logits.gather(-1, batch.input_ids[:, 1:, None])[..., 0]
            sums.append((picked * batch.attention_mask[:, 1:]).sum(-1).numpy())
        return np.concatenate(sums)

    return score


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    with exit_with_message():
        main()
