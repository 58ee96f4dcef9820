"""Interface of loaded language models. Whoever uses one asks it one of three questions: the
log-probabilities of prepared texts, the states of their positions, or prefixes that grow word by
word.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lmtools.base.batching import cut_windows
from lmtools.base.errors import UserError
from lmtools.base.grammar import check_number
from lmtools.base.specs import LMSpec
from lmtools.score.trees import TreeBatch

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
    reload: Callable[[], Scorer] | None = None  # by which another process has it
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
        return " ".join(text.split())

    def split(self, text: str) -> list[str]:
        return text.split()

    def prepare(self, texts: Sequence[str]) -> list[tuple]:
        """Prepare texts, one sentence a text: normalised and segmented."""
        raise NotImplementedError

    def cost(self, sentence: tuple) -> int:
        """Return the model rows of a sentence; equal costs are computed in equal shapes."""
        raise NotImplementedError

    def unknown(self, sentence: tuple) -> np.ndarray:
        """Return which of the tokens that have a score are out of vocabulary, bool (tokens,)."""
        raise NotImplementedError

    def knows(self, word: str) -> bool:
        return not self.unknown(self.prepare([word])[0]).any()

    def token_names(self, sentence: tuple) -> list[str]:
        """Return a name of each token that has a score, without the end of sentence."""
        raise NotImplementedError

    def positions(self, sentence: tuple) -> int:
        """Return the number of states of a sentence, without those of boundary tokens."""
        return len(sentence)

    def spans(self, sentence: tuple, words: Sequence[str]) -> list[int]:
        self.words.learn(words)
        spans = [len(self.words.tokens(word, not place)) for place, word in enumerate(words)]
        return spans if all(spans) and sum(spans) == len(sentence) else [len(sentence)]

    def windows(self, sentence: tuple) -> list[tuple[int, int, int, int]]:
        """Return the windows of a long sentence, as `cut_windows` does."""
        return cut_windows(len(sentence), self.longest)

    def window(self, sentence: tuple, begin: int, end: int) -> tuple:
        return sentence[begin:end]

    def token_log_probs(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        """Return `log_probs` without the penalty."""
        raise NotImplementedError

    def log_probs(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        """Return log p of each token and the end in nats, float64 (tokens + 1,) a sentence."""
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
        """Return which of distinct sentences are computed as trees of beginnings."""
        return []

    def from_tree(self, sentences: Sequence[tuple]) -> list[np.ndarray]:
        """Return `log_probs` of a batch of `plan_trees` without the penalty."""
        raise NotImplementedError

    @property
    def source(self) -> str:
        return self.spec.lm

    def states(
        self, sentences: Sequence[tuple], layers: Sequence[int], masked: bool = False
    ) -> BatchStates:
        """Return states of sentences that fit, up to the last of the layers; `masked`: each from a
        copy where it is masked. UserError for a model without states.
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
        return WordTokens(self)

    def prefixes(self) -> Prefixes:
        """Return an utterance's prefixes, empty; UserError for a model that reads both sides, or
        whose normaliser reads whole texts.
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
        """Return the same model by the engine that is fastest for a text by itself."""
        return self

    def with_oov_penalty(self, penalty: float) -> Scorer:
        """Return the same model under that penalty, itself at 0; UserError below 0."""
        if not (penalty := check_number(penalty, "oov_penalty", 0)):
            return self
        scorer = copy.copy(self)
        scorer.oov_penalty = penalty
        scorer.signature = {**self.signature, "oov": repr(float(penalty))}
        return scorer


class WordTokens:
    """`tokens(word, first)`: the tokens of a word that is the first of a sentence or a later one,
    each word segmented once.

    In a row they are the model's tokens of the sentence wherever no token crosses a word: all of
    our vocabularies, and Hugging Face tokenisers that split at white space first. A word may have
    no token (one that the normaliser takes away).
    """

    def __init__(self, model):
        self.model = model
        self.known: dict[str, tuple[tuple, tuple]] = {}
        self.unknown: dict[tuple, int] = {}

    def learn(self, words: Sequence[str]) -> None:
        """Segment the words that are new, together."""
        new = [word for word in dict.fromkeys(words) if word not in self.known]
        if not new:
            return
        # a later word may differ: among characters it has a mark before it
        texts = [*new, *(f"{word} {word}" for word in new)]
        prepared = self.model.prepare(texts)
        for word, once, both in zip(new, prepared[: len(new)], prepared[len(new) :], strict=True):
            self.known[word] = once, both[len(once) :]

    def tokens(self, word: str, first: bool) -> tuple:
        """Return the tokens of a word that `learn` has seen."""
        once, later = self.known[word]
        return once if first else later

    def count_unknown(self, word: str, first: bool) -> int:
        tokens = self.tokens(word, first)
        if tokens not in self.unknown:
            self.unknown[tokens] = int(np.sum(self.model.unknown(tokens)))
        return self.unknown[tokens]


def check_wordwise(model) -> None:
    """Raise UserError where the normaliser reads whole texts: words alone differ then."""
    if model.subword and not model.subword.normaliser.wordwise:
        raise UserError(
            f"{model.signature['lm']}: its normaliser {model.subword.normaliser.spec} reads whole"
            " sentences, and lattices and live decoders give word after word; rescore N-best lists"
        )


def count_tokens(model, texts: Sequence[str], sentences: Sequence[tuple]) -> list[list[int] | None]:
    """Return the scored tokens of each word of each text; None where tokens cross words.
    `sentences`: what the model prepared of `texts`.
    """
    known = WordTokens(model)
    split = [text.split() for text in texts]
    known.learn([word for words in split for word in words])
    counts: list[list[int] | None] = []
    for words, sentence in zip(split, sentences, strict=True):
        joined: tuple = ()
        numbers = []
        for word in words:
            tokens = known.tokens(word, not joined)
            joined += tokens
            numbers.append(len(model.unknown(tokens)) if tokens else 0)
        counts.append(numbers if joined == sentence else None)
    return counts


class WordPrefixes:
    """An utterance's prefixes under a scorer; a kind of model defines `grow` and `end`."""

    start = 0

    def __init__(self, scorer):
        self.scorer, self.known = scorer, scorer.words

    def grow(self, nodes: list[int], words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return log p(word | prefix) without penalty (0 without tokens) and longer prefixes."""
        raise NotImplementedError

    def lacks(self, word: str) -> bool:
        """Return whether the model does not know a word, or a token of it."""
        self.known.learn([word])
        return self.known.count_unknown(word, first=False) > 0

    def words(self, nodes: np.ndarray, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """See lmtools.lattice.expand.Prefixes."""
        self.known.learn(words)
        nodes = nodes.tolist()
        log_p, longer = self.grow(nodes, words)
        if self.scorer.oov_penalty:
            pairs = zip(nodes, words, strict=True)
            unknown = [self.known.count_unknown(word, node == self.start) for node, word in pairs]
            log_p = log_p - self.scorer.oov_penalty * np.array(unknown, dtype=np.float64)
        return log_p, longer
