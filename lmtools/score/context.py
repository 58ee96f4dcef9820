"""Texts scored behind what was said before them: the words of a context are read and have no score.

Any kind of model can read them so: a left-to-right one goes on from the context, one that looks at
both sides, or at all other words, sees it as what stands on the left. Context and text are one
sentence to the model, without boundaries between, as it knows no other from its training.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from lmtools.base.errors import UserError
from lmtools.score.base import Scorer
from lmtools.score.trees import TreeBatch
from lmtools.types import NBest

CONTEXT, ORIGIN = "context", "context_from"  # in signatures: tokens, and whose words they are
FIRST, REF, RESCORED = "first", "ref", "rescored"  # whose words a context has


class ContextScorer:
    """A scorer of pairs (context, text): sentences are (context's tokens, both's sentence)."""

    criterion, left_to_right = None, False  # of whole sentences alone

    def __init__(self, inner: Scorer):
        if inner.pairs:
            raise UserError(
                f"{inner.spec.lm}: a translation model, which reads a source; leave the context out"
            )
        self.inner, self.spec = inner, replace(inner.spec, context=True)
        self.reload = inner.reload and partial(load_behind, inner.reload)
        self.signature = {**inner.signature, CONTEXT: "joined"}
        self.lengths: dict[str, int] = {}

    def __getattr__(self, name: str):
        if name.startswith("__") or name == "inner":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.inner, name)

    def prepare(self, texts):
        return self.inner.prepare_behind(texts)

    def read_before(self, nbest: NBest, context: str) -> str:
        """Return what is read before the hypotheses of a list that has a context."""
        return context

    def cost(self, sentence):
        return self.inner.cost(sentence[1])

    def unknown(self, sentence):
        return self.inner.unknown(sentence[1])[sentence[0] :]

    def token_names(self, sentence):
        return self.inner.token_names(sentence[1])[sentence[0] :]

    def plan_trees(self, sentences):
        return self.inner.plan_trees([sentence for _, sentence in sentences])

    def log_probs(self, sentences):
        joined = [sentence for _, sentence in sentences]
        together = isinstance(sentences, TreeBatch)
        values = self.inner.log_probs(TreeBatch(joined) if together else joined)
        return [row[count:] for (count, _), row in zip(sentences, values, strict=True)]

    def with_oov_penalty(self, penalty):
        scorer = copy.copy(self)
        scorer.inner = self.inner.with_oov_penalty(penalty)
        scorer.signature = {**self.signature, **scorer.inner.signature}
        return scorer

    def cut(self, words: Sequence[str], tokens: int) -> str:
        """Return the last words, as many whole ones as have no more than so many tokens."""
        total = 0
        for place in range(len(words) - 1, -1, -1):
            word = words[place]
            if word not in self.lengths:
                self.lengths[word] = self.inner.count_tokens(word)
            total += self.lengths[word]
            if total > tokens:
                return " ".join(words[place + 1 :])
        return " ".join(words)


def load_behind(load: Callable[[], Scorer]) -> ContextScorer:
    return ContextScorer(load())


class History:
    """What was said in a session so far, as far back as `tokens` of a scorer may reach."""

    def __init__(self, scorer: ContextScorer, tokens: int):
        self.scorer, self.tokens, self.words = scorer, tokens, []

    def context(self) -> str:
        """Return the last words, of no more than `tokens` tokens."""
        return self.scorer.cut(self.words, self.tokens)

    def add(self, text: str) -> None:
        self.words += self.scorer.normalise(text).split()
        # a word has a token or more, but for those that a tokeniser drops
        del self.words[: -4 * self.tokens]


def list_contexts(
    texts: Sequence[str], sessions: Sequence[Sequence[int]], scorer: ContextScorer, tokens: int
) -> list[str]:
    """Return the context of each text: the texts before it in its session."""
    contexts = [""] * len(texts)
    for session in sessions:
        history = History(scorer, tokens)
        for place in session:
            contexts[place] = history.context()
            history.add(texts[place])
    return contexts
