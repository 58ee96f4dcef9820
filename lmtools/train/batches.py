"""Which sentences go into a batch together, as a function of (lengths, seed, epoch) alone, so that a resumed run sees the same."""

import numpy as np

from lmtools.corpus import Corpus
from lmtools.settings import Batch


class Segments:
    """The sentences of a corpus, those longer than `longest` tokens cut into pieces that fit."""

    def __init__(self, corpus: Corpus, longest: int):
        self.corpus = corpus
        lengths = np.asarray(corpus.lengths)
        pieces = np.maximum(1, -(-lengths // longest))
        self.sentence = np.repeat(np.arange(len(lengths)), pieces)
        first = np.cumsum(pieces) - pieces
        self.begin = (np.arange(len(self.sentence)) - first[self.sentence]) * longest
        self.lengths = np.minimum(longest, lengths[self.sentence] - self.begin)

    def __len__(self) -> int:
        return len(self.sentence)

    def batch(self, indices: np.ndarray) -> list[np.ndarray]:
        """The token ids of the segments at `indices`."""
        return [self.corpus[int(self.sentence[i])][self.begin[i] : self.begin[i] + self.lengths[i]] for i in indices]


def plan(lengths: np.ndarray, batch: Batch, boundary: int, seed: int, epoch: int) -> list[np.ndarray]:
    """The batches of one epoch, in order: arrays of indices into `lengths`.

    Sentences of equal length stand together (almost no padding), which of them meet in a batch and the order of the batches are
    drawn anew for each epoch; their number is the same in every epoch.
    """
    generator = np.random.default_rng([seed, epoch])
    order = np.lexsort((generator.random(len(lengths)), lengths))
    cuts = boundaries(lengths[order] + boundary, batch)
    batches = np.split(order, cuts)
    return [batches[i] for i in generator.permutation(len(batches))]


def boundaries(widths: np.ndarray, batch: Batch) -> np.ndarray:
    """Where the ascending `widths` are cut into batches; a sentence wider than the token budget is a batch of its own."""
    if batch.sentences:
        return np.arange(batch.sentences, len(widths), batch.sentences)
    cuts, begin = [], 0
    while True:
        # Rows begin..end-1 are padded to widths[end-1]: the cost is ascending in `end`, so the last that fits is found by bisection.
        low, high = begin + 1, min(len(widths), begin + max(1, batch.tokens // int(widths[begin])))
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if (middle - begin) * widths[middle - 1] <= batch.tokens else (low, middle - 1)
        begin = low
        if begin >= len(widths):
            return np.array(cuts, dtype=np.int64)
        cuts.append(begin)
