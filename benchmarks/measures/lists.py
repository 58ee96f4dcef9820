"""Speed of language models of any kind on N-best lists, scored as by `lmtools score` without its
cache: each distinct hypothesis once, in batches.
"""

import statistics
from collections.abc import Mapping, Sequence
from functools import partial

import torch

from lmtools.base.computing import Computing
from lmtools.score.base import Scorer
from lmtools.score.texts import score_texts
from lmtools.types import NBest
from measures.machine import describe_machine, stopwatch


def take_hypotheses(nbests: Sequence[NBest], count: int) -> list[str]:
    """Return the hypotheses of the first lists that have so many together, or of all."""
    texts: list[str] = []
    for nbest in nbests:
        if len(texts) >= count:
            break
        texts += [hyp.text for hyp in nbest.hyps]
    return texts


def bench_lists(
    scorers: Mapping[str, Scorer], texts: Sequence[str], repeats: int, device: torch.device
) -> dict:
    """Measure hypotheses a second of each model on `texts`; the models take turns, so that noise
    meets all alike, and the first turn only warms up.
    """
    seconds: dict[str, list[float]] = {name: [] for name in scorers}
    tokens = {}
    for turn in range(repeats + 1):
        for name, scorer in scorers.items():
            work = partial(score_texts, texts, scorer, Computing(cache="none"))
            spent = stopwatch(lambda name=name, work=work: tokens.update({name: work()}), device)
            if turn:
                seconds[name].append(spent)
    rows = [
        {
            "lm": name,
            "hypotheses_per_second": len(texts) / statistics.median(spent),
            "tokens": int(tokens[name].tokens.sum()),
            "seconds": spent,
            "model": scorers[name].signature,
        }
        for name, spent in seconds.items()
    ]
    return {
        "rows": rows, "hypotheses": len(texts), "distinct": len(set(texts)), "repeats": repeats,
        "machine": describe_machine(device), "threads": torch.get_num_threads(),
    }  # fmt: skip
