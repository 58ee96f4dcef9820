"""Sentence vectors of any number of texts, in input order: each distinct sentence once, batched by
length, cached.
"""

import contextlib
from collections.abc import Sequence

import numpy as np

from lmtools.base.batching import prepare_distinct
from lmtools.score.cache import VECTORS, Cache
from lmtools.score.texts import Missing, run_batches
from lmtools.vectors.base import Encoder


def encode(texts: Sequence[str], encoder: Encoder, cache=None) -> np.ndarray:
    """Return the vectors of `texts`, float32 (N, layers, D); equal texts have equal ones, whatever
    else is in the list (on a CPU; see lmtools.score.texts).

    `cache`: a directory that keeps vectors between runs, None for none.
    """
    sentences, which = prepare_distinct(texts, encoder.prepare)
    signature = encoder.signature | {"layers": ",".join(map(str, encoder.layers))}
    with contextlib.closing(Cache(cache, signature, VECTORS)) as store:
        missing = Missing(sentences, encoder, store)
        work = missing.work
        with missing.progress(f"embed {encoder.signature['lm']}"):
            for number, vectors in enumerate(
                run_batches(encoder, work, lambda part: list(encoder.vectors(part)))
            ):
                missing.keep(number, vectors)
    if not sentences:
        return np.empty((0, len(encoder.layers), 0), np.float32)
    values = [missing.values[i].reshape(len(encoder.layers), -1) for i in range(len(sentences))]
    return np.stack(values)[which]
