"""Choosing that asks a language model on its way: lazily, only for the hypotheses that may still
win, or utterance after utterance, each behind what was chosen before it in its session.
"""

import contextlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from lmtools.base.batching import prepare_distinct
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.nbest import reference
from lmtools.formats.lists import find_sessions
from lmtools.rescoring.defaults import doubt_scores
from lmtools.rescoring.features import LENGTHS, ScoreColumns, best, combine, find_divisors, gather
from lmtools.rescoring.lazy import expect, pad, read_bound, score_lazily
from lmtools.rescoring.lists import check, check_signatures, keep_silence
from lmtools.rescoring.tuning import padded_statistics
from lmtools.rescoring.weights import Weights, find_useless
from lmtools.score import load, score_texts
from lmtools.score.base import Scorer
from lmtools.score.cache import Cache
from lmtools.score.lists import doubt_scored
from lmtools.score.prompts import (
    CONTEXT,
    FIRST,
    ORIGIN,
    REF,
    RESCORED,
    ContextScorer,
    History,
    list_contexts,
)
from lmtools.score.texts import TextScores, count_scored, open_cache
from lmtools.types import NBest


@dataclass(frozen=True)
class LazyChoice:
    """Each list's best hypothesis (utterances,), 0 if empty; how many were scored; warnings."""

    places: np.ndarray
    scored: int
    hypotheses: int
    warnings: tuple[str, ...]


class LazyColumn(NamedTuple):
    """The column that a model scores as far as it must: its name, the model, how it computes."""

    name: str
    spec: LMSpec
    computing: Computing


def choose_lazily(
    nbests: Sequence[NBest],
    columns: ScoreColumns,
    lazy: LazyColumn,
    weights: Weights,
    margin: float,
    source,
    path,
) -> LazyChoice:
    """Choose hypotheses of lists from `source` by `weights` (from `path`), of the `lazy` column and
    others. `margin` is in units of the noted bound's; infinity scores all. UserError as of `lmtools
    rescore`.
    """
    name, computing = lazy.name, lazy.computing
    refuse_unfit(weights, name, nbests, path)
    bound = None if margin == np.inf else read_bound(weights, name, path)
    known = gather_others(nbests, columns, weights, name, source=source)
    scorer = load(lazy.spec, computing)
    column = ScoreColumns({name: []}, {name: scorer.signature}, {name: lazy.spec.lm}, {})
    warnings = [*columns.warn_unchecked(), *known.warnings]
    warnings += check_signatures(weights, columns, path) + check_signatures(weights, column, path)

    texts = [[hyp.text for hyp in nbest.hyps] for nbest in nbests]
    tokens, unknown = count_tokens(texts, scorer)
    counts = unknown, int(sum(map(np.sum, tokens))) - sum(map(len, texts))
    warnings += doubt_scored(source, chain.from_iterable(texts), counts, scorer, lists=True)
    warnings += [*doubt_scores(nbests, weights, source), *find_useless(weights)]
    pairs = zip(nbests, tokens, strict=True)
    divisors = pad([find_divisors(name, nbest, counts) for nbest, counts in pairs], known)
    rest = combine([weights.features[other] for other in known.names], known.values)
    weight, line = weights.features[name], rest
    if bound:
        line = rest + weight * expect(nbests, known, pad(tokens, known), bound, path=path)
    exists = np.arange(rest.shape[1]) < np.array(list(map(len, texts)))[:, None]

    with contextlib.closing(open_cache(scorer, computing)) as cache:

        def score(rows: np.ndarray, places: np.ndarray) -> np.ndarray:
            chosen = [texts[row][place] for row, place in zip(rows, places, strict=True)]
            sums = score_texts(chosen, scorer, computing, cache).log_prob
            return sums / divisors[rows, places]

        most = bound.margin * margin if bound else np.inf
        lazily = score_lazily(rest, line, weight, exists, margin=most, score=score)
    values = dict(zip(known.names, known.values, strict=True)) | {name: lazily.values}
    totals = combine(weights.features.values(), np.stack([values[i] for i in weights.features]))
    if not weights.tuned and "words" in values:
        keep_silence(totals, values["words"])
    places = best(totals, np.where(exists.any(1)[:, None], lazily.scored, known.valid))
    return LazyChoice(places, int(lazily.scored.sum()), int(exists.sum()), tuple(warnings))


