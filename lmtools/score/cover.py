"""Scores of a model that reads both sides of a word, on lattices: each arc on the best path over
it, its best context.

How near that is to whole sentences depends on how good the paths are: left-to-right models go
first, and the cover's beam prunes between.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmtools.base.batching import find_distinct
from lmtools.lattice.expand import refuse_taken
from lmtools.lattice.forward import backward, forward
from lmtools.lattice.order import levels, no_path
from lmtools.lattice.paths import nbest
from lmtools.lattice.weights import total
from lmtools.score.base import Scorer
from lmtools.score.texts import refuse_not_finite, score_all
from lmtools.types import Lattice


@dataclass(frozen=True)
class Cover:
    """The best path over each arc and to each end: `paths[p]` are its arcs and the index of its end
    in `finals`, each path once.

    `of_arc` (A,) and `of_final` (F,) are places in `paths`; -1 where no possible path leads over
    the arc or to the end.
    """

    paths: tuple[tuple[tuple[int, ...], int], ...]
    of_arc: np.ndarray
    of_final: np.ndarray


def cover(lattice: Lattice, weights: Mapping[str, float]) -> Cover:
    """Return the best path over every arc and to every final state under `weights`; UserError where
    no path is possible or there is a cycle.

    Ties: to end where one is, else the arc that comes first. Memory: 8 bytes for each arc of each
    path, at most one path an arc or end.
    """
    arcs, finals = total(lattice, weights)
    level = levels(lattice)
    to, rest = forward(lattice, arcs, level=level), backward(lattice, arcs, finals, level=level)
    if rest[lattice.start] == -np.inf:
        raise no_path(lattice)
    ending = np.full(lattice.states, -1)
    ending[lattice.finals] = np.arange(len(finals))
    before = best_arc(to[lattice.source] + arcs, lattice.target, lattice.states)
    after = best_arc(arcs + rest[lattice.target], lattice.source, lattice.states)
    after[lattice.finals[finals == rest[lattice.finals]]] = -1
    possible = to[lattice.source] + arcs + rest[lattice.target] > -np.inf
    last = last_shared(lattice.target, before, after)
    chosen, place = np.unique(last[possible], return_inverse=True)
    of_arc = np.full(len(arcs), -1)
    of_arc[possible] = place
    paths = walks(lattice, chosen, before, after, ending=ending)
    of_final = np.full(len(finals), -1)
    for end in np.flatnonzero(to[lattice.finals] + finals > -np.inf).tolist():
        state = lattice.finals[end]
        if before[state] >= 0 and after[state] < 0:
            of_final[end] = of_arc[before[state]]
        else:  # no arc's best path stops here
            of_final[end] = len(paths)
            paths.append((tuple(chain(before[state], before, lattice.source)[::-1]), end))
    return Cover(tuple(paths), of_arc, of_final)


def best_arc(scores: np.ndarray, ends: np.ndarray, states: int) -> np.ndarray:
    """Return each state's (S,) first of the best arcs among those in `ends` (A,), else -1."""
    best = np.full(states, -1)
    order = np.lexsort((-np.arange(len(scores)), scores, ends))
    order = order[scores[order] > -np.inf]
    best[ends[order]] = order  # the last that is put into a place stays
    return best


