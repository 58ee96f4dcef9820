"""Sentence vectors of any number of texts, in input order: each distinct sentence once, batched by length, cached."""

import contextlib
from collections.abc import Sequence

import numpy as np
from tqdm import tqdm

from lmtools.embed.encoders import Encoder
from lmtools.score.cache import VECTORS, Cache
from lmtools.score.planner import batches, within_memory
from lmtools.score.texts import distinct

KEPT = 64  # batches that are computed before they go to the cache together


def encode(texts: Sequence[str], encoder: Encoder, cache=None, rows: int = 4096) -> np.ndarray:
    """The vectors of `texts`, float32 (N, layers, D); equal texts have equal ones.

    `cache`: a directory that keeps vectors between runs, None for none. `rows`: model rows a batch, halved where they do not fit.
    """
    sentences, which = distinct(texts, encoder.prepare)
    signature = encoder.signature | {"layers": ",".join(map(str, encoder.layers))}
    with contextlib.closing(Cache(cache, signature, VECTORS)) as store:
        known = {i: value.reshape(len(encoder.layers), -1) for i, value in store.get(sentences).items()}
        missing = [i for i in range(len(sentences)) if i not in known]
        plan = [[missing[i] for i in batch] for batch in batches([encoder.cost(sentences[i]) for i in missing], rows)]
        fresh: dict[int, np.ndarray] = {}
        for number, batch in enumerate(tqdm(plan, desc=f"embed {encoder.signature['lm']}", unit="batch", disable=None), 1):
            made = within_memory(lambda some: list(encoder.vectors(some)), [sentences[i] for i in batch])
            fresh |= zip(batch, made, strict=True)
            if number % KEPT == 0 or number == len(plan):
                store.put((sentences[i], value) for i, value in fresh.items())
                known |= fresh
                fresh = {}
    return np.stack([known[i] for i in range(len(sentences))])[which] if len(which) else np.empty((0, len(encoder.layers), 0), np.float32)
