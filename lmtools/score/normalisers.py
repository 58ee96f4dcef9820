"""Normalisers of the scores of a neural model over texts."""

from collections.abc import Sequence

import numpy as np

from lmtools.base.batching import plan_batches
from lmtools.score.batches import one_thread
from lmtools.score.neural import NeuralScorer

# texts whose normalisers are looked at: their scores may be known already, and log Z costs a pass
# of its own
SAMPLE = 300


def measure_log_normaliser(texts: Sequence[str], scorer: NeuralScorer) -> dict[str, float]:
    """Return mean, standard deviation, least and greatest log Z over the tokens and ends of at most
    SAMPLE texts, evenly taken from all.
    """
    sentences = scorer.prepare(texts[:: -(-len(texts) // SAMPLE)])
    parts = []
    with one_thread():
        costs = [scorer.cost(sentence) for sentence in sentences]
        for batch in plan_batches(costs, scorer.rows, scorer.ragged):
            parts += scorer.compute(
                [sentences[i] for i in batch], lambda heads, _: scorer.output.log_normaliser(heads)
            )
    values = np.concatenate(parts)
    measures = {"mean": values.mean, "sd": values.std, "min": values.min, "max": values.max}
    return {name: float(measure()) for name, measure in measures.items()}
