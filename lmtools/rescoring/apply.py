"""Rescoring: lists in the order of tuned totals."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lmtools.base.errors import UserError
from lmtools.rescoring.features import Features, ScoreColumns, combine
from lmtools.rescoring.weights import Weights
from lmtools.types import NUMERICS, TOTAL, NBest

# Keys of a signature that change the rounding of scores at most.
ROUNDING = frozenset({*NUMERICS, "engine", "levels", "version"})
# Keys whose change is said, and no error: whose words a context has
SAID = frozenset({"context_from"})
VERSIONS = re.compile(r"\b(version:|by:)[^|]*")  # in the signature of a metric


def rescore(nbests: Sequence[NBest], features: Features, weights: Weights, source) -> list[NBest]:
    """Rescore lists: best total first and equals in their old order; scores are all features and
    `total`. Utterances of a fold are chosen for by its weights, which did not see them.

    UserError about `source` unless the features are exactly those of the weights.
    """
    check(features, weights, source)
    totals = weighted_totals([nbest.utt for nbest in nbests], features, weights)
    return [reordered(nbest, features, row, totals[row]) for row, nbest in enumerate(nbests)]


def weighted_totals(utterances: Sequence[str], features: Features, weights: Weights) -> np.ndarray:
    """Return the total of each hypothesis (utterances, hypotheses), with weight 0 for features that
    have none: by the weights of an utterance's fold, else by those of the whole set.
    """

    def total(weight: Mapping[str, float], values: np.ndarray) -> np.ndarray:
        return combine([weight.get(name, 0.0) for name in features.names], values)

    totals = total(weights.features, features.values)
    for part, rows in weights.folds.divide(utterances) if weights.folds else ():
        totals[rows] = total(part, features.values[:, rows])
    if not weights.tuned and "words" in features.names:
        keep_silence(totals, features.values[features.names.index("words")])
    return totals


def keep_silence(totals: np.ndarray, words: np.ndarray) -> None:
    """Let no words win (in place) where the first of a list, the recogniser's own answer, has none:
    default weights pay for each word, and no references say that a noise is one.
    """
    silent = words[:, 0] == 0
    totals[silent, 1:] = np.minimum(totals[silent, 1:], totals[silent, :1])


def check(features: Features, weights: Weights, source) -> None:
    """Raise UserError that names features without weight and weights without feature."""
    missing = [name for name in weights.features if name not in features.names]
    extra = [name for name in features.names if name not in weights.features]
    tuned = f"the weights were tuned on {weights.dev.path} with {', '.join(weights.features)}"
    if missing:
        raise UserError(
            f"{source}: no feature {', '.join(missing)}: {tuned}; give --scores NAME=FILE for each"
            " that the lists lack"
        )
    if extra:
        remedy = "leave it out, or tune with it (there --fix NAME=0 ignores it)"
        raise UserError(f"{source}: no weight for {', '.join(extra)}: {tuned}; {remedy}")


def check_signatures(weights: Weights, columns: ScoreColumns, path) -> list[str]:
    """Return warnings on columns other than those that `weights`, read from `path`, were tuned on.

    UserError where one surely is: of another model, vocabulary, normalisation, penalty, utility.
    """
    warnings, unknown = [], []
    if not weights.tuned:
        return warnings
    for name in (name for name in columns.signatures if name in weights.features):
        if name not in weights.signatures:
            unknown.append(name)
            continue
        tuned, given = weights.signatures[name], columns.signatures[name]
        keys = [
            key for key in sorted(tuned.keys() | given.keys()) if tuned.get(key) != given.get(key)
        ]
        changes = ", ".join(f"{key} {show(given, key)} for {show(tuned, key)}" for key in keys)
        if any(significant(key, tuned, given) for key in keys):
            remedy = (
                "give the scores of the model that it was tuned with, made with the same options,"
                " or tune with these"
            )
            raise UserError(
                f"{columns.paths[name]}: not of what {path} was tuned on as {name!r}: {changes};"
                f" {remedy}"
            )
        if keys:
            warnings.append(
                f"warning: {columns.paths[name]}: made otherwise than what {path} was tuned on as"
                f" {name!r}: {changes}"
            )
    if unknown:
        warnings.append(
            f"warning: {path}: does not say which scores {', '.join(unknown)} was tuned on, so"
            " nothing tells whether these fit"
        )
    return warnings


def significant(key: str, tuned: Mapping, given: Mapping) -> bool:
    """Return whether two values that differ mean other scores, not only other rounding or another
    version of the same.
    """
    return key not in ROUNDING | SAID and VERSIONS.sub("", str(tuned.get(key))) != VERSIONS.sub(
        "", str(given.get(key))
    )


def show(signature: Mapping, key: str) -> str:
    """Return a value of a signature for a message."""
    return repr(signature[key]) if key in signature else "nothing"


def reordered(nbest: NBest, features: Features, row: int, totals: np.ndarray) -> NBest:
    """Sort one list by total; give its hypotheses all features and `total`."""
    order = np.argsort(-totals[: len(nbest.hyps)], kind="stable")
    names = (*features.names, TOTAL)
    columns = (*features.values[:, row, order].tolist(), totals[order].tolist())
    hyps = (
        nbest.hyps[place].with_scores(dict(zip(names, values, strict=True)))
        for place, *values in zip(order.tolist(), *columns, strict=True)
    )
    return replace(nbest, hyps=tuple(hyps))
