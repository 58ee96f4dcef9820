"""What perplexity asks of neural models alone: texts that follow each other, by a recurrent model
that carries its state, and normalisers of the scores.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import torch

from lmtools.base.batching import plan_batches
from lmtools.base.errors import UserError
from lmtools.models.device import PRECISIONS, autocast
from lmtools.score.base import Scorer
from lmtools.score.neural import NeuralScorer
from lmtools.score.texts import TextScores, count_scored, one_thread, refuse_not_finite
from lmtools.text.subword import BOS, EOS

POSITIONS = 4096  # that are computed at a time


def carried_texts(texts: Sequence[str], scorer: Scorer) -> TextScores:
    """Return the scores of `texts`, which follow each other: as `score_texts`, but that each is
    read with the state that those before left.

    The first begins with a state of zeros. UserError for a model without a state that can be
    carried.
    """
    if not (isinstance(scorer, NeuralScorer) and scorer.lm.trunk.carries):
        raise UserError(
            f"{scorer.spec.lm}: has no state to carry from line to line; leave --carry out, or give"
            " a recurrent model"
        )
    sentences = scorer.prepare(texts)
    tokens, unknown = count_scored(scorer, sentences)
    values = np.concatenate(list(score_row(sentences, scorer)))
    sums = np.array([part.sum() for part in np.split(values, np.cumsum(tokens)[:-1])])
    sums -= scorer.oov_penalty * unknown
    refuse_not_finite(sums, sentences, scorer.spec.lm)
    signature = {**scorer.signature, "carried": "yes"}
    return TextScores(sums, tokens, unknown, kind=scorer.kind, signature=signature)


@torch.inference_mode()
def score_row(sentences: Sequence[tuple], scorer: NeuralScorer) -> Iterator[np.ndarray]:
    """Yield the scores of all tokens and ends in a row, POSITIONS at a time."""
    inputs, targets = (
        torch.tensor(list(chain.from_iterable(row))).split(POSITIONS)
        for row in ([(BOS, *s) for s in sentences], [(*s, EOS) for s in sentences])
    )
    state = None
    for read, gold in zip(inputs, targets, strict=True):
        with autocast(scorer.device, scorer.precision):
            states, state = scorer.lm.trunk.carried(read[None].to(scorer.device), state)
            heads = scorer.lm.trunk.head(states[0]).to(PRECISIONS[scorer.precision])
        yield scorer.score(heads, gold.to(scorer.device)).double().cpu().numpy()


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
