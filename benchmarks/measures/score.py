"""Speed of scoring by language models: by sentence length, one sentence at a time (Figure 4 of the
T-TA paper), and batched against the machine's own rate of matrix products.
"""

import math
import statistics
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch

from lmtools.base.batching import plan_batches
from lmtools.base.computing import Computing
from lmtools.base.specs import LMSpec
from lmtools.models import MODELS
from lmtools.models.device import PRECISIONS
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Settings
from lmtools.models.transformer import Transformer, TransformerConfig
from lmtools.score.load import load
from lmtools.score.neural import NeuralScorer
from lmtools.score.texts import run_batches
from lmtools.text.subword import MASK, SPECIALS
from measures.machine import describe_machine, stopwatch

TOKENS_A_WORD = 1.2  # of English text with about 30k pieces
FAMILIES = ("tta", "masked", "causal")
UNNORMALISED = "-unnormalised"  # of a name: scored without the softmax
SELF_NORMALISED = "bce-nce"  # the criterion of the random model that is
AGAINST = {
    "tta": ("masked", "masked-shared", "masked-intact", "causal"),
    "tta-unnormalised": ("tta", "masked-shared", "causal"),
}
# what is timed on one sentence: (name suffix, task) -> function
Tasks = Mapping[tuple[str, str], Callable]


class RandomVocabulary:
    """Stands for a subword model where only the number of ids matters."""

    def __init__(self, size: int):
        self.size, self.hash = size, "random"


def random_scorer(
    settings: Settings, size: int, computing: Computing, normalise: str = "full"
) -> NeuralScorer:
    """Return a scorer of a model over `size` ids with random weights."""
    torch.manual_seed(settings.seed)
    lm, ids = LanguageModel(settings, size), RandomVocabulary(size)
    spec = LMSpec("random", normalise=normalise)
    return NeuralScorer(lm, ids, "random", spec, computing=computing)


def random_family(
    family: str, arch: Mapping, size: int, computing: Computing, normalise: str = "full"
) -> NeuralScorer:
    """Return `random_scorer` of a family; one that does not normalise is of the criterion whose
    output needs it least.
    """
    criterion = "softmax" if normalise == "full" else SELF_NORMALISED
    settings = Settings(family, MODELS[family].objective, criterion, arch=dict(arch), seed=0)
    return random_scorer(settings, size, computing, normalise)


def random_sentences(tokens: int, count: int, size: int) -> list[tuple[int, ...]]:
    """Return sentences of ids drawn evenly from the vocabulary without its specials."""
    drawn = np.random.default_rng(tokens).integers(len(SPECIALS), size, (count, tokens))
    return [tuple(row) for row in drawn.tolist()]


