"""Interface of loaded language models. Whoever uses one asks it one of three questions: the
log-probabilities of prepared texts, the states of their positions, or prefixes that grow word by
word.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lmtools.base.batching import cut_windows
from lmtools.base.errors import UserError
from lmtools.base.grammar import check_number
from lmtools.base.specs import LMSpec
from lmtools.score.trees import TreeBatch
from lmtools.score.words import WordTokens, check_wordwise

if TYPE_CHECKING:  # n-grams compute without torch, which takes seconds to import
    from torch import Tensor, device

    from lmtools.lattice.expand import Prefixes


class BatchStates(NamedTuple):
    """The states of a batch: pairs (layer, states (B, T, columns)) and lengths (B,)."""

    layers: Iterator[tuple[int, Tensor]]
    lengths: Tensor


class Scorer:
    """A language model, loaded; a class a kind of model.

    A sentence is whatever `prepare` made of a text: hashable, equal for equal scores. An unknown
    token costs `oov_penalty` nats beyond log p(<unk>), which is that of all words that a vocabulary
    lacks together, while one of them is less probable; with the logarithm of their number they
    share it evenly.
    """

    spec: LMSpec  # by which it was loaded
    kind: str  # perplexity or pseudo-perplexity: what exp(-log_prob / tokens) is
    signature: dict[str, str]
    device: device
    precision = "float32"  # of matrix products
    rows: int | None = None  # model rows of a batch; None: it computes each sentence by itself
    ragged = False  # sentences of any costs go through together without padding
    longest = sys.maxsize  # the most tokens of a window
    subword = None  # a lmtools.text.subword.Subword, of models that have one
    open_words = False  # it predicts words without a closed vocabulary
    oov_penalty = 0.0
    criterion: str | None = None  # with which `lmtools train` trained it
    notes: Sequence[tuple] = ()  # ModelNotes: what whoever meets unknown tokens should know
    left_to_right = False  # it has `prefixes`
    depth: int | None = None  # the last layer of `states`, 0 the embedding; None: it has none
    boundary = (1, 1)  # boundary tokens before and after those of a sentence, which have states too
    masks = False  # it has a mask to predict from
    pairs = False  # its texts are pairs of a source and what is scored given it

    def normalise(self, text: str) -> str:
        """Return the text as the model reads it."""
        return " ".join(text.split())

    def split(self, text: str) -> list[str]:
        """Return the words of a normalised text."""
        return text.split()

    def prepare(self, texts: Sequence[str]) -> list[tuple]:
        """Prepare texts, one sentence a text: normalised and segmented."""
        raise NotImplementedError

    def cost(self, sentence: tuple) -> int:
        """Return the number of rows that the model computes for the sentence; sentences of equal
        cost are computed in equal shapes.
        """
        raise NotImplementedError

    def unknown(self, sentence: tuple) -> np.ndarray:
        """Return which of the tokens that have a score are out of vocabulary, bool (tokens,)."""
        raise NotImplementedError

    def knows(self, word: str) -> bool:
        """Return whether no token of a word that has a score is out of vocabulary."""
        return not self.unknown(self.prepare([word])[0]).any()

    def token_names(self, sentence: tuple) -> list[str]:
        """Return a name of each token that has a score, without the end of sentence."""
        raise NotImplementedError

    def positions(self, sentence: tuple) -> int:
        """Return the number of states of a sentence, without those of boundary tokens."""
        return len(sentence)

    def spans(self, sentence: tuple, words: Sequence[str]) -> list[int]:
        """Return the number of positions of each word of a sentence, one or more; one number of all
        where they are not those of its words in a row.
        """
        self.words.learn(words)
        spans = [len(self.words.tokens(word, not place)) for place, word in enumerate(words)]
        return spans if all(spans) and sum(spans) == len(sentence) else [len(sentence)]

    def windows(self, sentence: tuple) -> list[tuple[int, int, int, int]]:
        """Return the windows of a sentence that may be longer than the positions, as `cut_windows`
        does.
        """
        return cut_windows(len(sentence), self.longest)

    def window(self, sentence: tuple, begin: int, end: int) -> tuple:
        """Return one window of a sentence, as a sentence."""
        return sentence[begin:end]

    def token_log_probs(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        """Return `log_probs` without the penalty."""
        raise NotImplementedError

    def log_probs(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        """Return log p of each token and the end of sentence, in nats, float64 (tokens + 1,) a
        sentence; those of a TreeBatch are computed together.
        """
        together = isinstance(sentences, TreeBatch)
        return self.penalise(
            sentences, (self.from_tree if together else self.token_log_probs)(sentences)
        )

    def penalise(self, sentences: Sequence[tuple], scores: list[np.ndarray]) -> list[np.ndarray]:
        """Return `scores` of the tokens of sentences less the penalty of unknown ones."""
        if not self.oov_penalty:
            return scores
        return [
            values - np.append(self.oov_penalty * self.unknown(sentence), 0.0)
            for sentence, values in zip(sentences, scores, strict=True)
        ]

    def plan_trees(self, sentences: Sequence[tuple]) -> list[TreeBatch]:
        """Return the numbers of those of many distinct sentences that are computed as trees of
        beginnings.
        """
        return []

    def from_tree(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        """Return `log_probs` of a batch of `plan_trees` without the penalty."""
        raise NotImplementedError

    @property
    def source(self) -> str:
        """The name of the model in messages."""
        return self.spec.lm

    def states(
        self, sentences: Sequence[tuple], layers: Sequence[int], masked: bool = False
    ) -> BatchStates:
        """Return the states of sentences that fit the positions, up to the last of the layers;
        `masked`: each position's from a copy in which it alone is masked. UserError for a model
        without states.
        """
        raise UserError(
            f"{self.source}: has no states to make vectors of; give the directory of a neural model"
        )

    @property
    def by_word(self):
        """The model that `prefixes` are of, which has a signature: itself, or a mixture by word."""
        return self

    @cached_property
    def words(self) -> WordTokens:
        """The tokens of single words."""
        return WordTokens(self)

    def prefixes(self) -> Prefixes:
        """Return the prefixes of one utterance, empty; what they remember is freed with them.
        UserError for a model that gives no word's probability from the words before alone, or whose
        normaliser reads whole texts.
        """
        check_wordwise(self)
        if not self.left_to_right:
            raise UserError(
                f"{self.signature['lm']}: not a left-to-right model of lmtools train; score a path"
                " cover or N-best lists with it"
            )
        return self.grow_prefixes()

    def grow_prefixes(self) -> Prefixes:
        """Return `prefixes` of a model that is `left_to_right`."""
        raise NotImplementedError

    def live(self) -> Scorer:
        """Return the same model by the engine that takes least time for a text by itself, whose
        scores may differ in their last bits; itself where it is that.
        """
        return self

    def with_oov_penalty(self, penalty: float) -> Scorer:
        """Return the same model under that penalty, which its signature has; itself where it is 0.
        UserError for one below 0.
        """
        if not (penalty := check_number(penalty, "oov_penalty", 0)):
            return self
        scorer = copy.copy(self)
        scorer.oov_penalty = penalty
        scorer.signature = {**self.signature, "oov": repr(float(penalty))}
        return scorer
