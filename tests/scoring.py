"""Language models as tests load them: options of the specification and of the computation by
name.
"""

import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lmtools.base.computing import Computing
from lmtools.base.options import fill
from lmtools.base.specs import LMSpec
from lmtools.score import load
from lmtools.score.base import Scorer
from lmtools.score.ngram import NgramScorer
from lmtools.score.texts import score_texts

CPU = Computing("cpu", cache="none")


class Asked(NamedTuple):
    """A specification and the options of the computation, as functions take them in a row."""

    spec: LMSpec
    computing: Computing

    def change(self, **options) -> "Asked":
        """Return the same with other options of the computation."""
        return self._replace(computing=replace(self.computing, **options))


def ask(lm, **options) -> Asked:
    """Make both of options by name; nothing is cached unless they say so."""
    computing = fill(Computing, {"cache": "none"} | options)
    rest = {name: value for name, value in options.items() if name not in vars(computing)}
    return Asked(LMSpec(str(lm), **rest), computing)


def load_scorer(lm, device="cpu", precision="float32", **options) -> Scorer:
    return load(*ask(lm, device=device, precision=precision, **options))


def make_scorer(kind: type, *model, **options) -> Scorer:
    """Make a scorer of a kind, as a neural one of a model, vocabulary and hash."""
    asked = ask("-", **{"device": "cpu"} | options)
    return kind(*model, asked.spec) if kind is NgramScorer else kind(*model, *asked)


def walk(prefixes, words) -> list[float]:
    """Return log p of each of some words after those before, and of the end of sentence."""
    node, scores = np.array([prefixes.start]), []
    for word in words:
        (log_p,), node = prefixes.words(node, [word])
        scores.append(float(log_p))
    return [*scores, float(prefixes.end(node)[0])]


def score_sentences(sentences, scorer, computing, cache) -> np.ndarray:
    """The log-probabilities of distinct prepared sentences, as `score_texts` computes them."""
    given = copy.copy(scorer)
    given.prepare = list
    return score_texts(sentences, given, computing, cache).log_prob
