"""Which positions are predicted from what; any model and criterion go with each.

An objective turns sentences of token ids (without boundary tokens) into Examples. Training and
scoring differ only for the masked objective, which scores each token in a pass of its own.
`boundary` is the number of boundary tokens in the input, `ends` are those that are predicted, one
each a sentence. An objective is made with what a spelled vocabulary predicts (`words`), which only
TwoWay needs.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from lmtools.base.errors import UserError
from lmtools.text.subword import BOS, EOS, MASK, PAD, SPECIALS
from lmtools.text.subword.spelled import END, WordTargets


@dataclass(frozen=True)
class Examples:
    """Model input (B, T) right-padded with PAD, its lengths (B,), and which flattened states (N,)
    predict which targets (N,).

    Where words are spelled, the input is indices into `spellings` (U, L): the piece ids of each
    distinct word of the batch, right-padded. Of pairs, `sources` (B, S) are what the inputs are
    read with, right-padded with PAD, and `source_lengths` (B,) their lengths.
    """

    inputs: Tensor
    lengths: Tensor
    rows: Tensor
    targets: Tensor
    spellings: Tensor | None = None
    sources: Tensor | None = None
    source_lengths: Tensor | None = None

    def to(self, device) -> "Examples":
        return Examples(
            *(t if t is None else t.to(device, non_blocking=True) for t in vars(self).values())
        )

    @property
    def read(self) -> tuple[Tensor, ...]:
        """Return the inputs of a trunk's `hidden`."""
        more = self.spellings, self.sources, self.source_lengths
        return self.inputs, self.lengths, *(tensor for tensor in more if tensor is not None)