def last_shared(target: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return for each arc (A,) the last one after it of the same best path. The best path over an
    arc goes on with `after`, and is the next arc's where that is reached from `before`.
    """
    arcs = np.arange(len(target))
    last = np.where((before[target] == arcs) & (after[target] >= 0), after[target], arcs)
    while (last[last] != last).any():
        last = last[last]
    return last


def walks(
    lattice: Lattice, chosen: np.ndarray, before: np.ndarray, after: np.ndarray, ending: np.ndarray
) -> list:
    """Return the best path over each of the `chosen` arcs: its arcs, its end."""
    before, after, source, target = (
        column.tolist() for column in (before, after, lattice.source, lattice.target)
    )
    paths = []
    for arc in chosen.tolist():
        arcs = (*reversed(chain(arc, before, source)), *chain(after[target[arc]], after, target))
        paths.append((arcs, int(ending[target[arcs[-1]]])))
    return paths


def chain(arc: int, pointer: Sequence[int], ends: Sequence[int]) -> list[int]:
    """Follow `pointer` from `arc` to the arc of its state in `ends`, and so on until -1."""
    arcs = []
    while arc >= 0:
        arcs.append(int(arc))
        arc = pointer[ends[arc]]
    return arcs


@dataclass(frozen=True)
class Sentence:
    """A path's words as the scorer reads them: tokens, and scores of each of its arcs."""

    tokens: tuple
    counts: tuple[int, ...]


def sentences(lattice: Lattice, paths: Sequence[Sequence[int]], scorer: Scorer) -> list[Sentence]:
    """Return one sentence a path of arcs; tokens are those of its words in a row."""
    known = scorer.words
    words = [[lattice.words[arc] for arc in arcs] for arcs in paths]
    known.learn([word for line in words for word in line if word is not None])
    whole = scorer.prepare([" ".join(word for word in line if word is not None) for line in words])
    result = []
    for line, prepared in zip(words, whole, strict=True):
        tokens, counts = (), []
        for word in line:
            spelling = () if word is None else known.tokens(word, not tokens)
            tokens += spelling
            counts.append(len(scorer.unknown(spelling)))
        read = prepared if len(prepared) == len(tokens) else tokens
        result.append(Sentence(read, tuple(counts)))
    return result


def word_scores(scorer: Scorer, lines: Sequence[Sentence]) -> list[np.ndarray]:
    """Return log p of the words on each sentence's arcs and of its end, in nats, (arcs + 1,)."""
    distinct, which = find_distinct(line.tokens for line in lines)
    scores = {}
    for indices, values in score_all(scorer, distinct):
        batch = [distinct[i] for i in indices]
        refuse_not_finite([float(v.sum()) for v in values], batch, scorer.signature["lm"])
        scores.update(zip(indices, values, strict=True))
    arcs = [np.repeat(np.arange(len(x.counts) + 1), (*x.counts, 1)) for x in lines]
    return [
        np.bincount(numbers, scores[i], len(x.counts) + 1)
        for numbers, i, x in zip(arcs, which.tolist(), lines, strict=True)
    ]


def rescore_cover(
    lattice: Lattice, scorer: Scorer, weights: Mapping[str, float], name: str
) -> Lattice:
    """Return the lattice with the score `name` too.

    Each arc's word is scored on the best path over it under `weights` (but for that of `name`),
    each end on the best path that ends there, so that the scores of the best path add up to its
    sentence's, and those of others nearly do (see `approximation`). Scores are 0 where no possible
    path leads. UserError for a taken name, a cycle, or no possible path.
    """
    refuse_taken(lattice, {name: scorer})
    covering = cover(lattice, drop_weight(weights, name))
    lines = sentences(lattice, [arcs for arcs, _ in covering.paths], scorer)
    column, ends = np.zeros(len(lattice.words)), np.zeros(len(lattice.finals))
    scores = word_scores(scorer, lines)
    for place, ((arcs, _), values) in enumerate(zip(covering.paths, scores, strict=True)):
        arcs = np.array(arcs, dtype=np.int64)
        on_path = covering.of_arc[arcs] == place
        column[arcs[on_path]] = values[:-1][on_path]
    for end in np.flatnonzero(covering.of_final >= 0):
        ends[end] = scores[covering.of_final[end]][-1]
    scores = {**lattice.scores, name: column}
    final_scores = {**lattice.final_scores, name: ends}
    return replace(lattice, scores=scores, final_scores=final_scores)


def drop_weight(weights: Mapping[str, float], name: str) -> dict[str, float]:
    """Return the weights without that of `name`."""
    return {other: weight for other, weight in weights.items() if other != name}


def approximation(
    lattice: Lattice, scorer: Scorer, weights: Mapping[str, float], name: str, *, n: int
) -> dict[str, float]:
    """Compare scores on arcs with those of whole sentences, over the `n` best distinct word
    sequences (by the other weights).

    Absolute differences in nats: `word_mean`, `word_max` of a word's score on the path to that in
    its sentence (NaN without words), `sentence_mean`, `sentence_max` of the path's sum to the
    sentence's, ends counted.
    `agrees` is 1 where the best sequence, with the score weighted by weights[name] (1 if there is
    none), is the same either way. `lattice` is what `rescore_cover` gave, or what it would be
    given.
    """
    if name not in lattice.scores:
        lattice = rescore_cover(lattice, scorer, weights, name)
    paths = nbest(lattice, drop_weight(weights, name), n)
    lines = sentences(lattice, [path.arcs for path in paths], scorer)
    exact = word_scores(scorer, lines)
    column, ends = lattice.scores[name], lattice.final_scores[name]
    near = [np.append(column[list(path.arcs)], ends[path.final]) for path in paths]
    worded = [
        np.array([lattice.words[arc] is not None for arc in path.arcs], dtype=bool)
        for path in paths
    ]
    by_word = np.concatenate(
        [np.abs(a - b)[:-1][has_word] for a, b, has_word in zip(near, exact, worded, strict=True)]
    )
    sums = [np.array([values.sum() for values in each]) for each in (near, exact)]
    by_sentence = np.abs(sums[0] - sums[1])
    score, scale = np.array([path.score for path in paths]), weights.get(name, 1.0)
    best = [int((score + scale * each).argmax()) for each in sums]
    return {
        "sentences": len(paths), "words": len(by_word),
        "word_mean": float(by_word.mean()) if len(by_word) else math.nan,
        "word_max": float(by_word.max()) if len(by_word) else math.nan,
        "sentence_mean": float(by_sentence.mean()),
        "sentence_max": float(by_sentence.max()), "agrees": int(best[0] == best[1]),
    }  # fmt: skip
