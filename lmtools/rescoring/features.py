"""The features that hypotheses are chosen by: one matrix a set, from the lists' own scores and the
columns of score files.

LENGTHS (the weight of `words` is the word insertion bonus) and, for lists without any scores,
`rank` are computed here.
"""

import functools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pairs
from lmtools.formats import scores
from lmtools.formats.scores import read_column_file
from lmtools.text.scripts import find_spacing, split_units
from lmtools.types import PHRASES, Hypothesis, NBest, ScoreTable

# The lengths of a hypothesis that may be features, by what cuts its text into words; characters as
# the metric CER counts them, one space between words.
LENGTHS: dict[str, Callable[[Hypothesis, Callable[[str], list[str]]], float]] = {
    "words": lambda hyp, split: len(split(hyp.text)),
    "characters": lambda hyp, split: len(words(hyp)),
    "log-words": lambda hyp, split: math.log1p(len(split(hyp.text))),
}
# The score of lists with new hypotheses of `lmtools network substitute`: minus the share of letters
# that differ from what the first pass has, 0 of its own hypotheses.
NEAR = "near"
# What the name of a column may end in: the counts (hypotheses,) by which the log-probabilities of a
# list are divided then, from the list and the tokens of its hypotheses.
MEANS: dict[str, Callable[[NBest, Sequence[float]], Sequence[float]]] = {
    "/token": lambda nbest, tokens: tokens,
    "/word": lambda nbest, tokens: [*measure_lengths([nbest], "words")[0]],
}
# The feature of weight 1 is the first of these: the acoustic score, a total, the place in the list.
REFERENCES = ("am", "score", "rank")
# beyond any log-probability, cost, duration or length: values that stand for "none" or "impossible"
FAR = 1e10
UNCHECKED = (
    "warning: {}: no hash of the lists that were scored (`lmtools score` writes one), so nothing"
    " tells whether these are they"
)


@dataclass(frozen=True)
class Features:
    """Values (features, utterances, hypotheses) padded with 0, and which of them exist (utterances,
    hypotheses).

    An empty list counts as one empty hypothesis whose features are 0, so that every utterance
    chooses something. `warnings` are lines about values that no score can have.
    """

    names: tuple[str, ...]
    values: np.ndarray
    valid: np.ndarray
    warnings: tuple[str, ...] = ()

    def column(self, name: str) -> np.ndarray:
        """Return the values of one feature (utterances, hypotheses)."""
        return self.values[self.names.index(name)]

    def select(self, names: Sequence[str]) -> "Features":
        """Select features, in the order of `names`; warnings are of all."""
        places = [self.names.index(name) for name in names]
        return replace(self, names=tuple(names), values=self.values[places])

    def take(self, rows: np.ndarray) -> "Features":
        return replace(self, values=self.values[:, rows], valid=self.valid[rows])


def rank_score(rank: int) -> float:
    """Return the stand-in for the score of the hypothesis at `rank` (from 0) where the recogniser
    gave none: -log(1 + rank).

    Score differences shrink down a list: on telephone speech this chose better than -rank (0.2%
    WER) and no worse than -sqrt(rank).
    """
    return -float(np.log1p(rank))


def ranks(nbests: Sequence[NBest]) -> list[list[float]]:
    """Return the feature `rank`."""
    return [[rank_score(rank) for rank in range(len(nbest.hyps))] for nbest in nbests]


@dataclass(frozen=True)
class ScoreColumns:
    """Columns of score files by name: log-probabilities (hypotheses,) a list, signature and path.
    `unchecked`: files that do not name their lists; `glossary`: what PHRASES was made with.
    """

    values: Mapping[str, list[np.ndarray]]
    signatures: Mapping[str, Mapping]
    paths: Mapping[str, str]
    unchecked: tuple[str, ...] = ()
    glossary: Any = None

    def select(self, names: Collection[str]) -> "ScoreColumns":
        """Select columns, in the order of `names`."""
        parts = (self.values, self.signatures, self.paths)
        unchecked = tuple(name for name in self.unchecked if name in names)
        chosen = ({name: part[name] for name in names} for part in parts)
        return ScoreColumns(*chosen, unchecked, self.glossary if PHRASES in names else None)

    def warn_unchecked(self, known: Collection[str] = ()) -> list[str]:
        """Return one line about the files of `unchecked`, those of `known` names apart."""
        paths = dict.fromkeys(self.paths[name] for name in self.unchecked if name not in known)
        return [UNCHECKED.format(", ".join(paths))] if paths else []


