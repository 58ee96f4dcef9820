"""N-best lists and texts scored: read, each distinct sentence computed once, here or by several
processes, unless a cache knows it, and written.
"""

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lmtools.base.batching import prepare_distinct
from lmtools.base.computing import Computing
from lmtools.base.context import LOCAL, current
from lmtools.base.errors import UserError
from lmtools.base.log import say
from lmtools.base.specs import LMSpec
from lmtools.base.workers import REMEDY, as_completed, can_fork
from lmtools.formats import kaldi_tables, scores, stream
from lmtools.formats.registry import parse_specifier
from lmtools.score.base import Scorer
from lmtools.score.cache import Cache, cache_directory
from lmtools.score.compute import compute_all, compute_missing, score_batch
from lmtools.score.load import load
from lmtools.score.sources import Sources
from lmtools.text.unknown import LOOKED_AT, MANY, warn_unknown
from lmtools.types import NBest

WORTH_A_PROCESS = 100_000  # model rows; starting a process takes seconds
WORTH_A_FORK = 10_000  # and a fork of this one milliseconds
FORKED = ("score", "ppl")  # verbs with forks in the place of threads, which wait for each other
WRITTEN = {"text": "written"}  # in signatures: scores are of what the recogniser wrote
TOGETHER = 200_000  # hypotheses, at least, of a file that are in memory and share their beginnings


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


@dataclass
class Totals:
    """Numbers of scored utterances, hypotheses, tokens and unknown tokens."""

    utterances: int = 0
    hypotheses: int = 0
    tokens: int = 0
    unknown: int = 0

    def add(self, utterances: int, scores: TextScores) -> None:
        """Add the scores of the hypotheses of so many utterances."""
        self.utterances += utterances
        self.hypotheses += len(scores.tokens)
        self.tokens += int(scores.tokens.sum())
        self.unknown += int(scores.unknown.sum())


def score_lists(
    source: str,
    form: str | None,
    out: str,
    spec: LMSpec,
    computing: Computing,
    sources: Sources | None = None,
    written: bool = False,
) -> Totals:
    """Write the scores of the N-best lists in `source` to `out`: of a file in parts of TOGETHER
    hypotheses, of a pipe (`-`, Kaldi's rspecifiers) utterance by utterance, each as soon as it is
    done.

    `form` None: recognised; in a pipe JSON lines, or Kaldi's lists. `sources`: what the hypotheses
    translate, for a `spec` of `pairs`. `written`: of hypotheses, what the recogniser wrote in the
    place of their texts. UserError without lists.
    """
    parts = read_parts(source, form)
    first = next(parts)  # before the model, which takes longer
    scorer, totals, texts, write = load(spec, computing), Totals(), [], None
    more = sources.signature if sources else WRITTEN if written else {}
    with (
        contextlib.closing(open_cache(scorer, computing)) as cache,
        contextlib.ExitStack() as output,
    ):
        for nbests in itertools.chain([first], parts):
            hyps = hypothesis_texts(nbests, written)
            pairs = sources and sources.pair(nbests, totals.utterances, source)
            flat = score_texts(hyps if pairs is None else pairs, scorer, computing, cache)
            write = write or output.enter_context(write_scores(out, {**scorer.signature, **more}))
            bounds = itertools.accumulate((len(nbest.hyps) for nbest in nbests), initial=0)
            for nbest, rows in zip(nbests, itertools.pairwise(bounds), strict=True):
                write(nbest, flat.log_prob[slice(*rows)], flat.tokens[slice(*rows)])
            predicted = hyps if pairs is None else [target for _, target in pairs]
            texts += predicted[: LOOKED_AT - len(texts)]
            totals.add(len(nbests), flat)
        if sources is not None:
            sources.check_number(totals.utterances, source)
    for note in scorer.notes if totals.unknown else ():
        say(note)
    words = totals.tokens - totals.hypotheses
    warn_scored(source, texts, (totals.unknown, words), scorer, lists=True)
    return totals