def pad_sentences(
    sentences, prefix: list[int], suffix: list[int], least: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return ids (B, T) with boundaries, right-padded to >= `least`, and true lengths (B,)."""
    lengths = np.array([len(s) + len(prefix) + len(suffix) for s in sentences])
    inputs = np.full((len(sentences), max(least, int(lengths.max()))), PAD, dtype=np.int64)
    for row, sentence, length in zip(inputs, sentences, lengths, strict=True):
        row[:length] = np.concatenate([prefix, sentence, suffix])
    return inputs, lengths


def make_examples(
    inputs: np.ndarray, lengths: np.ndarray, where: np.ndarray, targets: np.ndarray
) -> Examples:
    """Make examples that predict `targets` (B, T) where `where` (B, T) is True."""
    rows = np.flatnonzero(where)
    return Examples(*map(torch.from_numpy, (inputs, lengths, rows, targets.reshape(-1)[rows])))


class Objective(ABC):
    """Choice of the positions that are predicted, and of what predicts them; see above."""

    name: ClassVar[str]
    boundary: ClassVar[int]
    ends: ClassVar[tuple[int, ...]]
    pairs: ClassVar[bool] = False  # its sentences are pairs of source and target

    def __init__(self, words: WordTargets | None = None):
        self.words = words

    @staticmethod
    def widths(corpus) -> np.ndarray:
        """Return the lengths (sentences,) of a corpus's file for a model, without boundaries."""
        return np.asarray(corpus.lengths)

    @abstractmethod
    def training(self, sentences, generator: np.random.Generator, vocabulary: int) -> Examples:
        """Make examples of a batch; objectives that corrupt use `generator` and `vocabulary`."""

    def scoring(self, sentences) -> Examples:
        """Make examples whose targets are the tokens of each sentence in order and its EOS."""
        return self.training(sentences, None, 0)


class CausalObjective(Objective):
    """Each token and the end of sentence from what stands left of it."""

    name = "causal"
    boundary = 1  # BOS is read, EOS only predicted
    ends = (EOS,)

    def training(self, sentences, generator, vocabulary):
        return self.examples(sentences)

    @staticmethod
    def examples(sentences, least: int = 0) -> Examples:
        inputs, lengths = pad_sentences(sentences, [BOS], [], least)
        targets, _ = pad_sentences(sentences, [], [EOS], least)
        return make_examples(
            inputs, lengths, np.arange(inputs.shape[1]) < lengths[:, None], targets
        )


class Translation(Objective):
    """Each token of a target and its end from the source and what stands left of it. A pair is one
    sequence: source, EOS, target, as wide as its longer side.
    """

    name = "translation"
    boundary = 1  # EOS after the source, BOS before the target
    ends = (EOS,)
    pairs = True

    @staticmethod
    def widths(corpus) -> np.ndarray:
        """Return the number of ids of the longer side of each pair, (sentences,)."""
        sources = corpus.source_lengths
        return np.maximum(sources, np.asarray(corpus.lengths) - sources - 1)

    def training(self, sentences, generator, vocabulary):
        return self.examples(sentences)

    def scoring(self, sentences):
        """Pad both sides to the longer one: pairs of equal width have equal shapes."""
        sides = map(split_pair, sentences)
        return self.examples(sentences, 1 + max(len(side) for pair in sides for side in pair))

    @staticmethod
    def examples(sentences, least: int = 0) -> Examples:
        """Make the examples of pairs, of which both sides have at least so many positions."""
        sources, targets = zip(*map(split_pair, sentences), strict=True)
        examples = CausalObjective().examples(targets, least)
        ids, lengths = map(torch.from_numpy, pad_sentences(sources, [], [EOS], least))
        return replace(examples, sources=ids, source_lengths=lengths)


def split_pair(sentence: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the ids of source and target of a pair, out of its one sequence."""
    end = int(np.argmax(np.asarray(sentence) == EOS))
    return sentence[:end], sentence[end + 1 :]


class Autoencoding(Objective):
    """Language autoencoding (T-TA): each token, BOS and EOS from all others; EOS is scored."""

    name = "autoencoding"
    boundary = 2
    ends = (BOS, EOS)

    def training(self, sentences, generator, vocabulary):
        inputs, lengths = pad_sentences(sentences, [BOS], [EOS])
        return make_examples(inputs, lengths, np.arange(inputs.shape[1]) < lengths[:, None], inputs)

    def scoring(self, sentences):
        inputs, lengths = pad_sentences(sentences, [BOS], [EOS])
        position = np.arange(inputs.shape[1])
        return make_examples(
            inputs, lengths, (position > 0) & (position < lengths[:, None]), inputs
        )


class MaskedObjective(Objective):
    """15% of tokens from the corrupted rest: 80% become MASK, 10% a random token, 10% stay."""

    name = "masked"
    boundary = 2
    ends = (EOS,)
    share = 0.15

    def training(self, sentences, generator, vocabulary):
        original, lengths = pad_sentences(sentences, [BOS], [EOS])
        position = np.arange(original.shape[1])
        chance = np.where(
            (position > 0) & (position < lengths[:, None]), generator.random(original.shape), np.inf
        )
        chosen = chance < self.share
        # a sentence in which chance chose nothing predicts one token all the same
        best = chance.argmin(1)
        chosen[np.arange(len(chosen)), best] = True
        kind = generator.random(original.shape)
        # no special token
        noise = generator.integers(min(len(SPECIALS), vocabulary - 1), vocabulary, original.shape)
        corrupted = np.where(kind < 0.8, MASK, np.where(kind < 0.9, noise, original))
        return make_examples(np.where(chosen, corrupted, original), lengths, chosen, original)

    def scoring(self, sentences):
        return Autoencoding().scoring(sentences)


class TwoWay(Objective):
    """Each word and EOS from the words left of it, and each word and BOS from those right of it, by
    two separate halves of a model.

    The input is spelled words with BOS and EOS around them; of the states (B, 2 T) the first T are
    those of the left-to-right half. A sentence of n words has n + 1 targets from the left, then n +
    1 from the right.
    """

    name = "two-way"
    boundary = 2
    ends = (BOS, EOS)
    longest = 50  # ids of a spelling, END among them; what is longer is cut before it, as in ELMo

    def __init__(self, words: WordTargets | None = None):
        if words is None:
            raise UserError(
                "a two-way model reads spelled words; make the vocabulary of its corpora with"
                " lmtools subword --words"
            )
        super().__init__(words)

    @staticmethod
    def widths(corpus) -> np.ndarray:
        """Return the number of words of each sentence, (sentences,)."""
        begins, result = corpus.subword.begins, np.zeros(len(corpus), dtype=np.int64)
        for first in range(0, len(corpus), 1 << 16):
            offsets = np.asarray(corpus.offsets[first : first + (1 << 16) + 1])
            counts = np.concatenate([[0], np.cumsum(begins[corpus.ids[offsets[0] : offsets[-1]]])])
            result[first : first + len(offsets) - 1] = np.diff(counts[offsets - offsets[0]])
        return result

    def training(self, sentences, generator, vocabulary):
        split = [self.words.split(sentence) for sentence in sentences]
        place = {(BOS,): 0, (EOS,): 1}
        places = [
            [place.setdefault((*word[: self.longest - 1], END), len(place)) for word in words]
            for words in split
        ]
        inputs, lengths = pad_sentences(places, [0], [1])
        ids, _ = pad_sentences(
            [[self.words.id_of(word) for word in words] for words in split], [BOS], [EOS]
        )
        here, before = np.arange(ids.shape[1]), lengths[:, None] - 1
        # (B, 2 T)
        targets = np.concatenate([np.roll(ids, -1, axis=1), np.roll(ids, 1, axis=1)], axis=1)
        where = np.concatenate([here < before, (here > 0) & (here <= before)], axis=1)
        inputs[here > before] = 0  # the place of BOS; nothing reads it
        examples = make_examples(inputs, lengths, where, targets)
        spellings, _ = pad_sentences(list(place), [], [])
        return replace(examples, spellings=torch.from_numpy(spellings))


def excluded_ids(objective) -> tuple[int, ...]:
    return tuple(i for i in (PAD, EOS, BOS, MASK) if i not in objective.ends)


def count_targets(objective, corpus, size: int) -> np.ndarray:
    """Count the occurrences of each of `size` ids as a target in the sentences of a corpus, int64
    (size,); of spelled words, where their list was made; of pairs, on the target side.
    """
    counts = np.zeros(size, dtype=np.int64)
    if objective.name == TwoWay.name:
        counts += corpus.subword.words.counts
    elif objective.pairs:
        for shard in corpus.shards:
            for first in range(0, len(shard), 1 << 16):
                offsets = np.asarray(shard.offsets[first : first + (1 << 16) + 1])
                lengths = np.diff(offsets)
                begins = offsets[:-1] + shard.source_lengths[first : first + len(lengths)] + 1
                place = np.arange(offsets[0], offsets[-1])
                ids = shard.ids[offsets[0] : offsets[-1]][place >= np.repeat(begins, lengths)]
                counts += np.bincount(ids, minlength=size)
    else:
        for ids in (shard.ids for shard in corpus.shards):
            for begin in range(0, len(ids), 1 << 24):  # bincount makes a copy of what it counts
                counts += np.bincount(ids[begin : begin + (1 << 24)], minlength=size)
    counts[list(objective.ends)] += len(corpus)
    return counts


KINDS = (CausalObjective, Autoencoding, MaskedObjective, TwoWay, Translation)
OBJECTIVES = {kind.name: kind for kind in KINDS}