def read_columns(specs: Iterable[str], nbests: Sequence[NBest], source) -> ScoreColumns:
    """Read the column of each `NAME=FILE` (NAME/token, NAME/word: means) for the lists from
    `source`; UserError where a file was made of others.
    """
    # a file may stand there twice, for its sum and its mean
    read = functools.cache(functools.partial(read_column_file, nbests=nbests, source=source))
    example = "write for instance --scores tta=exp/score/tta/dev.scores"
    paths = parse_pairs(specs, "--scores", "NAME=FILE", example)
    for name, path in paths.items():
        if not summed(name):
            raise UserError(f"--scores {name}={path}: not NAME=FILE; {example}")
    return make_columns({name: read(path) for name, path in paths.items()}, paths, nbests, source)


def make_columns(
    tables: Mapping[str, ScoreTable], paths: Mapping[str, str], nbests: Sequence[NBest], source
) -> ScoreColumns:
    """Make the column of each name from its table, read from the path of that name."""
    columns = {
        name: scores.columns(table, nbests, paths[name], source) for name, table in tables.items()
    }
    return ScoreColumns(
        {
            n: take_mean(n, column, tables[n], nbests, path=paths[n])
            for n, column in columns.items()
        },
        {name: table.signature for name, table in tables.items()},
        paths,
        unchecked=tuple(name for name, table in tables.items() if table.lists is None),
    )


def summed(name: str) -> str:
    """Return the column of which `name` is a mean, `tta` of `tta/token`; else itself."""
    return next((name.removesuffix(end) for end in MEANS if name.endswith(end)), name)


def take_mean(
    name: str, column: list[np.ndarray], table: ScoreTable, nbests: Sequence[NBest], path
) -> list[np.ndarray]:
    """Divide log-probabilities as `find_divisors` says; UserError without tokens to divide by."""
    if name.endswith("/token") and not table.tokens and table.log_prob:
        raise UserError(
            f"--scores {name}: {path} has plain numbers, which say nothing of tokens; divide by"
            f" words ({summed(name)}/word), or give a score file"
        )
    return [
        values / find_divisors(name, nbest, table.tokens.get(nbest.utt, ()))
        for nbest, values in zip(nbests, column, strict=True)
    ]


def find_divisors(name: str, nbest: NBest, tokens: Sequence[float]) -> np.ndarray:
    """Return what a list's log-probabilities are divided by in the column `name` (hypotheses,):
    tokens or words, at least 1, or 1.
    """
    counts = MEANS.get(name.removeprefix(summed(name)))
    return np.ones(len(nbest.hyps)) if counts is None else np.maximum(counts(nbest, tokens), 1)


def gather(
    nbests: Sequence[NBest],
    columns: Mapping[str, Sequence[np.ndarray]],
    source,
    derived: Collection[str] = ("words",),
) -> Features:
    """Gather the features of `nbests`: their components (or `rank`), `columns`, and `derived` out
    of LENGTHS and `rank`, in this order.

    A component that is called like one of these takes the place of the built-in. Values
    beyond FAR count as the least (or greatest) other one of their list: one of -1e30 would else
    make all differences between ordinary values nothing. UserError about `source` where a name
    clashes, a component is missing from some hypotheses, a value is not finite, or all values of a
    list are beyond FAR, and not equal.
    """
    if not nbests:
        raise UserError(f"{source}: no utterances; give the recogniser's N-best lists")
    own_scores = components(nbests, source)
    for name in columns:
        if name in own_scores or name in LENGTHS or name == "rank":
            raise UserError(
                f"--scores {name}=...: {source} has a feature of this name already; choose another"
            )
    table = {
        name: [[hyp.scores[name] for hyp in nbest.hyps] for nbest in nbests] for name in own_scores
    }
    if not {*own_scores} - {NEAR}:
        table["rank"] = ranks(nbests)
    table |= columns
    if "rank" in derived and "rank" not in table:
        table["rank"] = ranks(nbests)
    table |= {name: measure_lengths(nbests, name) for name in derived if name not in table}
    return assemble(nbests, table, source)


def measure_lengths(nbests: Sequence[NBest], name: str) -> list[list[float]]:
    """Return one of LENGTHS of each hypothesis. Letters count as words where the lists as a whole
    are of a script without blanks between words; a few such hypotheses among others do not.
    """
    texts = (hyp.text for nbest in nbests for hyp in nbest.hyps)
    split = split_units if find_spacing(texts).language else str.split
    return [[LENGTHS[name](hyp, split) for hyp in nbest.hyps] for nbest in nbests]