def hypothesis_texts(nbests: Iterable[NBest], written: bool) -> list[str]:
    """Return the texts of all hypotheses, or what the recogniser wrote for them."""
    return [hyp.display if written else hyp.text for nbest in nbests for hyp in nbest.hyps]


def read_parts(source: str, form: str | None) -> Iterator[list[NBest]]:
    """Read the lists that are scored together: those of TOGETHER hypotheses of a file, whatever the
    number of processes, each of a pipe; at least one.
    """
    piped = source == "-" or parse_specifier(source)
    if piped:
        form = form or ("jsonl" if source == "-" else "kaldi-nbest")
    part, size, any_lists = [], 0, False
    for nbest in stream(source, form):
        part.append(nbest)
        size += len(nbest.hyps)
        if piped or size >= TOGETHER:
            any_lists = True
            yield part
            part, size = [], 0
    if part:
        yield part
    elif not any_lists:
        raise UserError(f"{source}: no utterances; give the recogniser's N-best lists")


@contextlib.contextmanager
def write_scores(path: str, signature) -> Iterator[Callable[[NBest, Sequence, Sequence], None]]:
    """Yield a function that writes one list's log-probabilities and tokens: rows of a score file,
    or costs of a Kaldi table.
    """
    if not parse_specifier(path):
        with scores.writing(path, signature) as write:
            yield write
        return
    with kaldi_tables.Writer(path) as table:

        def write_costs(nbest, log_prob, tokens):
            for rank, (hyp, value) in enumerate(zip(nbest.hyps, log_prob, strict=True), 1):
                cost = kaldi_tables.pack_float(-float(value), table.text)
                table.write(f"{nbest.utt}-{hyp.extra.get('n', rank)}", cost)

        yield write_costs


def warn_scored(
    path, texts: Iterable[str], counts: tuple[int, int], scorer: Scorer, lists: bool = False
) -> None:
    """Warn, by `warn_unknown`, of unknown tokens among all (`counts`, without ends) of `texts` from
    `path`.
    """
    unknown, tokens = counts
    if unknown <= MANY * tokens:
        return
    read = {"texts": map(scorer.normalise, texts), "known": scorer.knows, "lists": lists}
    warn_unknown(path, unknown, tokens, scorer.spec.lm, **read)


def open_cache(scorer: Scorer, computing: Computing) -> Cache:
    """Open the cache of the scorer's results; the caller closes it."""
    return Cache(cache_directory(computing.cache), scorer.signature)


def score_texts(
    texts: Sequence, scorer: Scorer, computing: Computing, cache: Cache | None = None
) -> TextScores:
    """Score `texts`, of which a scorer that reads pairs takes pairs; equal texts get equal scores,
    whatever else is in the list (on a CPU, but for rounding where beginnings are shared; see
    lmtools.score.compute).

    `cache`: one that is open, for many calls; else that of `computing` is opened and closed.
    """
    sentences, which = prepare_distinct(texts, scorer.prepare)
    with (
        contextlib.nullcontext(cache)
        if cache
        else contextlib.closing(open_cache(scorer, computing))
    ) as known:
        log_prob = score_sentences(sentences, scorer, computing, known)
    columns = (column[which] for column in (log_prob, *count_scored(scorer, sentences)))
    return TextScores(*columns, kind=scorer.kind, signature=scorer.signature)


