"""The values that all of the house passes around: small, frozen, torch-free."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

EMPTY: Mapping = MappingProxyType({})


@dataclass(frozen=True)
class Hypothesis:
    """One transcription or translation with its named first-pass scores (natural log, higher is better)."""

    text: str
    scores: Mapping[str, float] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True)
class NBest:
    """The hypotheses of one utterance, best first pass first; `ref` is None where no reference is known (an empty one is '')."""

    utt: str
    hyps: tuple[Hypothesis, ...]
    ref: str | None = None


@dataclass(frozen=True)
class ScoreTable:
    """One language model's score of every hypothesis of a set.

    log_prob[utt] and tokens[utt] have shape (hypotheses,): natural-log probability with the end of sentence counted, and the
    number of tokens it sums over. `signature` says what made it (model hash, vocabulary hash, precision, version).
    """

    log_prob: Mapping[str, np.ndarray]
    tokens: Mapping[str, np.ndarray]
    signature: Mapping[str, str] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True)
class SentencePair:
    """Two sentences and how similar people found them."""

    left: str
    right: str
    similarity: float | None = None


@dataclass(frozen=True)
class Arc:
    """A lattice arc from state `source` to `target`; `word` None is epsilon; scores are natural logs, unscaled, higher is better."""

    source: int
    target: int
    word: str | None
    scores: Mapping[str, float] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True)
class Lattice:
    """A word lattice: states 0 .. states-1, arcs, final states with the scores paid on ending there."""

    utt: str
    states: int
    start: int
    arcs: tuple[Arc, ...]
    finals: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
