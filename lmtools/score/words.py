"""Single words as a model finds them in a sentence: their tokens, and prefixes that grow by one."""

from collections.abc import Sequence

import numpy as np

from lmtools.base.errors import UserError


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
        """Return the number of unknown tokens of a word."""
        tokens = self.tokens(word, first)
        if tokens not in self.unknown:
            self.unknown[tokens] = int(np.sum(self.model.unknown(tokens)))
        return self.unknown[tokens]


def check_wordwise(model) -> None:
    """Raise UserError where the model's normaliser reads whole texts, so that its tokens of a word
    alone are not those of the word in a sentence.
    """
    if model.subword and not model.subword.normaliser.wordwise:
        raise UserError(
            f"{model.signature['lm']}: its normaliser {model.subword.normaliser.spec} reads whole"
            " sentences, and lattices and live decoders give word after word; rescore N-best lists"
        )


def count_tokens(model, texts: Sequence[str], sentences: Sequence[tuple]) -> list[list[int] | None]:
    """Return the number of tokens with a score of each word of each text; None where tokens cross
    words.

    `sentences` are what the model prepared of `texts`.
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
    """The prefixes of one utterance (lmtools.lattice.expand.Prefixes) under a scorer; a kind of
    model defines `grow` and `end`.
    """

    start = 0

    def __init__(self, scorer):
        self.scorer, self.known = scorer, scorer.words

    def grow(self, nodes: list[int], words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return log p(word | prefix) without the penalty, and the longer prefixes; a word without
        tokens has log p 0 and leads back to its node.
        """
        raise NotImplementedError

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
