"""Choosing that asks a language model on its way: only for the hypotheses that may still win."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from lmtools.base.batching import prepare_distinct
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.evaluate.metrics import METRICS
from lmtools.rescoring.defaults import doubt_scores
from lmtools.rescoring.features import LENGTHS, ScoreColumns, best, combine, find_divisors, gather
from lmtools.rescoring.lazy import expect, pad, read_bound, score_lazily
from lmtools.rescoring.lists import check, check_signatures, keep_silence
from lmtools.rescoring.tuning import padded_statistics
from lmtools.rescoring.weights import Weights, find_useless
from lmtools.score import load, score_texts
from lmtools.score.lists import doubt_scored
from lmtools.score.texts import count_scored, open_cache
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
