"""Small random models of several families and the scores that each engine gives them."""

import numpy as np
import pytest
import torch
from scoring import CPU as ON_CPU
from scoring import make_scorer, score_sentences

from lmtools.models.device import cpu_multiplies_bfloat16
from lmtools.models.engine import multiplies_int8
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Settings
from lmtools.score.neural import NeuralScorer
from lmtools.score.texts import open_cache

SIZE, CPU = 2500, torch.device("cpu")  # more ids than a block of the output matrix has
ARCH = {"layers": 2, "dim": 64, "heads": 2, "ffn": 128, "positions": 32}
MODELS = {
    "causal": ("causal", ARCH),
    "pre": ("causal", ARCH | {"norm": "pre", "position": "none"}),
    "tta": ("autoencoding", ARCH),
    "masked": ("masked", ARCH),
    "lstm": ("causal", {"layers": 1, "dim": 32, "units": 64}),
}
with_int8 = pytest.mark.skipif(not multiplies_int8(), reason="no AVX2 or VNNI instructions")
native = pytest.mark.skipif(not cpu_multiplies_bfloat16(), reason="no bfloat16 instructions")


class Ids:
    """A vocabulary of ids."""

    hash = "0" * 64


def model(name: str, criterion: str = "softmax") -> LanguageModel:
    """A random model whose scores differ from sentence to sentence."""
    torch.manual_seed(0)
    objective, arch = MODELS[name]
    family = "causal" if name == "pre" else name
    lm = LanguageModel(Settings(family, objective, criterion, arch=arch), SIZE)
    for parameter in lm.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    return lm


def scorer(name, precision, engine, criterion="softmax", **more) -> NeuralScorer:
    options = {"precision": precision, "engine": engine} | more
    return make_scorer(NeuralScorer, model(name, criterion), Ids(), "0" * 16, **options)


def scores(one: NeuralScorer) -> np.ndarray:
    rng = np.random.default_rng(1)
    sentences = [tuple(rng.integers(5, SIZE, length).tolist()) for length in (1, 3, 8, 8, 20, 29)]
    return score_sentences(sentences, one, ON_CPU, open_cache(one, ON_CPU))