def gather_others(nbests: Sequence[NBest], columns: ScoreColumns, weights: Weights, name, source):
    others = {feature: w for feature, w in weights.features.items() if feature != name}
    derived = [feature for feature in (*LENGTHS, "rank") if feature in weights.features]
    known = gather(nbests, columns.values, source, derived)
    check(known, replace(weights, features=others), source)
    return known.select([*others])


def refuse_unfit(weights: Weights, name: str, nbests: Sequence[NBest], path) -> None:
    """Raise UserError where weights lack the column, or their folds have seen the lists."""
    if name not in weights.features:
        raise UserError(
            f"{path}: no weight for {name!r}: it has {', '.join(weights.features)}; give the column"
            " the name that it was tuned under, as in --lm NAME=DIR"
        )
    folds = weights.folds
    if folds and (held := folds.divide([nbest.utt for nbest in nbests])):
        count = sum(len(rows) for _, rows in held)
        raise UserError(
            f"{path}: {folds.describe()}, and {count} of the utterances are of a fold: the bound of"
            " lazy rescoring was learnt on them; score all with lmtools score, and give --scores"
        )


def count_tokens(texts: Sequence[Sequence[str]], scorer) -> tuple[list[np.ndarray], int]:
    """Return the tokens of each text, its end counted (texts,) a list, and the unknown of all."""
    sentences, which = prepare_distinct(list(chain.from_iterable(texts)), scorer.prepare)
    counts, unknown = count_scored(scorer, sentences)
    parts = np.split(counts[which], np.cumsum(list(map(len, texts)))[:-1])
    return parts, int(unknown[which].sum())


def measure_choice(chosen: Sequence[NBest], metric: str) -> float | None:
    """Return the metric of the first hypotheses; None where a list has no reference."""
    if any(nbest.ref is None for nbest in chosen):
        return None
    statistics = padded_statistics(chosen, metric, "lists")
    return float(METRICS[metric].score(statistics[:, 0].sum(0)))


@dataclass(frozen=True)
class SessionContext:
    """What is read before an utterance: up to `tokens` of those before it in its session
    (`find_sessions`). `origin`: `first` (the recogniser's words), `ref`, or the path of weights,
    which choose one utterance after the other.
    """

    tokens: int
    origin: str | Weights = FIRST
    sessions: str | None = None

    @property
    def signature(self) -> dict[str, str]:
        known = self.origin if self.origin in (FIRST, REF) else RESCORED
        return {CONTEXT: f"{self.tokens} tokens", ORIGIN: known}


def score_in_context(
    nbests: Sequence[NBest], model: Scorer, computing: Computing, context: SessionContext
) -> tuple[TextScores, int]:
    """Return the scores of all hypotheses by a model, list by list, and the number of sessions. By
    weights, sessions go on side by side, an utterance at a time. What a killed run computed is in
    the cache.
    """
    sessions = find_sessions(nbests, context.sessions)
    scorer = model if isinstance(model, ContextScorer) else ContextScorer(model)
    with contextlib.closing(open_cache(scorer, computing)) as cache:
        if context.origin in (FIRST, REF):
            if context.origin == FIRST:
                texts = [nbest.hyps[0].text if nbest.hyps else "" for nbest in nbests]
            else:
                refs = map(reference, nbests)
                texts = [ref if isinstance(ref, str) else ref[0] for ref in refs]
            contexts = list_contexts(texts, sessions, scorer, context.tokens)
            pairs = pair_contexts(nbests, contexts, scorer)
            scores = score_texts(pairs, scorer, computing, cache)
        else:
            choose = read_chooser(nbests, context.origin)
            histories = [History(scorer, context.tokens) for _ in sessions]
            opened = scorer, computing, cache
            scores = score_in_order(nbests, sessions, histories, opened, choose=choose)
    return replace(scores, signature={**scores.signature, **context.signature}), len(sessions)


