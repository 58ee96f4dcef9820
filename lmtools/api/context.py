"""Lists scored in the context of the utterances before them, by session."""

import contextlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmtools.api.lazy import gather_others, refuse_unfit
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.evaluate.nbest import reference
from lmtools.formats.sessions import find_sessions
from lmtools.rescoring import ScoreColumns, Weights, check_signatures
from lmtools.rescoring.features import best, combine, find_divisors
from lmtools.score import score_texts
from lmtools.score.base import Scorer
from lmtools.score.cache import Cache
from lmtools.score.context import (
    CONTEXT,
    FIRST,
    ORIGIN,
    REF,
    RESCORED,
    ContextScorer,
    History,
    list_contexts,
)
from lmtools.score.texts import TextScores, open_cache
from lmtools.types import NBest


@dataclass(frozen=True)
class SessionContext:
    """What is read before an utterance: up to `tokens` of the utterances before it in its session.

    `origin` is whose words they are: `first`: the recogniser's; `ref`: the references, which shows
    what errors in the context cost; or the path of weights: the hypotheses that these choose, one
    utterance after the other. `sessions`: as of `find_sessions`.
    """

    tokens: int
    origin: str | Weights = FIRST
    sessions: str | None = None

    @property
    def signature(self) -> dict[str, str]:
        """Return the entries for the header of scores."""
        known = self.origin if self.origin in (FIRST, REF) else RESCORED
        return {CONTEXT: f"{self.tokens} tokens", ORIGIN: known}


def score_in_context(
    nbests: Sequence[NBest],
    model: Scorer,
    computing: Computing,
    context: SessionContext,
    columns: ScoreColumns | None = None,
) -> tuple[TextScores, int]:
    """Return the scores of all hypotheses by a model, list by list, and the number of sessions.

    By weights, the utterances of a session are scored and chosen in their order, those of all
    sessions at a place together. What a killed run computed is in the cache; the same command gives
    the same scores. `columns`: other columns of the weights.
    """
    sessions = find_sessions(nbests, context.sessions)
    scorer = ContextScorer(model)
    with contextlib.closing(open_cache(scorer, computing)) as cache:
        if context.origin in (FIRST, REF):
            texts = first_texts(nbests) if context.origin == FIRST else reference_texts(nbests)
            contexts = list_contexts(texts, sessions, scorer, context.tokens)
            pairs = pair_contexts(nbests, contexts)
            scores = score_texts(pairs, scorer, computing, cache)
        else:
            choose = read_chooser(nbests, columns, context.origin)
            opened = scorer, computing, cache
            scores = score_in_order(nbests, sessions, opened, context, choose=choose)
    return replace(scores, signature={**scores.signature, **context.signature}), len(sessions)


def first_texts(nbests: Sequence[NBest]) -> list[str]:
    """Return the recogniser's own answer to each utterance."""
    return [nbest.hyps[0].text if nbest.hyps else "" for nbest in nbests]


def reference_texts(nbests: Sequence[NBest]) -> list[str]:
    """Return the first reference of each utterance; UserError for lists without."""
    refs = map(reference, nbests)
    return [ref if isinstance(ref, str) else ref[0] for ref in refs]


def pair_contexts(nbests: Sequence[NBest], contexts: Sequence[str]) -> list[tuple[str, str]]:
    """Return each hypothesis behind the context of its list."""
    return [
        (before, hyp.text)
        for nbest, before in zip(nbests, contexts, strict=True)
        for hyp in nbest.hyps
    ]


Chooser = Callable[[int, np.ndarray, np.ndarray], int]


def read_chooser(
    nbests: Sequence[NBest], columns: ScoreColumns | None, given: str | Weights
) -> Chooser:
    """Return what chooses a hypothesis of a list, given (place of the list, its log-probabilities,
    tokens), by weights, or those in a file, of which the model is the one column that lists lack.
    """
    path = "the weights" if isinstance(given, Weights) else given
    weights = given if isinstance(given, Weights) else Weights.load(given)
    columns = columns or ScoreColumns({}, {}, {}, {})
    known = {name for nbest in nbests for hyp in nbest.hyps for name in hyp.scores}
    known |= columns.values.keys()
    scored = [name for name in weights.features if name in weights.signatures]
    lacking = [name for name in scored if name not in known]
    if len(lacking) != 1:
        raise UserError(
            f"{path}: has weights of {', '.join(weights.features)}; all columns but that of the"
            f" model have to be in the lists, and {', '.join(lacking) or 'none'} is missing there"
        )
    name = lacking[0]
    refuse_unfit(weights, name, nbests, path)
    check_signatures(weights, columns, path)
    others = gather_others(nbests, columns, weights, name, source=path)
    rest = combine([weights.features[other] for other in others.names], others.values)

    def choose(place: int, log_prob: np.ndarray, tokens: np.ndarray) -> int:
        divisors = find_divisors(name, nbests[place], tokens)
        total = rest[place, : len(log_prob)] + weights.features[name] * log_prob / divisors
        return int(best(total[None], np.ones((1, len(total)), dtype=bool))[0])

    return choose


def score_in_order(
    nbests: Sequence[NBest],
    sessions: Sequence[Sequence[int]],
    model: tuple[ContextScorer, Computing, Cache],
    context: SessionContext,
    choose: Chooser,
) -> TextScores:
    """Return the scores of all hypotheses, each list behind what was chosen before it."""
    scorer, computing, cache = model
    parts: list[TextScores | None] = [None] * len(nbests)
    histories = [History(scorer, context.tokens) for _ in sessions]
    for turn in itertools.zip_longest(*sessions):
        here = [
            (place, history)
            for place, history in zip(turn, histories, strict=True)
            if place is not None
        ]
        lists = [nbests[place] for place, _ in here]
        pairs = pair_contexts(lists, [history.context() for _, history in here])
        scores = score_texts(pairs, scorer, computing, cache)
        begin = 0
        for (place, history), nbest in zip(here, lists, strict=True):
            rows = slice(begin, begin + len(nbest.hyps))
            parts[place] = take_rows(scores, rows)
            if nbest.hyps:
                chosen = choose(place, scores.log_prob[rows], scores.tokens[rows])
                history.add(nbest.hyps[chosen].text)
            begin = rows.stop
    known = [part for part in parts if part is not None]
    columns = ("log_prob", "tokens", "unknown")
    values = (np.concatenate([getattr(part, name) for part in known]) for name in columns)
    return TextScores(*values, kind=scorer.kind, signature=scorer.signature)


def take_rows(scores: TextScores, rows: slice) -> TextScores:
    """Return some rows of scores."""
    return replace(
        scores,
        log_prob=scores.log_prob[rows],
        tokens=scores.tokens[rows],
        unknown=scores.unknown[rows],
    )
