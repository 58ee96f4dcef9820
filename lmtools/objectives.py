"""Which positions are predicted from what, apart from the model and the criterion, so that any pair works.

An objective turns sentences of token ids (without boundary tokens) into Examples. Training and scoring differ only for the masked
objective, which scores each token in a pass of its own. `boundary` is the number of boundary tokens in the input, `ends` are those that
are predicted, one each a sentence.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lmtools.subword import BOS, EOS, MASK, PAD, SPECIALS


@dataclass(frozen=True)
class Examples:
    """Model input (B, T) right-padded with PAD, its lengths (B,), and which flattened positions (N,) predict which targets (N,)."""

    inputs: Tensor
    lengths: Tensor
    rows: Tensor
    targets: Tensor

    def to(self, device) -> "Examples":
        """The same on another device."""
        return Examples(*(getattr(self, name).to(device, non_blocking=True) for name in ("inputs", "lengths", "rows", "targets")))


def padded(sentences, prefix: list[int], suffix: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Ids (B, T) with boundary tokens, right-padded, and the true lengths (B,)."""
    lengths = np.array([len(s) + len(prefix) + len(suffix) for s in sentences])
    inputs = np.full((len(sentences), int(lengths.max())), PAD, dtype=np.int64)
    for row, sentence, length in zip(inputs, sentences, lengths, strict=True):
        row[:length] = np.concatenate([prefix, sentence, suffix])
    return inputs, lengths


def examples(inputs: np.ndarray, lengths: np.ndarray, where: np.ndarray, targets: np.ndarray) -> Examples:
    """Examples that predict `targets` (B, T) where `where` (B, T) is True."""
    rows = np.flatnonzero(where)
    return Examples(*map(torch.from_numpy, (inputs, lengths, rows, targets.reshape(-1)[rows])))


class CausalObjective:
    """Each token and the end of sentence from what stands left of it."""

    name = "causal"
    boundary = 1  # BOS is read, EOS only predicted
    ends = (EOS,)

    def training(self, sentences, generator: np.random.Generator, vocabulary: int) -> Examples:
        """Examples of a batch; `generator` and `vocabulary` are for objectives that corrupt their input."""
        inputs, lengths = padded(sentences, [BOS], [])
        targets, _ = padded(sentences, [], [EOS])
        return examples(inputs, lengths, np.arange(inputs.shape[1]) < lengths[:, None], targets)

    def scoring(self, sentences) -> Examples:
        """Examples whose targets are the tokens of each sentence in order and its EOS."""
        return self.training(sentences, None, 0)


class Autoencoding:
    """Language autoencoding (T-TA): each token, BOS and EOS from all the others; scoring counts the tokens and EOS."""

    name = "autoencoding"
    boundary = 2
    ends = (BOS, EOS)

    def training(self, sentences, generator: np.random.Generator, vocabulary: int) -> Examples:
        inputs, lengths = padded(sentences, [BOS], [EOS])
        return examples(inputs, lengths, np.arange(inputs.shape[1]) < lengths[:, None], inputs)

    def scoring(self, sentences) -> Examples:
        inputs, lengths = padded(sentences, [BOS], [EOS])
        position = np.arange(inputs.shape[1])
        return examples(inputs, lengths, (position > 0) & (position < lengths[:, None]), inputs)


class MaskedObjective:
    """Masked language modelling: 15% of the tokens from the corrupted rest; of these 80% become MASK, 10% a random token, 10% stay."""

    name = "masked"
    boundary = 2
    ends = (EOS,)
    share = 0.15

    def training(self, sentences, generator: np.random.Generator, vocabulary: int) -> Examples:
        original, lengths = padded(sentences, [BOS], [EOS])
        position = np.arange(original.shape[1])
        chance = np.where((position > 0) & (position < lengths[:, None]), generator.random(original.shape), np.inf)
        chosen = chance < self.share
        best = chance.argmin(1)  # a sentence in which chance chose nothing predicts one token all the same
        chosen[np.arange(len(chosen)), best] = True
        kind = generator.random(original.shape)
        noise = generator.integers(min(len(SPECIALS), vocabulary - 1), vocabulary, original.shape)  # no special token
        corrupted = np.where(kind < 0.8, MASK, np.where(kind < 0.9, noise, original))
        return examples(np.where(chosen, corrupted, original), lengths, chosen, original)

    def scoring(self, sentences) -> Examples:
        return Autoencoding().scoring(sentences)


def never(objective) -> tuple[int, ...]:
    """The special ids that an objective never predicts."""
    return tuple(i for i in (PAD, EOS, BOS, MASK) if i not in objective.ends)


def target_counts(objective, corpus, size: int) -> np.ndarray:
    """How often each of `size` ids is a target in the sentences of a corpus, int64 (size,)."""
    counts = np.zeros(size, dtype=np.int64)
    for begin in range(0, len(corpus.ids), 1 << 24):  # bincount makes a copy of what it counts
        counts += np.bincount(corpus.ids[begin : begin + (1 << 24)], minlength=size)
    counts[list(objective.ends)] += len(corpus)
    return counts


OBJECTIVES = {kind.name: kind for kind in (CausalObjective, Autoencoding, MaskedObjective)}
