"""Costs and effects of each engine and precision: speed, memory, loading, sums of log-probability
and, with weights, the hypotheses that win.
"""

import resource
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import torch

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.log import say
from lmtools.base.workers import CONTEXT
from lmtools.evaluate.corpus import evaluate
from lmtools.evaluate.metrics import METRICS
from lmtools.formats import scores
from lmtools.rescoring.experiment import SystemPlan
from lmtools.rescoring.features import LENGTHS, make_columns, summed
from lmtools.rescoring.lists import rescore_lists
from lmtools.rescoring.weights import Weights
from lmtools.score.base import Scorer
from lmtools.score.load import load
from lmtools.score.neural import NeuralScorer
from lmtools.score.texts import score_texts
from lmtools.types import NBest
from measures.machine import describe_machine, stopwatch
from measures.score import TOKENS_A_WORD, random_sentences

FEW = 200  # hypotheses that show the peak memory
# (precision, engine); the first is what the others are compared with
WAYS = (
    *(("float32", engine) for engine in ("torch", "prepared", "onnx")),
    *(("bfloat16", engine) for engine in ("torch", "prepared")),
    *(("int8", engine) for engine in ("prepared", "onnx")),
)


def load_ways(lm: str) -> Iterator[tuple[dict, Scorer]]:
    """Yield a row and the scorer of each of WAYS that the processor and the model have; others are
    named on standard error. UserError where they lack the first.
    """
    for number, (precision, engine) in enumerate(WAYS):
        row = {"precision": precision, "engine": engine}
        try:
            yield row, load(lm, computing_of(row))
        except UserError as error:
            if not number:
                raise
            say(f"skipped: {precision} {engine}: {error}")


def bench_engines(
    lm: str, nbests: Sequence[NBest], weights: Weights | None, words: int, repeats: int
) -> dict:
    """Measure a row a way of computing. One sentence of `words` words is timed in turns, the least
    of `repeats`; then all hypotheses of `nbests`. Loading and peak memory are those of a process of
    its own that scores a few.

    `weights` choose hypotheses; their one column that the lists lack is this model's.
    """
    texts = [hyp.text for nbest in nbests for hyp in nbest.hyps]
    rows, scorers = zip(*load_ways(lm), strict=True)
    if not all(isinstance(scorer, NeuralScorer) for scorer in scorers):
        raise UserError(f"{lm}: not a neural model of `lmtools train`; engines are for these")
    for row in rows:
        row |= measure_alone(lm, computing_of(row), texts[:FEW])
    time_sentences(rows, scorers, words, repeats)
    computed = time_lists(rows, scorers, texts)
    for row, result in zip(rows, computed, strict=True):
        difference = np.abs(result.log_prob - computed[0].log_prob).max()
        row["greatest_difference"] = float(difference)
    if weights is not None:
        for row, result in zip(rows, computed, strict=True):
            row["chosen"] = choose(nbests, weights, result)
        compare_choices(rows, nbests, weights)
    return {
        "rows": rows, "lm": lm, "signature": scorers[0].signature, "words": words,
        "lists": len(nbests), "hypotheses": len(texts), "repeats": repeats,
        "machine": describe_machine(torch.device("cpu")), "threads": torch.get_num_threads(),
    }  # fmt: skip


def computing_of(row: dict) -> Computing:
    """Return the options of the computation of a row."""
    return Computing("cpu", row["precision"], row["engine"], cache="none")


def measure_alone(lm: str, computing: Computing, texts: Sequence[str]) -> dict:
    """Run `load_and_score` in a process of its own."""
    with ProcessPoolExecutor(1, CONTEXT) as pool:
        return pool.submit(load_and_score, lm, computing, texts).result()


def load_and_score(lm: str, computing: Computing, texts: Sequence[str]) -> dict:
    """Return the seconds of loading up to the first score, and the peak memory of this process in
    MiB.
    """
    torch.set_num_threads(1)
    begin = time.perf_counter()
    scorer = load(lm, computing)
    score_texts(texts[:1], scorer, computing)
    seconds = time.perf_counter() - begin
    score_texts(texts, scorer, computing)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux counts KiB
    return {"load_seconds": seconds, "peak_mib": peak}


