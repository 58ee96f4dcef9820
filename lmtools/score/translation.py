"""Translation models as scorers of sentences given their sources."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from lmtools.base.errors import UserError
from lmtools.models.device import PRECISIONS, autocast
from lmtools.models.objectives import pad_sentences, split_pair
from lmtools.models.seq2seq import Decoding
from lmtools.score.neural import NeuralScorer
from lmtools.score.trees import plan_pairs
from lmtools.text.subword import BOS, EOS


class TranslationScorer(NeuralScorer):
    """A translation model: log p of a target sentence given its source.

    Texts are pairs (source, target), a sentence is the one sequence of ids that stands for both;
    what has a score are the tokens of the target and its end. Targets of one source are one tree,
    beside which the source is encoded once; sources of one target go through together, without
    padding. A target that does not fit the positions is scored in windows, each with the whole
    source; a source that does not is refused.
    """

    pairs = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.kind, self.depth = "perplexity", None

    def prepare(self, texts):
        sources, targets = (self.subword.encode_batch([t[side] for t in texts]) for side in (0, 1))
        for ids, (text, _) in zip(sources, texts, strict=True):
            if len(ids) > self.longest:
                raise UserError(
                    f"{text[:40]!r} ...: a source of {len(ids)} tokens, the model reads at most"
                    f" {self.longest}; leave it out or train with a larger arch.positions"
                )
        return [(*source, EOS, *target) for source, target in zip(sources, targets, strict=True)]

    def knows(self, word):
        return self.subword.knows(word)

    def cost(self, sentence):
        # both sides are padded to the longer one: equal costs are equal shapes
        source, target = split_pair(sentence)
        width = max(len(source), min(len(target), self.longest)) + sum(self.boundary)
        return 2 * len(self.windows(sentence)) * width

    def plan_trees(self, sentences):
        pairs = [split_pair(sentence) for sentence in sentences]
        return plan_pairs(pairs, self.lm.trunk.tree_tokens, self.longest)

    def from_tree(self, sentences):
        sources, targets = zip(*map(split_pair, sentences), strict=True)
        if len(set(sources)) == 1:
            return super().from_tree(sentences)
        return self.from_sources(sources, targets[0])

    @torch.inference_mode()
    def from_sources(self, sources, target) -> list[np.ndarray]:
        """Score one target given each of its sources, in the order of their lengths."""
        read, given, gold = (
            [torch.tensor(ids, device=self.device) for ids in side]
            for side in ([(*source, EOS) for source in sources], [(BOS, *target)], [(*target, EOS)])
        )
        with autocast(self.device, self.precision):
            states = self.lm.trunk.shared_states(read, given[0])
            heads = self.lm.trunk.head(states.flatten(0, 1))
        scores = self.score(heads.to(PRECISIONS[self.precision]), gold[0].repeat(len(read)))
        return list(scores.view(len(read), -1).double().cpu().numpy())

    def tree_of(self, sentences):
        return super().tree_of([split_pair(sentence)[1] for sentence in sentences])

    def tree_states(self, sentences, tree):
        within, source = tree.ancestors(), split_pair(sentences[0])[0]
        read = np.array([*source, EOS]), tree.tokens, within.sum(1) - 1, within
        return self.lm.trunk.tree_states(
            *(torch.from_numpy(array).to(self.device) for array in read)
        )

    def decode(self, sources: Sequence[Sequence[int]]) -> Decoding:
        """Return the decoding of sources, ids without the end, for a search."""
        read = pad_sentences(sources, [], [EOS])
        with autocast(self.device, self.precision):
            return self.lm.trunk.decoding(*(torch.from_numpy(x).to(self.device) for x in read))

    def next_heads(self, decoding: Decoding, tokens: Tensor, parents: Tensor) -> Tensor:
        """Return states (B K, width) after prefixes of `parents` (B, K) and `tokens` (B, K)."""
        with autocast(self.device, self.precision):
            heads = self.lm.trunk.head(decoding.step(tokens, parents).flatten(0, 1))
        return heads.to(PRECISIONS[self.precision])

    def unknown(self, sentence):
        return super().unknown(split_pair(sentence)[1])

    def token_names(self, sentence):
        return super().token_names(split_pair(sentence)[1])

    def windows(self, sentence):
        return super().windows(split_pair(sentence)[1])

    def window(self, sentence, begin, end):
        source, target = split_pair(sentence)
        return (*source, EOS, *target[begin:end])

    def split_values(self, values, sentences):
        return super().split_values(values, [split_pair(sentence)[1] for sentence in sentences])
