"""Histories as numbers: answers asked for once, shared last words, mixtures of LMs."""

from collections.abc import Sequence

import numpy as np

from lmtools.base.batching import Numbering
from lmtools.base.errors import UserError

SHIFT = 1 << 31  # nodes and word ids are below this, so that a pair of them is one int64


class CachedPrefixes:
    """One model's answers for an utterance, each asked for once, by places in `vocabulary`."""

    def __init__(self, lm, vocabulary: Sequence[str]):
        self.lm, self.vocabulary = lm, vocabulary
        # (K,) the pairs, sorted, and where they lead
        self.keys, self.longer = np.zeros((2, 0), dtype=np.int64)
        self.scores = np.zeros(0)  # (K,)

    def words(self, nodes: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return `Prefixes.words` for pairs (N,) of node and word id, in any number of repeats."""
        keys, place = np.unique(nodes * SHIFT + words, return_inverse=True)
        at = np.searchsorted(self.keys, keys)
        new = np.append(self.keys, -1)[at] != keys
        if new.any():
            self.ask(keys[new], at[new])
            at = np.searchsorted(self.keys, keys)
        return self.scores[at][place], self.longer[at][place]

    def ask(self, keys: np.ndarray, at: np.ndarray) -> None:
        """Take up the answers to `keys`, whose places among the known ones are `at`."""
        scores, longer = self.lm.words(
            keys // SHIFT, [self.vocabulary[word] for word in (keys % SHIFT).tolist()]
        )
        self.keys, self.scores, self.longer = map(
            np.insert, (self.keys, self.scores, self.longer), (at, at, at), (keys, scores, longer)
        )

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """Return `Prefixes.end` for nodes (N,), repeats allowed."""
        distinct, place = np.unique(nodes, return_inverse=True)
        return self.lm.end(distinct)[place] if len(distinct) else np.zeros(0)


class Suffixes:
    """Prefixes known by their last `length` words alone; every word has the score 0."""

    start = 0

    def __init__(self, length: int):
        self.length, self.numbering = length, Numbering(())

    def words(self, nodes, words):
        histories = [
            (*self.numbering.things[node], word)
            for node, word in zip(nodes.tolist(), words, strict=True)
        ]
        longer = [
            self.numbering(history[max(0, len(history) - self.length) :]) for history in histories
        ]
        return np.zeros(len(longer)), np.array(longer, dtype=np.int64)

    def end(self, nodes):
        return np.zeros(len(nodes))


class Mixture:
    """Linear interpolation of models, word by word: log sum_i weights[i] p_i(word | prefix). A word
    has probability 0 under a model that lacks it, unless all do.
    """

    def __init__(self, parts: Sequence, weights: Sequence[float]):
        self.logs = np.log(weights)[:, None]  # (P, 1)
        self.vocabulary = Numbering()
        self.parts, self.lacking = parts, []  # (P, 1) a word
        self.caches = [CachedPrefixes(part, self.vocabulary.things) for part in parts]
        self.numbering = Numbering(tuple(part.start for part in parts))
        self.start = 0

    def nodes(self, nodes: np.ndarray) -> np.ndarray:
        return (
            np.array([self.numbering.things[node] for node in nodes.tolist()], dtype=np.int64)
            .reshape(-1, len(self.caches))
            .T
        )

    def words(self, nodes, words):
        ids = np.array([self.vocabulary(word) for word in words], dtype=np.int64)
        for word in self.vocabulary.things[len(self.lacking) :]:
            unknown = np.array([[part.lacks(word)] for part in self.parts])
            self.lacking.append(unknown & ~unknown.all())
        scores, longer = zip(
            *(
                cache.words(states, ids)
                for cache, states in zip(self.caches, self.nodes(nodes), strict=True)
            ),
            strict=True,
        )
        numbers = [
            self.numbering(row) for row in zip(*(states.tolist() for states in longer), strict=True)
        ]
        if len(ids):
            lacking = np.concatenate([self.lacking[i] for i in ids.tolist()], axis=1)
            scores = np.where(lacking, -np.inf, scores)
        return np.logaddexp.reduce(self.logs + scores), np.array(numbers, dtype=np.int64)

    def end(self, nodes):
        return np.logaddexp.reduce(
            self.logs
            + [
                cache.end(states)
                for cache, states in zip(self.caches, self.nodes(nodes), strict=True)
            ]
        )


class MixtureLM:
    """A linear interpolation of models; UserError unless positive weights sum to 1."""

    def __init__(self, parts: Sequence, weights: Sequence[float]):
        if (
            len(parts) != len(weights)
            or not all(weight > 0 for weight in weights)
            or abs(sum(weights) - 1) > 1e-6
        ):
            given = " ".join(f"{weight:g}" for weight in weights)
            raise UserError(
                f"mixture of {len(parts)} language models with weights {given}: give each one above"
                " 0, 1 in sum"
            )
        self.parts, self.weights = tuple(parts), tuple(weights)
        self.signature = {
            "lm": "mixture",
            "model": name_mixture(parts, weights),
            "version": parts[0].signature["version"],
        }

    def prefixes(self) -> Mixture:
        return Mixture([part.prefixes() for part in self.parts], self.weights)


def name_mixture(parts: Sequence, weights: Sequence[float]) -> str:
    """Return the models of a mixture's signature: each part's hash with its weight."""
    pairs = zip(parts, weights, strict=True)
    return "+".join(f"{weight!r}*{part.signature['model']}" for part, weight in pairs)
