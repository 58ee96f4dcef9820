"""Tiny translation models that several tests use."""

from pathlib import Path

import numpy as np
import torch
from toys import ARCH, WORDS, settings

from lmtools.checkpoint import prepare_directory, save_weights
from lmtools.lm import LanguageModel
from lmtools.outputs.sampled import SAMPLED
from lmtools.subword import EOS, train
from lmtools.text import Normaliser


def random_translator(home, words=WORDS, criterion="softmax", factor=4, **arch) -> Path:
    """A directory of a model with random weights, large enough that scores are far from even."""
    vocabulary = train("word", [" ".join(words)], None, Normaliser(), home / "words")
    output = {"samples": 8} if criterion in SAMPLED else {}
    arch = {**ARCH["seq2seq"], **arch}
    how = settings("seq2seq", arch=arch, criterion=criterion, output=output)
    torch.manual_seed(4)
    lm = LanguageModel(how, vocabulary.size, np.arange(1, vocabulary.size + 1))
    with torch.no_grad():
        for parameter in lm.trunk.parameters():
            parameter.mul_(factor)
        lm.output.bias[EOS] += 2  # so that some hypotheses of a search end before they must
    prepare_directory(home / "lm", how, vocabulary)
    save_weights(home / "lm", lm)
    return home / "lm"
