"""Which sentences go into a batch together, as a function of (lengths, seed, epoch) alone, so that
a resumed run sees the same.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from lmtools.batching import cut_batches
from lmtools.corpus import Corpus
from lmtools.errors import UserError
from lmtools.lm import LanguageModel
from lmtools.settings import Batch
from lmtools.train.parallel import World


class Segments:
    """The sentences of a corpus, those longer than `longest` tokens cut into pieces that fit.

    `widths` (sentences,) says how long sentences are for the model, where that is not their number
    of tokens; such ones are not cut.
    """

    def __init__(self, corpus: Corpus, longest: int, widths: np.ndarray | None = None):
        self.corpus = corpus
        lengths = np.asarray(corpus.lengths)
        pieces = np.maximum(1, -(-lengths // longest))
        self.sentence = np.repeat(np.arange(len(lengths)), pieces)
        first = np.cumsum(pieces) - pieces
        self.begin = (np.arange(len(self.sentence)) - first[self.sentence]) * longest
        self.lengths = np.minimum(longest, lengths[self.sentence] - self.begin)
        whole = widths is not None and len(self.sentence) == len(lengths)
        self.widths = np.asarray(widths) if whole else self.lengths

    def __len__(self) -> int:
        return len(self.sentence)

    def batch(self, indices: np.ndarray) -> list[np.ndarray]:
        """The token ids of the segments at `indices`."""
        return [
            self.corpus[int(self.sentence[i])][self.begin[i] : self.begin[i] + self.lengths[i]]
            for i in indices
        ]


class Sentences:
    """Batches of whole sentences for a model. A step's batch is an array of indices of segments;
    `world` shares it among processes.
    """

    def __init__(self, corpus: Corpus, batch: Batch, seed: int, world: World, lm: LanguageModel):
        self.segments = Segments(corpus, lm.longest, lm.objective.widths(corpus))
        if not len(self.segments):
            raise UserError(f"{corpus.path}: the corpus has no sentences; give text")
        self.batch, self.seed, self.world, self.boundary = batch, seed, world, lm.objective.boundary
        self.epoch, self.order = 0, self.plan(0)
        self.per_epoch = len(self.order)

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch."""
        return plan_epoch(self.segments.widths, self.batch, self.boundary, self.seed, epoch)

    def at(self, step: int) -> np.ndarray:
        """The batch of a step."""
        epoch, index = divmod(step, self.per_epoch)
        if epoch != self.epoch:
            self.epoch, self.order = epoch, self.plan(epoch)
        return self.order[index]

    def tokens(self, indices: np.ndarray) -> int:
        """How many tokens (of spelled vocabularies: words) are in a batch."""
        return int(self.segments.widths[indices].sum())

    def loss(
        self,
        lm: LanguageModel,
        indices: np.ndarray,
        generator: np.random.Generator,
        device: torch.device,
    ) -> tuple[Tensor, int]:
        """The summed loss of this process's share of a batch and the number of its targets."""
        share = self.world.share(
            lm.objective.training(self.segments.batch(indices), generator, lm.size)
        )
        if not len(share.targets):  # fewer sentences than processes
            return torch.zeros((), device=device), 0
        return lm(share.to(device))

    def carried_state(self) -> dict[str, Tensor]:
        """Nothing goes from batch to batch."""
        return {}

    def resume(self, saved: Mapping[str, Tensor], device: torch.device) -> None:
        """Nothing goes from batch to batch."""

    def place(self, step: int) -> str:
        """Which sentences a step reads, for people."""
        indices = self.at(step)
        some = ", ".join(str(int(self.segments.sentence[i]) + 1) for i in indices[:8])
        return f"sentences {some}{' ...' if len(indices) > 8 else ''}"


def plan_epoch(
    lengths: np.ndarray, batch: Batch, boundary: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """The batches of one epoch, in order: arrays of indices into `lengths`.

    Sentences of equal length stand together (almost no padding), which of them meet in a batch and
    the order of the batches are drawn anew for each epoch; their number is the same in every epoch.
    """
    generator = np.random.default_rng([seed, epoch])
    order = np.lexsort((generator.random(len(lengths)), lengths))
    if batch.sentences:
        cuts = np.arange(batch.sentences, len(order), batch.sentences)
    else:
        cuts = cut_batches(lengths[order] + boundary, batch.tokens)
    batches = np.split(order, cuts)
    return [batches[i] for i in generator.permutation(len(batches))]
