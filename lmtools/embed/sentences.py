"""Sentence vectors of any number of texts, in input order: each distinct sentence once, batched by
length, cached.
"""

import contextlib
from collections.abc import Sequence

import numpy as np
from tqdm import tqdm

from lmtools.embed.base import Encoder
from lmtools.score.cache import VECTORS, Cache
from lmtools.score.planner import compute_all, full_batch_size, plan_batches, within_memory
from lmtools.score.texts import distinct

KEPT = 64  # batches that are computed before they go to the cache together


def encode(texts: Sequence[str], encoder: Encoder, cache=None) -> np.ndarray:
    """The vectors of `texts`, float32 (N, layers, D); equal texts have equal ones, whatever else is
    in the list (on a CPU; see lmtools.score.planner).

    `cache`: a directory that keeps vectors between runs, None for none.
    """
    sentences, which = distinct(texts, encoder.prepare)
    signature = encoder.signature | {"layers": ",".join(map(str, encoder.layers))}
    with contextlib.closing(Cache(cache, signature, VECTORS)) as store:
        known = {
            i: value.reshape(len(encoder.layers), -1) for i, value in store.get(sentences).items()
        }
        missing = [i for i in range(len(sentences)) if i not in known]
        plan = [
            [missing[i] for i in batch]
            for batch in plan_batches([encoder.cost(sentences[i]) for i in missing], encoder.rows)
        ]
        fresh: dict[int, np.ndarray] = {}

        def compute(batch: list[int]) -> list[np.ndarray]:
            some = [sentences[i] for i in batch]
            return within_memory(
                lambda each: list(encoder.vectors(each)), some, full_batch_size(encoder, some)
            )

        bar = tqdm(plan, desc=f"embed {encoder.signature['lm']}", unit="batch", disable=None)
        for number, (batch, made) in enumerate(
            zip(bar, compute_all(encoder, plan, compute), strict=True), 1
        ):
            fresh |= zip(batch, made, strict=True)
            if number % KEPT == 0 or number == len(plan):
                store.put((sentences[i], value) for i, value in fresh.items())
                known |= fresh
                fresh = {}
    return (
        np.stack([known[i] for i in range(len(sentences))])[which]
        if len(which)
        else np.empty((0, len(encoder.layers), 0), np.float32)
    )