def count_scored(scorer: Scorer, sentences: Sequence[tuple]) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of tokens of each sentence with its end, and of unknown ones, (N,) each."""
    unknown = [scorer.unknown(sentence) for sentence in sentences]
    counts = np.array([(len(tokens) + 1, tokens.sum()) for tokens in unknown], dtype=np.int64)
    return tuple(counts.reshape(-1, 2).T)


def score_sentences(
    sentences: list, scorer: Scorer, computing: Computing, cache: Cache
) -> np.ndarray:
    """Return the log-probabilities (N,) of distinct prepared sentences, from the cache where it has
    them.
    """
    compute = partial(sum_batches, scorer=scorer, computing=computing)
    label, trees = f"score {scorer.spec.lm}", scorer.plan_trees(sentences)
    return np.array(compute_missing(sentences, scorer, cache, compute, label=label, trees=trees))


def sum_batches(
    work: list[list], scorer: Scorer, computing: Computing
) -> Iterator[tuple[int, list[float]]]:
    """Yield pairs (number of a batch, the sums of its log-probabilities), as they are computed here
    or by `nj` processes; where these may be forks, some verbs have one in the place of each thread.
    """
    forks = can_fork() and scorer.signature.get("device", "cpu") == "cpu"
    asked, remedy = computing.nj, REMEDY
    in_turn = scorer.rows and not scorer.left_to_right  # of trees, threads cost less
    if asked == 1 and forks and in_turn and current().verb in FORKED:
        asked, remedy = count_threads(), "give fewer threads (a lower OMP_NUM_THREADS)"
    processes = count_processes(work, scorer, asked, forks) if asked > 1 else 1
    if processes > 1:
        remedy = f"{remedy} or smaller batches (--rows)"
        own = OwnScorer(scorer, computing)
        done = as_completed(sum_batch, work, processes, own, remedy=remedy, forks=forks)
    else:
        done = enumerate(compute_all(scorer, work, partial(sum_batch, scorer)))
    for number, values in done:
        refuse_not_finite(values, work[number], scorer.spec.lm)
        yield number, values


def count_threads() -> int:
    """Return the number of threads that torch has; 1 where nothing brought it along, and where a
    command of a cluster would get the work.
    """
    torch = sys.modules.get("torch") if current().cmd == LOCAL else None
    return torch.get_num_threads() if torch else 1


def count_processes(work: list[list], scorer: Scorer, asked: int, forks: bool) -> int:
    """Return the number of processes that this work is worth, at most as many as are asked for."""
    rows = sum(scorer.cost(sentence) for batch in work for sentence in batch)
    # a machine with a queue is not one to compute on
    worth = rows // (WORTH_A_FORK if forks else WORTH_A_PROCESS)
    return min(asked, len(work), worth if current().cmd == LOCAL else asked)


class OwnScorer:
    """The scorer of a worker process, in which one thread computes a batch, as everywhere: a fork
    has that of its parent, others load it. UserError where that is another one, as on another kind
    of machine.
    """

    def __init__(self, scorer: Scorer, computing: Computing):
        self.scorer, self.computing = scorer, computing
        self.spec, self.signature = scorer.spec, scorer.signature

    def __getstate__(self):
        return {**vars(self), "scorer": None}

    def __call__(self) -> Scorer:
        scorer = self.scorer or load(self.spec, self.computing)
        if torch := sys.modules.get("torch"):  # which n-grams do without
            torch.set_num_threads(1)
        if scorer.signature != self.signature:
            changed = [
                f"{name} {scorer.signature.get(name)!r} for {value!r}"
                for name, value in self.signature.items()
                if scorer.signature.get(name) != value
            ]
            raise UserError(
                f"{self.spec.lm}: scores otherwise here than where the command was given"
                f" ({', '.join(changed) or 'more is said of it'}); give --device and --precision,"
                " and let the model be while it scores"
            )
        return scorer


def sum_batch(scorer: Scorer, batch: list) -> list[float]:
    """Return one log-probability a sentence."""
    return [float(values.sum()) for values in score_batch(scorer, batch)]


def refuse_not_finite(values, sentences, lm: str) -> None:
    """Raise UserError for NaN and infinite scores, which would win or lose every comparison."""
    for value, sentence in zip(values, sentences, strict=True):
        if not np.isfinite(value):
            raise UserError(
                f"{lm}: scores {value} for {' '.join(map(str, sentence))[:100]!r}; the model is"
                " damaged, train it again"
            )