def pair_contexts(
    nbests: Sequence[NBest], contexts: Sequence[str], scorer: ContextScorer
) -> list[tuple[str, str]]:
    """Return (what the scorer reads first, text) of each hypothesis."""
    pairs = []
    for nbest, before in zip(nbests, contexts, strict=True):
        read = scorer.read_before(nbest, before)
        pairs += [(read, hyp.text) for hyp in nbest.hyps]
    return pairs


Chooser = Callable[[int, np.ndarray, np.ndarray], int]


def read_chooser(nbests: Sequence[NBest], given: str | Weights) -> Chooser:
    """Return what chooses a hypothesis of a list, given (place of the list, its log-probabilities,
    tokens), by weights, or those in a file, of which the model is the one column that lists lack.
    """
    path = "the weights" if isinstance(given, Weights) else given
    weights = given if isinstance(given, Weights) else Weights.load(given)
    known = {name for nbest in nbests for hyp in nbest.hyps for name in hyp.scores}
    scored = [name for name in weights.features if name in weights.signatures]
    lacking = [name for name in scored if name not in known]
    if len(lacking) != 1:
        raise UserError(
            f"{path}: has weights of {', '.join(weights.features)}; all columns but that of the"
            f" model have to be in the lists, and {', '.join(lacking) or 'none'} is missing there"
        )
    name = lacking[0]
    refuse_unfit(weights, name, nbests, path)
    others = gather_others(nbests, ScoreColumns({}, {}, {}, {}), weights, name, source=path)
    rest = combine([weights.features[other] for other in others.names], others.values)

    def choose(place: int, log_prob: np.ndarray, tokens: np.ndarray) -> int:
        divisors = find_divisors(name, nbests[place], tokens)
        total = rest[place, : len(log_prob)] + weights.features[name] * log_prob / divisors
        return int(best(total[None], np.ones((1, len(total)), dtype=bool))[0])

    return choose


def score_in_order(
    nbests: Sequence[NBest],
    sessions: Sequence[Sequence[int]],
    histories: Sequence[History],
    model: tuple[ContextScorer, Computing, Cache],
    choose: Chooser,
) -> TextScores:
    """Return the scores of all hypotheses, each list behind what was chosen before it."""
    scorer, computing, cache = model
    bounds = np.cumsum([0, *(len(nbest.hyps) for nbest in nbests)])
    columns = np.zeros(bounds[-1]), np.zeros(bounds[-1], np.int64), np.zeros(bounds[-1], np.int64)
    for turn in itertools.zip_longest(*sessions):
        pairs = zip(turn, histories, strict=True)
        here = [(place, history) for place, history in pairs if place is not None]
        lists = [nbests[place] for place, _ in here]
        texts = pair_contexts(lists, [history.context() for _, history in here], scorer)
        scores, begin = score_texts(texts, scorer, computing, cache), 0
        for (place, history), nbest in zip(here, lists, strict=True):
            rows, own = slice(*bounds[place : place + 2]), slice(begin, begin + len(nbest.hyps))
            begin = own.stop
            for column, name in zip(columns, ("log_prob", "tokens", "unknown"), strict=True):
                column[rows] = getattr(scores, name)[own]
            if nbest.hyps:
                chosen = choose(place, scores.log_prob[own], scores.tokens[own])
                history.add(nbest.hyps[chosen].text)
    return TextScores(*columns, kind=scorer.kind, signature=scorer.signature)