def time_sentences(rows: Sequence[dict], scorers: Sequence, words: int, repeats: int) -> None:
    """Add the seconds of one sentence to each row."""
    tokens = round(words * TOKENS_A_WORD)
    spent = [[] for _ in rows]
    for turn in range(repeats + 1):
        for times, scorer in zip(spent, scorers, strict=True):
            sentence = random_sentences(tokens, repeats + 1, scorer.lm.size)[turn]
            work = partial(scorer.log_probs, [sentence])
            times.append(stopwatch(work, scorer.device))
    for row, times in zip(rows, spent, strict=True):
        row["sentence_seconds"] = min(times[1:])  # the first is a warm-up


def time_lists(rows: Sequence[dict], scorers: Sequence, texts: Sequence[str]) -> list:
    """Add hypotheses a second to each row, the better of two turns; the scores of each."""
    computed, best = [None] * len(rows), [np.inf] * len(rows)
    for _ in range(2):
        for i, scorer in enumerate(scorers):
            begin = time.perf_counter()
            computed[i] = score_texts(texts, scorer, computing_of(rows[i]))
            best[i] = min(best[i], time.perf_counter() - begin)
    for row, seconds in zip(rows, best, strict=True):
        row["hypotheses_per_second"] = len(texts) / seconds
    return computed


def choose(nbests: Sequence[NBest], weights: Weights, result) -> dict[str, str]:
    """Return the winner of each list by the weights and these scores."""
    listed = {name for nbest in nbests for hyp in nbest.hyps for name in hyp.scores}
    missing = {summed(name) for name in weights.features if name not in {*listed, *LENGTHS, "rank"}}
    if len(missing) != 1:
        raise UserError(
            f"the weights are of {', '.join(weights.features)}: not of the lists' scores and one"
            " column; tune with this model alone"
        )
    (name,) = missing
    bounds = np.cumsum([len(nbest.hyps) for nbest in nbests])[:-1]
    values, counts = (np.split(column, bounds) for column in (result.log_prob, result.tokens))
    table = scores.make_table(nbests, values, counts, result.signature)
    columns = make_columns({name: table}, {name: "these scores"}, nbests, "lists")
    plans = {None: SystemPlan((name,))}
    _, chosen = rescore_lists(
        nbests, columns, plans, {None: weights}, source="lists", place=lambda _: weights.dev.path
    )
    _, lists, _ = next(chosen)
    return {nbest.utt: nbest.hyps[0].text if nbest.hyps else "" for nbest in lists}


def compare_choices(rows: Sequence[dict], nbests: Sequence[NBest], weights: Weights) -> None:
    """Add the share of lists whose winner is not the first row's and, with references, the metric
    of the weights.
    """
    first = rows[0]["chosen"]
    refs = {nbest.utt: nbest.ref for nbest in nbests if nbest.ref is not None}
    for row in rows:
        chosen = row.pop("chosen")
        row["changed"] = sum(chosen[utt] != first[utt] for utt in first) / len(first)
        if len(refs) == len(nbests):
            row[weights.metric] = float(evaluate(refs, chosen, weights.metric).score)


def describe_row(row: dict, weights: Weights | None) -> str:
    """Return a line on a way of computing."""
    text = (
        f"{row['precision']:8s} {row['engine']:8s} {row['sentence_seconds'] * 1e3:7.2f} ms a"
        f" sentence, {row['hypotheses_per_second']:7.1f} hypotheses a second,"
        f" {row['peak_mib']:,.0f} MiB, loaded in {row['load_seconds']:.1f} s,"
        f" sums within {row['greatest_difference']:.2g}"
    )
    if "changed" in row:
        text += f", {row['changed']:.1%} of the winners changed"
    if weights is not None and weights.metric in row:
        text += f", {METRICS[weights.metric].title} {row[weights.metric]:.2f}"
    return text
