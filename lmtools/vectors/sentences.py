"""Sentence vectors of any number of texts, in input order: each distinct sentence once, batched by
length, cached.
"""

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from lmtools.base.batching import prepare_distinct
from lmtools.score.batches import run_batches
from lmtools.score.cache import VECTORS, Cache
from lmtools.score.texts import compute_missing
from lmtools.vectors.base import Encoder


def encode(texts: Sequence[str], encoder: Encoder, cache=None) -> np.ndarray:
    """Return the vectors of `texts`, float32 (N, layers, D); equal texts have equal ones, whatever
    else is in the list (on a CPU; see lmtools.score.batches).

    `cache`: a directory that keeps vectors between runs, None for none.
    """

    def compute(work: list[list]) -> Iterator[tuple[int, list[np.ndarray]]]:
        return enumerate(run_batches(encoder, work, lambda part: list(encoder.vectors(part))))

    sentences, which = prepare_distinct(texts, encoder.prepare)
    signature = encoder.signature | {"layers": ",".join(map(str, encoder.layers))}
    with contextlib.closing(Cache(cache, signature, VECTORS)) as store:
        label = f"embed {encoder.signature['lm']}"
        vectors = compute_missing(sentences, encoder, store, compute, label=label)
    if not vectors:
        return np.empty((0, len(encoder.layers), 0), np.float32)
    return np.stack([vector.reshape(len(encoder.layers), -1) for vector in vectors])[which]
