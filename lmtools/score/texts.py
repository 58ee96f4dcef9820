"""Scores of any number of texts, in input order: deduplicated, cached, planned, and spread over
processes.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from tqdm import tqdm

from lmtools.errors import UserError
from lmtools.score.base import Scorer
from lmtools.score.cache import Cache, cache_directory
from lmtools.score.planner import compute_all, plan_batches, score_batch
from lmtools.score.scorers import NgramScorer, load_scorer
from lmtools.workers import REMEDY, as_completed

WORTH_A_PROCESS = 100_000  # model rows; starting a process takes seconds


@dataclass(frozen=True)
class ScoreOptions:
    """Which language model scores, and how; the scores depend on the first five, their last bits on
    `device` and `rows` too.

    `normalise` none: log p up to normalisation. `oov_penalty`: nats that an unknown token costs
    beyond log p(<unk>).
    """

    lm: str
    precision: str = "float32"
    intact: bool = False
    normalise: str = "full"
    oov_penalty: float = 0.0
    device: str = "auto"
    nj: int = 1
    cache: str = "default"  # a directory, default (the user's cache directory) or none
    # model rows a batch, halved where they do not fit into memory; None: what suits the device
    rows: int | None = None

    def load(self) -> Scorer:
        """The scorer; UserError for an n-gram model that is not to normalise."""
        scorer = load_scorer(
            self.lm, self.device, self.precision, self.intact, self.normalise, self.rows
        )
        if isinstance(scorer, NgramScorer) and self.normalise != "full":
            raise UserError(
                f"{self.lm}: an n-gram model has no score without normalisation; leave"
                " --normalise out"
            )
        return scorer.with_oov_penalty(self.oov_penalty)

    def open_cache(self, scorer: Scorer) -> Cache:
        """The cache of what the scorer gives; to be closed."""
        return Cache(cache_directory(self.cache), scorer.signature)


@dataclass(frozen=True)
class TextScores:
    """Arrays over texts (N,): log-probability in nats with the end of sentence, tokens it sums
    over, unknown tokens among them.
    """

    log_prob: np.ndarray
    tokens: np.ndarray
    unknown: np.ndarray
    kind: str
    signature: dict[str, str]


def score_texts(
    texts: Sequence[str], scorer: Scorer, options: ScoreOptions, cache: Cache | None = None
) -> TextScores:
    """The scores of `texts`; equal texts get equal scores, whatever else is in the list (on a CPU;
    see lmtools.score.planner).

    `cache`: one that is open, for many calls; else that of the options is opened and closed.
    """
    sentences, which = distinct(texts, scorer.prepare)
    with (
        contextlib.nullcontext(cache) if cache else contextlib.closing(options.open_cache(scorer))
    ) as known:
        scores = score_sentences(sentences, scorer, options, known)
    out_of_vocabulary = [scorer.unknown(s) for s in sentences]
    lengths = np.array([len(one) + 1 for one in out_of_vocabulary], dtype=np.int64)
    unknown = np.array([one.sum() for one in out_of_vocabulary], dtype=np.int64)
    return TextScores(scores[which], lengths[which], unknown[which], scorer.kind, scorer.signature)


def distinct(
    texts: Sequence[str], prepare: Callable[[list[str]], list[tuple]]
) -> tuple[list[tuple], np.ndarray]:
    """The distinct sentences that `prepare` makes of `texts`, and which of them each text is, int64
    (N,).
    """
    number = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    prepared = prepare(list(number))
    sentences = list(dict.fromkeys(prepared))
    place = {sentence: i for i, sentence in enumerate(sentences)}
    return sentences, np.array([place[prepared[number[text]]] for text in texts], dtype=np.int64)


def score_sentences(
    sentences: list, scorer: Scorer, options: ScoreOptions, cache: Cache
) -> np.ndarray:
    """Log-probabilities (N,) of distinct prepared sentences, from the cache where it has them."""
    scores = np.full(len(sentences), np.nan)
    for i, value in cache.get(sentences).items():
        scores[i] = value
    missing = np.flatnonzero(np.isnan(scores)).tolist()
    plan = [
        [missing[i] for i in batch]
        for batch in plan_batches([scorer.cost(sentences[i]) for i in missing], scorer.rows)
    ]
    with tqdm(
        total=len(missing),
        desc=f"score {options.lm}",
        unit="text",
        disable=None,
        dynamic_ncols=True,
    ) as bar:
        for number, values in run(
            [[sentences[i] for i in batch] for batch in plan], scorer, options
        ):
            batch = plan[number]
            refuse_not_finite(values, [sentences[i] for i in batch], options.lm)
            scores[batch] = values
            cache.put((sentences[i], v) for i, v in zip(batch, values, strict=True))
            bar.update(len(batch))
    return scores


def run(
    work: list[list], scorer: Scorer, options: ScoreOptions
) -> Iterator[tuple[int, list[float]]]:
    """Pairs (number of a batch, the sums of its log-probabilities), as they are computed here or by
    `nj` processes.
    """
    rows = sum(scorer.cost(sentence) for batch in work for sentence in batch)
    processes = min(options.nj, len(work), rows // WORTH_A_PROCESS)
    if processes > 1:
        yield from as_completed(
            sums,
            work,
            processes,
            partial(load_alone, options),
            f"{REMEDY} or smaller batches (--rows)",
        )
    else:
        yield from enumerate(compute_all(scorer, work, partial(sums, scorer)))


def load_alone(options: ScoreOptions) -> Scorer:
    """The scorer of a worker process, in which one thread computes a batch, as everywhere."""
    torch.set_num_threads(1)
    return options.load()


def sums(scorer: Scorer, batch: list) -> list[float]:
    """One log-probability a sentence."""
    return [float(values.sum()) for values in score_batch(scorer, batch)]


def refuse_not_finite(values, sentences, lm: str) -> None:
    """A score that is NaN or infinite would silently win or lose every comparison."""
    for value, sentence in zip(values, sentences, strict=True):
        if not np.isfinite(value):
            raise UserError(
                f"{lm}: scores {value} for {' '.join(map(str, sentence))[:100]!r}; the model is"
                " damaged, train it again"
            )
