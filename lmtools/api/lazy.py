"""Lazy rescoring: a language model scores only the hypotheses that may still win."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmtools.batching import prepare_distinct
from lmtools.computing import Computing
from lmtools.errors import UserError
from lmtools.evaluate import METRICS
from lmtools.rescoring import DERIVED, ScoreColumns, Weights, check_signatures, gather
from lmtools.rescoring.apply import check
from lmtools.rescoring.features import best, combine
from lmtools.rescoring.lazy import expect, mean_counts, pad, read_bound, score_lazily
from lmtools.rescoring.tuning import padded_statistics
from lmtools.score import load, score_texts
from lmtools.score.run import open_cache
from lmtools.specs import LMSpec
from lmtools.types import NBest


@dataclass(frozen=True)
class LazyChoice:
    """The place of each list's best hypothesis (utterances,), 0 in an empty one; how many of the
    hypotheses were scored, and warnings.
    """

    places: np.ndarray
    scored: int
    hypotheses: int
    warnings: tuple[str, ...]


def choose_lazily(
    nbests: Sequence[NBest],
    columns: ScoreColumns,
    name: str,
    spec: LMSpec,
    computing: Computing,
    weights: Weights,
    margin: float,
    source,
    path,
) -> LazyChoice:
    """Choose hypotheses of lists read from `source` by `weights`, read from `path`; the model of
    `spec` scores the column `name` as far as it must, `columns` are the others.

    `margin` is in units of the bound's that the weights note; infinity scores every hypothesis and
    needs none. UserError as of `lmtools rescore`, and for utterances that a fold holds.
    """
    refuse_unfit(weights, name, nbests, path)
    bound = None if margin == np.inf else read_bound(weights, name, path)
    derived = [one for one in (*DERIVED, "rank") if one in weights.features]
    known = gather(nbests, columns.values, source, derived)
    check(known, replace(weights, features=without(weights, name)), source)
    known = known.select([*without(weights, name)])
    scorer = load(spec, computing)
    own = ScoreColumns({name: []}, {name: scorer.signature}, {name: spec.lm}, {})
    warnings = [*columns.warn_unchecked(), *known.warnings]
    warnings += check_signatures(weights, columns, path) + check_signatures(weights, own, path)

    texts = [[hyp.text for hyp in nbest.hyps] for nbest in nbests]
    tokens = count_tokens(texts, scorer)
    by_utterance = dict(zip((nbest.utt for nbest in nbests), tokens, strict=True))
    divisors = pad([*mean_counts(nbests, name, by_utterance)], known)
    rest = combine([weights.features[one] for one in known.names], known.values)
    weight, line = weights.features[name], rest
    if bound:
        line = rest + weight * expect(nbests, known, pad(tokens, known), bound, path)
    exists = np.arange(rest.shape[1]) < np.array([len(own) for own in texts])[:, None]

    with contextlib.closing(open_cache(scorer, computing)) as cache:

        def score(rows: np.ndarray, places: np.ndarray) -> np.ndarray:
            some = [texts[row][place] for row, place in zip(rows, places, strict=True)]
            sums = score_texts(some, scorer, computing, cache).log_prob
            return sums / divisors[rows, places]

        most = bound.margin * margin if bound else np.inf
        found = score_lazily(rest, line, weight, exists, most, score)
    order = [*weights.features]
    values = dict(zip(known.names, known.values, strict=True)) | {name: found.values}
    totals = combine(weights.features.values(), np.stack([values[one] for one in order]))
    places = best(totals, np.where(exists.any(1)[:, None], found.scored, known.valid))
    return LazyChoice(places, int(found.scored.sum()), int(exists.sum()), tuple(warnings))


def refuse_unfit(weights: Weights, name: str, nbests: Sequence[NBest], path) -> None:
    """UserError where the weights do not have the column, or are cross-validated and have seen the
    lists.
    """
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


def without(weights: Weights, name: str) -> dict[str, float]:
    """Return the weights of all other features."""
    return {one: weight for one, weight in weights.features.items() if one != name}


def count_tokens(texts: Sequence[Sequence[str]], scorer) -> list[np.ndarray]:
    """Return the tokens of each text, its end counted (texts,) a list."""
    flat = [text for own in texts for text in own]
    sentences, which = prepare_distinct(flat, scorer.prepare)
    counts = np.array([len(scorer.unknown(one)) + 1 for one in sentences], dtype=np.int64)[which]
    return np.split(counts, np.cumsum([len(own) for own in texts])[:-1])


def measure_choice(chosen: Sequence[NBest], metric: str) -> float | None:
    """Return the metric of the first hypotheses; None where a list has no reference."""
    if any(nbest.ref is None for nbest in chosen):
        return None
    statistics = padded_statistics(chosen, metric, "lists")
    return float(METRICS[metric].score(statistics[:, 0].sum(0)))
