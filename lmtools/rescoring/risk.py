"""Minimum Bayes risk: what a hypothesis is expected to be worth, when any hypothesis of its list
may be the right one.

Choosing the highest expected utility is minimum Bayes risk decoding over an N-best list (Kumar and
Byrne 2004 for translation). It is a column as a language model's is: tuned, combined and reported
like one.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.evaluate.fit import are_positive
from lmtools.evaluate.pairs import pair_gains, sentence_signature
from lmtools.formats.edits import SYSTEM
from lmtools.rescoring.features import FAR, REFERENCES, gather
from lmtools.types import Hypothesis, NBest, ScoreTable
from lmtools.version import __version__

UNIFORM = "uniform"
RISING = 0.6  # share of lists whose last score is higher than the first, if scores are costs


@dataclass
class PosteriorDoubts:
    """What lists say against the score of their own that makes the posterior, one by one."""

    name: str = ""
    alone: bool = False
    signs: list[bool] = field(default_factory=list)
    rising: list[bool] = field(default_factory=list)
    far: list[str] = field(default_factory=list)

    def add(self, nbest: NBest, name: str, values: np.ndarray) -> None:
        """Look at a list as it was read and the values of the score `name`."""
        self.name = name
        self.alone |= name == "am" and "graph" in nbest.hyps[0].scores
        self.signs.append(are_positive(values))
        self.far += [nbest.utt for hyp in nbest.hyps if abs(hyp.scores.get(name, 0)) > FAR]
        if len(values) > 1:
            self.rising.append(bool(values[-1] > values[0]))

    def describe(self, source) -> Iterator[str]:
        """Yield warnings about the lists read from `source`, with what to do."""
        tune = "lmtools tune --nbest DEV --out W.json"
        use = "give --weights W.json, or lists that lmtools rescore --nbest-out wrote with them"
        if self.rising and all(self.signs) and np.mean(self.rising) > RISING:
            yield (
                f"warning: {source}: {self.name!r} has the sign of costs: its values are positive,"
                " and grow down the lists, whose last hypotheses so are the most probable; turn it"
                f" round: {tune} --fix {self.name}=-1, and {use}"
            )
        if self.far:
            yield (
                f"warning: {source}: {len(self.far):,} values of {self.name!r} (first in"
                f" {self.far[0]!r}) are beyond {FAR:g}: no score; each counts as the least (or"
                " greatest) other one of its list"
            )
        if self.alone:
            yield (
                f"warning: {source}: posteriors are of 'am' alone, without 'graph'; weigh both:"
                f" {tune}, and {use}"
            )


@dataclass(frozen=True)
class Risk:
    """Settings of expected utilities: the metric, and the posterior softmax(scale * score) over the
    first `depth` of a list.

    `score` names a component of the lists; None is `am`, else `score`, else the place in the list,
    else the first. Indicators of systems are no scores: where lists hold nothing else, all
    hypotheses of as many systems are alike (UNIFORM).
    """

    utility: str = "bleu"
    scale: float = 1.0
    score: str | None = None
    depth: int | None = None


def minimum_risk(nbests: Sequence[NBest], risk: Risk, source) -> ScoreTable:
    """Compute each hypothesis' expected utility in the units of `pair_gains`, higher is better;
    UserError without a finite score for the posterior.
    """
    name, scores = posterior_scores(nbests, risk.score, source)
    doubts = PosteriorDoubts()
    table = ScoreTable({}, {}, signature(risk, name))
    for nbest, values in zip(nbests, scores, strict=True):
        if nbest.hyps:
            doubts.add(nbest, name, values)
        texts = [hyp.text for hyp in nbest.hyps]
        table.log_prob[nbest.utt] = expected_utility(
            texts, posterior(values[: risk.depth], risk.scale), risk.utility
        )
        table.tokens[nbest.utt] = np.array([len(text.split()) for text in texts], dtype=np.int64)
    say_lines(doubts.describe(source))
    return table


def posterior_scores(
    nbests: Sequence[NBest], name: str | None, source
) -> tuple[str, list[np.ndarray]]:
    """Return the name of the posterior's score, and its values (hypotheses,) a list."""
    features = gather(nbests, {}, source, derived=())
    name = name or next(
        (
            candidate
            for candidate in (*REFERENCES, *features.names)
            if candidate in features.names and not candidate.startswith(SYSTEM)
        ),
        UNIFORM,
    )
    if name == UNIFORM and name not in features.names:
        return name, [np.array([count_votes(hyp) for hyp in nbest.hyps]) for nbest in nbests]
    if name not in features.names:
        raise UserError(
            f"{source}: has no score {name!r}; give --score one of {', '.join(features.names)}"
        )
    return name, [
        row[: len(nbest.hyps)] for nbest, row in zip(nbests, features.column(name), strict=True)
    ]


def count_votes(hyp: Hypothesis) -> float:
    """Return the log of how many systems of a pool gave a hypothesis."""
    return math.log(sum(v for name, v in hyp.scores.items() if name.startswith(SYSTEM)) or 1)


def signature(risk: Risk, name: str) -> dict[str, str]:
    """Return the signature by which the scores can be computed again."""
    depth = {"depth": str(risk.depth)} if risk.depth else {}
    return {
        "lm": "none",
        "model": f"mbr-{risk.utility}",
        "utility": sentence_signature(risk.utility),
        "scale": repr(float(risk.scale)),
        "posterior": name,
        **depth,
        "version": __version__,
    }


def posterior(scores: np.ndarray, scale: float) -> np.ndarray:
    """Compute softmax(scale * scores) (hypotheses,), to the bit the same in any order."""
    if not len(scores):
        return scores
    with np.errstate(over="ignore"):  # a huge scale leaves the best alone
        weights = np.exp(scale * (scores - scores.max()))
    return weights / math.fsum(weights)


def expected_utility(texts: Sequence[str], posterior: np.ndarray, utility: str) -> np.ndarray:
    """Compute sum_j posterior[j] utility(text i, reference text j) (hypotheses,): equal texts once,
    and in an order of which no bit depends on the list's.
    """
    places = {text: place for place, text in enumerate(sorted(set(texts)))}
    mass = np.zeros(len(places))
    for text, weight in sorted(zip(texts, posterior.tolist(), strict=False)):
        mass[places[text]] += weight
    refs = np.flatnonzero(mass)
    if not len(refs):
        return np.zeros(0)
    values = (pair_gains(utility, list(places), refs) * mass[refs]).sum(-1)
    return values[[places[text] for text in texts]]
