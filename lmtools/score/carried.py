"""Scores of consecutive texts by a recurrent model that carries its state from each to the next."""

from collections.abc import Sequence

import numpy as np
import torch

from lmtools.device import PRECISIONS, autocast
from lmtools.errors import UserError
from lmtools.objectives import pad_sentences
from lmtools.score.base import Scorer
from lmtools.score.neural import NeuralScorer
from lmtools.score.run import TextScores, refuse_not_finite
from lmtools.subword import BOS, EOS

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
    parts = np.split(
        np.concatenate(list(chain(sentences, scorer))),
        np.cumsum([len(s) + 1 for s in sentences])[:-1],
    )
    unknown = np.array([scorer.unknown(s).sum() for s in sentences], dtype=np.int64)
    sums = np.array([part.sum() for part in parts]) - scorer.oov_penalty * unknown
    refuse_not_finite(sums, sentences, scorer.spec.lm)
    return TextScores(
        sums,
        np.array([len(part) for part in parts]),
        unknown,
        scorer.kind,
        {**scorer.signature, "carried": "yes"},
    )


@torch.inference_mode()
def chain(sentences: Sequence[tuple], scorer: NeuralScorer):
    """Yield the scores of all tokens and ends in a row, POSITIONS at a time."""
    inputs, targets = (
        np.concatenate(row)
        for row in zip(
            *((pad_sentences([s], [BOS], [])[0][0], (*s, EOS)) for s in sentences), strict=True
        )
    )
    state = None
    for begin in range(0, len(inputs), POSITIONS):
        read, gold = (
            torch.from_numpy(row[begin : begin + POSITIONS].astype(np.int64)).to(scorer.device)
            for row in (inputs, targets)
        )
        with autocast(scorer.device, scorer.precision):
            states, state = scorer.lm.trunk.carried(read[None], state)
            heads = scorer.lm.trunk.head(states[0])
        yield scorer.score(heads.to(PRECISIONS[scorer.precision]), gold).double().cpu().numpy()