def naive_states(scorer: NeuralScorer, inputs: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Return the states (B N, D) at `places` (N,) of `inputs` (B, T) of equal lengths as papers
    make them: a whole forward pass a token, all passes in one batch.
    """
    copies = inputs.repeat_interleave(len(places), dim=0)
    which = torch.arange(len(copies), device=inputs.device)
    places = places.repeat(len(inputs))
    copies[which, places] = MASK
    return scorer.lm.trunk.hidden(copies, torch.full_like(which, inputs.shape[1]))[which, places]


def naive_masked(scorer: NeuralScorer, sentence, hidden_only: bool) -> None:
    """Compute the pseudo-log-likelihood as the paper times it: a whole forward pass a token, the
    output layer at the masked positions only.
    """
    lm = scorer.lm
    examples = lm.objective.scoring([sentence]).to(scorer.device)
    states = naive_states(scorer, examples.inputs, examples.rows)
    if not hidden_only:
        scorer.output.log_prob(lm.trunk.head(states), examples.targets)


def scoring_tasks(scorer: NeuralScorer) -> Tasks:
    """Return how a sentence is scored, and its states alone; a masked model both as papers do it
    and as we do.
    """
    make = scorer.lm.objective.scoring
    single = {
        ("", "hidden"): lambda sentence: scorer.lm.predicting_states(
            make([sentence]).to(scorer.device), scorer.masked
        ),
        ("", "rerank"): lambda sentence: scorer.log_probs([sentence]),
    }
    if not scorer.lm.trunk.masks:
        return single
    naive = {
        ("", task): lambda sentence, task=task: naive_masked(scorer, sentence, task == "hidden")
        for task in ("hidden", "rerank")
    }
    return naive | {("-shared", task): function for (_, task), function in single.items()}


@torch.inference_mode()
def by_length(
    scorers: Mapping[str, NeuralScorer],
    words: list[int],
    repeats: int,
    tasks: Callable[[NeuralScorer], Tasks] = scoring_tasks,
    clock: str = "wall",
) -> list[dict]:
    """Measure seconds a sentence for every model, task and length: one row each; the models take
    turns, so that noise meets all alike.
    """
    rows = []
    for count in words:
        tokens = round(count * TOKENS_A_WORD)
        timed: dict[tuple[str, str], list[float]] = {}
        functions = {
            (name + s, task): (f, scorer)
            for name, scorer in scorers.items()
            for (s, task), f in tasks(scorer).items()
        }
        for turn in range(repeats + 1):
            for key, (function, scorer) in functions.items():
                sentence = random_sentences(tokens, repeats + 1, scorer.lm.size)[turn]
                seconds = stopwatch(lambda f=function, s=sentence: f(s), scorer.device, clock)
                if turn:  # the first is a warm-up
                    timed.setdefault(key, []).append(seconds)
        for (name, task), seconds in timed.items():
            row = {"lm": name, "task": task, "words": count, "tokens": tokens}
            rows.append(row | {"seconds_median": statistics.median(seconds), "seconds": seconds})
    return rows


@torch.inference_mode()
def matrix_rate(
    shapes: list[tuple[int, int]], rows: int, device: torch.device, dtype: torch.dtype
) -> float:
    """Measure the machine's own rate in floating point operations a second on products of `rows`
    rows with matrices of `shapes`, nothing else.
    """
    weights = [torch.randn(n, k, device=device, dtype=dtype) for k, n in shapes]
    inputs = {k: torch.randn(rows, k, device=device, dtype=dtype) for k in {k for k, _ in shapes}}

    def products():
        for (k, _), weight in zip(shapes, weights, strict=True):
            inputs[k] @ weight.T

    products()
    seconds = statistics.median(stopwatch(products, device) for _ in range(5))
    return 2 * rows * sum(k * n for k, n in shapes) / seconds


def layer_shapes(config) -> list[tuple[int, int]]:
    """Return the matrices of all layers of a Transformer, (inputs, outputs) each."""
    d, f = config.dim, config.ffn
    return [(d, d)] * 2 * config.layers + [(d, 2 * d), (d, f), (f, d)] * config.layers


def measure_batches(scorer: NeuralScorer, tokens: int, count: int, rows: int) -> dict:
    """Return `measure_throughput` of scoring hypotheses."""
    lm, config = scorer.lm, scorer.lm.trunk.config
    # rows of the output matrix
    width, multiplied = tokens + lm.objective.boundary, lm.size if scorer.normalised else 0
    flops = matrix_flops(config, width, width, multiplied, predicted=tokens + 1)
    shapes = [*layer_shapes(config), (config.dim, config.dim), (config.dim, multiplied)]

    def score(batch: list) -> None:
        list(run_batches(scorer, [batch], scorer.log_probs))

    work = TimedWork("hypotheses", score, flops, shapes)
    return measure_throughput(scorer, work, tokens, count, rows=rows)


class TimedWork(NamedTuple):
    """Work on a batch of sentences, which are called `unit`; its floating point operations a
    sentence, and the matrices that it multiplies with.
    """

    unit: str
    do: Callable
    flops: float
    shapes: list[tuple[int, int]]


def measure_throughput(
    scorer: NeuralScorer, work: TimedWork, tokens: int, count: int, rows: int
) -> dict:
    """Measure `work` on `count` random sentences of so many tokens in batches of `rows` rows:
    sentences a second, and the share of the machine's own rate on its matrices that it reaches.
    """
    sentences = random_sentences(tokens, count, scorer.lm.size)
    width = tokens + scorer.lm.objective.boundary
    plan = plan_batches([width] * count, rows)
    dtype = PRECISIONS[scorer.precision]
    rates, seconds = [], []
    for _ in range(4):  # alternating, so that noise meets both alike; the first turn warms up
        rates.append(matrix_rate(work.shapes, min(rows, count * width), scorer.device, dtype))
        seconds.append(
            sum(
                stopwatch(lambda b=b: work.do([sentences[i] for i in b]), scorer.device)
                for b in plan
            )
        )
    rate, spent = statistics.median(rates[1:]), statistics.median(seconds[1:])
    return {
        "tokens": tokens, work.unit: count, "precision": scorer.precision,
        f"{work.unit}_per_second": count / spent,
        "gflops": count * work.flops / spent / 1e9, "matrix_gflops": rate / 1e9,
        "share": count * work.flops / spent / rate,
    }  # fmt: skip


def random_scorers(arch: Mapping, size: int, computing: Computing) -> dict[str, NeuralScorer]:
    """Return the three families at one size over `size` ids, with random weights, and a T-TA that
    scores without the softmax.
    """
    full = {family: random_family(family, arch, size, computing) for family in FAMILIES}
    return full | {
        "tta" + UNNORMALISED: random_family("tta", arch, size, computing, normalise="none")
    }


def trained_scorers(lms: Mapping[str, str], computing: Computing) -> dict[str, NeuralScorer]:
    """Load the neural models among `lms` (name -> directory); a T-TA trained by a sampled criterion
    without normalisation, too.
    """
    loaded = {name: load(lm, computing) for name, lm in lms.items()}
    scorers = {name: scorer for name, scorer in loaded.items() if isinstance(scorer, NeuralScorer)}
    return scorers | {
        name + UNNORMALISED: load(LMSpec(lms[name], normalise="none"), computing)
        for name, scorer in scorers.items()
        if scorer.lm.settings.model == "tta" and scorer.lm.output.sampled
    }


def select_transformers(scorers: Mapping[str, NeuralScorer]) -> dict[str, NeuralScorer]:
    """Return those whose floating point operations `matrix_flops` counts."""
    return {
        name: scorer for name, scorer in scorers.items() if isinstance(scorer.lm.trunk, Transformer)
    }


def bench_score(
    scorers: Mapping[str, NeuralScorer], words: list[int], repeats: int, clock: str = "wall"
) -> dict:
    """Measure everything of `bench.py score` on these models; sentences by one of CLOCKS."""
    rows = by_length(scorers, words, repeats, clock=clock)
    rates = {
        name: measure_batches(scorer, 24, 256, 2048)
        for name, scorer in select_transformers(scorers).items()
        if not scorer.masked
    }
    return collect_figures(scorers, rows, rates, repeats)


def collect_figures(
    scorers: Mapping[str, NeuralScorer], rows: list[dict], batched: Mapping[str, dict], repeats: int
) -> dict:
    """Return the JSON of the benchmark: the measurements, their ratios, and the machine and models
    that they are of.
    """
    first = next(iter(scorers.values()))
    return {
        "rows": rows, "ratios": compare_families(rows), "batched": batched,
        "machine": describe_machine(first.device), "threads": torch.get_num_threads(),
        "precision": first.precision, "repeats": repeats,
        "models": {
            name: s.signature | {"parameters": s.parameters}
            for name, s in scorers.items()
        },
    }  # fmt: skip


def median_seconds(rows: list[dict]) -> dict[tuple[str, str, int], float]:
    """Return the seconds a sentence by (model, task, words)."""
    return {(row["lm"], row["task"], row["words"]): row["seconds_median"] for row in rows}


def compare_families(rows: list[dict]) -> list[dict]:
    """Return the ratios of the times of other models to T-TA's, and of T-TA's with the softmax to
    those without, by task and length.
    """
    seconds, ratios = median_seconds(rows), []
    for (lm, task, words), reference in seconds.items():
        if lm in AGAINST:
            times = {
                other: seconds[other, task, words] / reference
                for other in AGAINST[lm]
                if (other, task, words) in seconds
            }
            ratios.append({"lm": lm, "task": task, "words": words, "times": times})
    return ratios


def format_ratios(rows: list[dict]) -> list[str]:
    """Return lines that say what `compare_families` found."""
    seconds, lines = median_seconds(rows), []
    for row in compare_families(rows):
        lm, task, words = row["lm"], row["task"], row["words"]
        against = ", ".join(
            f"{other} {seconds[other, task, words] * 1e3:.1f} ms ({times:.2f} x)"
            for other, times in row["times"].items()
        )
        time = seconds[lm, task, words] * 1e3
        lines.append(f"{words:3d} words {task:6s}: {lm} {time:.1f} ms; {against}")
    return lines


def matrix_flops(
    config: TransformerConfig,
    positions: int,
    attended: int,
    vocabulary: int = 0,
    predicted: int = 0,
) -> float:
    """Count the floating point operations of the matrix products of one forward pass over
    `positions` rows that attend to `attended` keys.

    `predicted` rows also go through the head and the (V, D) output matrix.
    """
    layer = 4 * config.dim**2 + 2 * config.dim * config.ffn + 2 * attended * config.dim
    output = (config.dim**2 if config.norm == "post" else 0) + config.dim * vocabulary
    return 2.0 * math.fsum((positions * config.layers * layer, predicted * output))
