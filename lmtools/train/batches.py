"""Which sentences go into a batch together, as a function of (lengths, seed, epoch) alone, so that
a resumed run sees the same.
"""

import functools
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lmtools.base.batching import cut_batches
from lmtools.base.errors import UserError
from lmtools.models.lm import LanguageModel
from lmtools.models.objectives import Examples
from lmtools.models.settings import Batch
from lmtools.text.corpus import Corpus, CorpusFile
from lmtools.text.subword.spelled import SampledCuts
from lmtools.train.parallel import World, take_share


class Segments:
    """A corpus file's sentences, those longer than `longest` tokens in pieces. `widths`
    (sentences,): lengths for the model, which are not cut. Wider `pairs` are left out. `too_long`:
    how many are cut or left out.
    """

    def __init__(
        self, corpus: CorpusFile, longest: int, widths: np.ndarray | None = None, pairs=False
    ):
        self.corpus = corpus
        lengths = np.asarray(corpus.lengths)
        if pairs:
            self.sentence = np.flatnonzero(widths <= longest)
            self.begin, self.lengths = np.zeros_like(self.sentence), lengths[self.sentence]
            self.widths = widths[self.sentence]
            self.too_long = len(lengths) - len(self.sentence)
            return
        pieces = np.maximum(1, -(-lengths // longest))
        self.sentence = np.repeat(np.arange(len(lengths)), pieces)
        first = np.cumsum(pieces) - pieces
        self.begin = (np.arange(len(self.sentence)) - first[self.sentence]) * longest
        self.lengths = np.minimum(longest, lengths[self.sentence] - self.begin)
        self.too_long = np.count_nonzero(pieces > 1)
        whole = widths is not None and len(self.sentence) == len(lengths)
        self.widths = np.asarray(widths) if whole else self.lengths

    def __len__(self) -> int:
        return len(self.sentence)

    def batch(self, indices: np.ndarray) -> list[np.ndarray]:
        return [
            self.corpus[int(self.sentence[i])][self.begin[i] : self.begin[i] + self.lengths[i]]
            for i in indices
        ]


class Chosen(NamedTuple):
    """The batch of a step: the segments at `indices` (N,)."""

    segments: Segments
    indices: np.ndarray


class Sentences:
    """Batches of whole sentences for a model; `world` shares each among processes.

    A batch is of one shard of the corpus, and each epoch goes from shard to shard in an order of
    its own, so that memory holds what one shard needs.
    """

    measure = "validation loss"

    def __init__(self, corpus: Corpus, batch: Batch, seed: int, world: World, lm: LanguageModel):
        if not len(corpus):
            raise UserError(f"{corpus.path}: the corpus has no sentences; give text")
        self.shards, self.longest, self.widths = corpus.shards, lm.longest, lm.objective.widths
        self.batch, self.seed, self.world, self.boundary = batch, seed, world, lm.objective.boundary
        self.pairs = lm.objective.pairs
        self.cuts: SampledCuts | None = None
        # the last of each is held
        self.segments = functools.lru_cache(1)(self.take_segments)
        self.plan = functools.lru_cache(1)(self.make_plan)
        # batches of each shard, the same in every epoch
        self.too_long = 0
        self.counts = np.array([self.count(number) for number in range(len(self.shards))])
        self.per_epoch = int(self.counts.sum())

    def take_segments(self, number: int) -> Segments:
        shard = self.shards[number]
        return Segments(shard, self.longest, self.widths(shard), self.pairs)

    def count(self, number: int) -> int:
        widths = np.sort(self.segments(number).widths)
        self.too_long += self.segments(number).too_long
        if not len(widths):
            raise UserError(
                f"{self.shards[number].path}: no pair fits the model's"
                f" {self.longest + self.boundary} positions; give shorter ones or raise"
                " arch.positions"
            )
        return len(cut_lengths(widths, self.batch, self.boundary)) + 1

    def make_plan(self, epoch: int, number: int) -> list[np.ndarray]:
        widths = self.segments(number).widths
        numbers = self.seed, epoch, *([number] if len(self.shards) > 1 else [])
        return plan_epoch(widths, self.batch, self.boundary, *numbers)

    def at(self, step: int) -> Chosen:
        epoch, index = divmod(step, self.per_epoch)
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.shards))
        ends = np.cumsum(self.counts[order])
        turn = int(np.searchsorted(ends, index, side="right"))
        number = int(order[turn])
        batches = self.plan(epoch, number)
        return Chosen(self.segments(number), batches[index - int(ends[turn])])

    def tokens(self, chosen: Chosen) -> int:
        """Return the tokens of a batch (spelled: words; pairs: those of the longer side)."""
        return int(chosen.segments.widths[chosen.indices].sum())

    def parts(
        self, lm: LanguageModel, chosen: Chosen, generator: np.random.Generator
    ) -> list[tuple[Examples, int]]:
        """Return this process's share of a batch in the parts that go through the model one after
        the other, none of them empty, and the number of targets of each.
        """
        sentences = chosen.segments.batch(chosen.indices)
        if self.cuts:
            sentences = [self.cuts.draw(sentence, generator) for sentence in sentences]
        share = self.world.share(lm.objective.training(sentences, generator, lm.size))
        count = lm.settings.accumulate
        parts = [take_share(share, number, count) for number in range(count)]
        return [(part, len(part.targets)) for part in parts if len(part.targets)]

    def loss(self, lm: LanguageModel, part: Examples, device: torch.device) -> Tensor:
        """Return the summed loss of a part."""
        return lm(part.to(device))[0]

    def place(self, step: int) -> str:
        segments, indices = self.at(step)
        sentences = ", ".join(str(int(segments.sentence[i]) + 1) for i in indices[:8])
        more = " ..." if len(indices) > 8 else ""
        shard = f" of {segments.corpus.path.name}" if len(self.shards) > 1 else ""
        return f"sentences {sentences}{more}{shard}"


def plan_epoch(
    lengths: np.ndarray, batch: Batch, boundary: int, seed: int, epoch: int, *shard: int
) -> list[np.ndarray]:
    """Return an epoch's batches, arrays of indices; equal lengths together, the rest drawn anew."""
    generator = np.random.default_rng([seed, epoch, *shard])
    order = np.lexsort((generator.random(len(lengths)), lengths))
    batches = np.split(order, cut_lengths(lengths[order], batch, boundary))
    return [batches[i] for i in generator.permutation(len(batches))]


def cut_lengths(lengths: np.ndarray, batch: Batch, boundary: int) -> np.ndarray:
    """Return the places where sentences of these lengths, in this order, are cut into batches."""
    if batch.sentences:
        return np.arange(batch.sentences, len(lengths), batch.sentences)
    return cut_batches(lengths + boundary, batch.tokens)
