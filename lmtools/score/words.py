"""The tokens of single words, as a scorer finds them in a sentence."""

from collections.abc import Sequence


class WordTokens:
    """`tokens(word, first)`: the tokens of a word that is the first of a sentence or a later one,
    each word segmented once.

    In a row they are the scorer's tokens of the sentence wherever no token crosses a word: all of
    our vocabularies, and Hugging Face tokenisers that split at white space first. A word may have
    no token (one that the normaliser takes away).
    """

    def __init__(self, scorer):
        self.scorer = scorer
        self.known: dict[str, tuple[tuple, tuple]] = {}

    def learn(self, words: Sequence[str]) -> None:
        """Segment the words that are new, together."""
        new = [word for word in dict.fromkeys(words) if word not in self.known]
        if not new:
            return
        # a later word may differ: among characters it has a mark before it
        texts = [*new, *(f"{word} {word}" for word in new)]
        prepared = self.scorer.prepare(texts)
        for word, once, both in zip(new, prepared[: len(new)], prepared[len(new) :], strict=True):
            self.known[word] = once, both[len(once) :]

    def tokens(self, word: str, first: bool) -> tuple:
        """The tokens of a word that `learn` has seen."""
        once, later = self.known[word]
        return once if first else later