def components(nbests: Sequence[NBest], source) -> list[str]:
    """Return the names of the lists' own scores; UserError where one lacks."""
    names = list(
        dict.fromkeys(name for nbest in nbests for hyp in nbest.hyps for name in hyp.scores)
    )
    for nbest in nbests:
        for rank, hyp in enumerate(nbest.hyps, 1):
            if lacking := [name for name in names if name not in hyp.scores]:
                which = f"hypothesis {rank} of utterance {nbest.utt!r}"
                raise UserError(
                    f"{source}: {which} has no score {lacking[0]!r}; give it to all hypotheses or"
                    " to none"
                )
    return names


def assemble(
    nbests: Sequence[NBest], table: Mapping[str, Sequence[Sequence[float]]], source
) -> Features:
    """Make padded features from one sequence of values a list and name."""
    lengths = np.array([len(nbest.hyps) for nbest in nbests])
    depth = max(1, lengths.max())
    exists = np.arange(depth) < lengths[:, None]  # (U, K)
    values, warnings = np.zeros((len(table), *exists.shape)), []
    for column, (name, lists) in zip(values, table.items(), strict=True):
        column[exists] = np.fromiter(
            (value for row in lists for value in row), np.float64, lengths.sum()
        )
        if not np.isfinite(column).all():
            which, _ = find_first(~np.isfinite(column), name, nbests)
            raise UserError(f"{source}: {which} is no finite number; score it again")
        far = np.abs(column) > FAR
        if far.any():
            which, (utterance, rank) = find_first(far, name, nbests)
            more = f", and {far.sum() - 1} more are like it" if far.sum() > 1 else ""
            warnings.append(
                f"warning: {source}: {which} is {column[utterance, rank]:g}{more}: no score; each"
                " counts as the least (or greatest) other one of its list"
            )
            lost = (far | ~exists).all(1)[:, None] & exists & (column != column[:, :1])
            if lost.any():
                which, _ = find_first(lost, name, nbests)
                raise UserError(
                    f"{source}: {which} is too large, as all of its list: they would count as"
                    " equal; divide them all by one number"
                )
            tame(column, far, exists)
    return Features(
        tuple(table), values, np.arange(depth) < np.maximum(lengths, 1)[:, None], tuple(warnings)
    )


def find_first(where: np.ndarray, name: str, nbests: Sequence[NBest]) -> tuple[str, np.ndarray]:
    utterance, rank = place = np.argwhere(where)[0]
    which = f"hypothesis {rank + 1} of utterance {nbests[utterance].utt!r}"
    return f"feature {name!r} of {which}", place


def tame(column: np.ndarray, far: np.ndarray, exists: np.ndarray) -> None:
    """Put the least other value of a list in place of those `far` below 0, else the greatest."""
    ordinary = exists & ~far
    has_ordinary = ordinary.any(1)
    ends = [
        np.where(has_ordinary, end(np.where(ordinary, column, out), axis=1), 0)
        for end, out in ((np.min, np.inf), (np.max, -np.inf))
    ]
    low, high = (np.broadcast_to(end[:, None], column.shape) for end in ends)
    column[far] = np.where(column < 0, low, high)[far]


def combine(weights: Iterable[float], values: np.ndarray) -> np.ndarray:
    """Compute weighted sums (utterances, hypotheses), feature by feature: equal hypotheses get
    equal sums, which a matrix product does not give.
    """
    total = np.zeros(values.shape[1:])
    for weight, column in zip(weights, values, strict=True):
        total += weight * column
    return total


def best(totals: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return the place of each list's highest total (utterances,), the earlier one of equals."""
    return np.where(valid, totals, -np.inf).argmax(-1)


def deviate(column: np.ndarray, valid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a column less each list's mean, and the lists (utterances,) where it varies."""
    means = column.sum(1, where=valid) / valid.sum(1)
    varies = np.ptp(np.where(valid, column, column[:, :1]), axis=1) > 0
    return np.where(valid, column - means[:, None], 0), varies


def own_hypotheses(features: Features) -> Features:
    """Return features of the first pass's own hypotheses alone; themselves without NEAR."""
    if NEAR not in features.names:
        return features
    return replace(features, valid=features.valid & (features.column(NEAR) >= 0))


def words(hyp: Hypothesis) -> str:
    return " ".join(hyp.text.split())
