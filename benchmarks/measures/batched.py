"""Speed of language models that get many sentences at once: sentences a second by length, T-TA
against biLM, of vectors and of reranking (Figures 4 and 6 of the T-TA paper time one sentence).

biLM is timed as papers do it, with a copy of the sentence for each token that it predicts, and
shared, as lmtools scores. Every form has batches of at most `rows` positions, copies counted.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from lmtools.models.device import PRECISIONS, autocast
from lmtools.score.neural import NeuralScorer
from lmtools.score.texts import run_batches
from lmtools.text.subword import MASK
from measures.machine import describe_machine, stopwatch
from measures.represent import TASK, embed_intact
from measures.score import TOKENS_A_WORD, naive_states, random_sentences

TASKS = (TASK, "rerank")
SHARED = "-shared"


class Form(NamedTuple):
    """A way to do a task: positions that a sentence takes in a batch, work on a batch."""

    lm: str
    cost: int
    do: Callable[[Sequence[tuple]], object]


@torch.inference_mode()
def masked_copies(scorer: NeuralScorer, sentences: Sequence[tuple], task: str) -> torch.Tensor:
    """Return vectors (B, D), or scores (B, T + 1), of sentences of one length by a biLM that reads
    each with one token masked after the other, all copies at once.
    """
    lm, examples = scorer.lm, scorer.lm.objective.scoring(sentences).to(scorer.device)
    count, width = examples.inputs.shape
    # the end of a sentence is predicted too, but is no part of its vector
    places = torch.arange(1, width - (task == TASK), device=scorer.device)
    with autocast(scorer.device, scorer.precision):
        states = naive_states(scorer, examples.inputs, places)
        if task == TASK:
            return states.view(count, len(places), -1).mean(1)
        heads = lm.trunk.head(states).to(PRECISIONS[scorer.precision])
    return scorer.output.log_prob(heads, examples.targets).view(count, -1)


@torch.inference_mode()
def masked_shared(scorer: NeuralScorer, sentences: Sequence[tuple]) -> torch.Tensor:
    """Return the same vectors (B, D) without what copies have in common."""
    inputs = scorer.lm.objective.scoring(sentences).inputs.to(scorer.device)
    with autocast(scorer.device, scorer.precision):
        return scorer.lm.trunk.masked_states(inputs, MASK)[:, 1:-1].mean(1)


def score_batch(scorer: NeuralScorer, sentences: Sequence[tuple]) -> list:
    """Return the scores of a batch, as lmtools makes them."""
    (scores,) = run_batches(scorer, [list(sentences)], scorer.log_probs)
    return scores


def forms(
    scorers: Mapping[str, NeuralScorer], task: str, sentence: tuple
) -> Iterator[tuple[str, Form]]:
    """Yield the forms of a task on sentences as long as `sentence`, by name."""
    for name, scorer in scorers.items():
        width = len(sentence) + scorer.lm.objective.boundary
        whole = embed_intact if task == TASK else score_batch
        if not scorer.masked:
            yield name, Form(name, width, lambda batch, s=scorer, f=whole: f(s, batch))
            continue
        copies = (len(sentence) + (task != TASK)) * width
        shared = masked_shared if task == TASK else score_batch
        yield name, Form(name, copies, lambda batch, s=scorer: masked_copies(s, batch, task))
        cost = scorer.cost(sentence)
        yield name + SHARED, Form(name, cost, lambda batch, s=scorer, f=shared: f(s, batch))


class Turns(NamedTuple):
    """So many, of at least so many seconds each, by a clock of `stopwatch`."""

    count: int
    least: float
    clock: str = "wall"


def measure_length(
    scorers: Mapping[str, NeuralScorer], task: str, words: int, rows: int, turns: Turns
) -> Iterator[dict]:
    """Yield a row a form: the median of its turns after one that warms up; the forms alternate."""
    tokens = max(1, round(words * TOKENS_A_WORD))
    size = min(scorer.lm.size for scorer in scorers.values())
    some = random_sentences(tokens, max(1, rows // (tokens + 1)), size)
    known = dict(forms(scorers, task, some[0]))
    batches = {name: some[: max(1, rows // form.cost)] for name, form in known.items()}
    spent: dict[str, list[float]] = {name: [] for name in known}
    for turn in range(turns.count + 1):
        for name, form in known.items():
            device, seconds, count = scorers[form.lm].device, 0.0, 0
            while not count or (turn and seconds < turns.least):
                some = batches[name]
                seconds += stopwatch(lambda f=form, b=some: f.do(b), device, turns.clock)
                count += 1
            if turn:
                spent[name].append(seconds / count)
    for name, seconds in spent.items():
        median, count = statistics.median(seconds), len(batches[name])
        yield {
            "lm": name, "task": task, "words": words, "tokens": tokens, "rows": rows,
            "sentences": count, "seconds": seconds, "sentences_per_second": count / median,
        }  # fmt: skip


def bench_batched(
    scorers: Mapping[str, NeuralScorer], words: Sequence[int], rows: Sequence[int], turns: Turns
) -> dict:
    """Measure all tasks, lengths and sizes of batches; T-TA's rate over each other one's beside."""
    measured = [
        row
        for task in TASKS
        for length in words
        for size in rows
        for row in measure_length(scorers, task, length, size, turns)
    ]
    first = next(iter(scorers.values()))
    return {
        "rows": measured, "ratios": list(compare(measured)), "precision": first.precision,
        "machine": describe_machine(first.device), "threads": torch.get_num_threads(),
        "clock": turns.clock,
    }  # fmt: skip


def compare(measured: Sequence[Mapping]) -> Iterator[dict]:
    """Yield how many times as fast as others T-TA is, each at its best size of batch."""
    best: dict[tuple, float] = {}
    for row in measured:
        key = row["task"], row["words"], row["lm"]
        best[key] = max(best.get(key, 0.0), row["sentences_per_second"])
    for task, words in dict.fromkeys(key[:2] for key in best):
        rates = {lm: rate for (*some, lm), rate in best.items() if some == [task, words]}
        times = {lm: rates["tta"] / rate for lm, rate in rates.items() if lm != "tta"}
        yield {"task": task, "words": words, "rates": rates, "times": times}
