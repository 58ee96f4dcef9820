"""Speed of language models that make sentence vectors: by sentence length, one sentence at a time
(the T-TA paper's run time in semantic textual similarity), and batched. No output layer is
computed; a vector is the mean of the last layer's states over the tokens.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from lmtools.base.errors import UserError
from lmtools.models.base import last_state
from lmtools.models.device import autocast
from lmtools.score.neural import NeuralScorer
from lmtools.text.subword import MASK
from measures.score import (
    TOKENS_A_WORD,
    Tasks,
    TimedWork,
    by_length,
    collect_figures,
    layer_shapes,
    matrix_flops,
    measure_throughput,
    naive_states,
    select_transformers,
)

TASK = "represent"
INTACT = "-intact"  # of a masked model's name: one pass over the input as it is


@torch.inference_mode()
def embed_intact(scorer: NeuralScorer, sentences: Sequence[tuple]) -> Tensor:
    """Return sentence vectors (B, D) out of one pass over the input as it is; beginning and end of
    sentence are not in the mean.
    """
    examples = scorer.lm.objective.scoring(sentences).to(scorer.device)
    with autocast(scorer.device, scorer.precision):
        states = last_state(scorer.lm.trunk.layer_states(*examples.read))  # (B, T, columns)
    place = torch.arange(states.shape[1], device=scorer.device)
    ends = scorer.lm.objective.boundary - 1
    tokens = (place > 0) & (place < (examples.lengths - ends)[:, None])
    return (states * tokens[..., None]).sum(1) / tokens.sum(1, keepdim=True)


@torch.inference_mode()
def embed_one_by_one(scorer: NeuralScorer, sentence: tuple) -> Tensor:
    """Return the vector (D,) of a masked model as papers make it (mask-and-predict): of each token
    the state where it alone is masked, from a whole pass a token over copies of the sentence that
    go through as one batch.
    """
    inputs = scorer.lm.objective.scoring([sentence]).inputs.to(scorer.device)
    places = torch.arange(1, len(sentence) + 1, device=scorer.device)
    with autocast(scorer.device, scorer.precision):
        return naive_states(scorer, inputs, places).mean(0)


@torch.inference_mode()
def embed_masked(scorer: NeuralScorer, sentence: tuple) -> Tensor:
    """Return the same vector (D,) without what the copies have in common."""
    inputs = scorer.lm.objective.scoring([sentence]).inputs.to(scorer.device)
    with autocast(scorer.device, scorer.precision):
        return scorer.lm.trunk.masked_states(inputs, MASK)[0, 1:-1].mean(0)


def representation_tasks(scorer: NeuralScorer) -> Tasks:
    """Return the ways to a sentence's vector; a masked model has three."""
    if not scorer.lm.trunk.masks:
        return {("", TASK): lambda sentence: embed_intact(scorer, [sentence])}
    return {
        ("", TASK): lambda sentence: embed_one_by_one(scorer, sentence),
        ("-shared", TASK): lambda sentence: embed_masked(scorer, sentence),
        (INTACT, TASK): lambda sentence: embed_intact(scorer, [sentence]),
    }


def measure_batches(scorer: NeuralScorer, tokens: int, count: int, rows: int) -> dict:
    """Return `measure_throughput` of vectors, one pass a sentence."""
    config, width = scorer.lm.trunk.config, tokens + scorer.lm.objective.boundary
    flops = matrix_flops(config, width, width)
    work = TimedWork("sentences", partial(embed_intact, scorer), flops, layer_shapes(config))
    return measure_throughput(scorer, work, tokens, count, rows=rows)


def bench_representation(
    scorers: Mapping[str, NeuralScorer], words: list[int], repeats: int, clock: str = "wall"
) -> dict:
    """Measure everything of `bench.py score --representation` on these models; UserError for
    lengths that one of them cannot read.
    """
    # without the softmax the vectors are the same
    scorers = {name: scorer for name, scorer in scorers.items() if scorer.normalised}
    shortest = min(scorers, key=lambda name: scorers[name].lm.longest)
    longest = scorers[shortest].lm.longest
    if (needed := round(max(words) * TOKENS_A_WORD)) > longest:
        raise UserError(
            f"length={max(words)}: {needed} tokens, but {shortest} takes {longest} at most; give"
            " shorter lengths"
        )
    rows = by_length(scorers, words, repeats, representation_tasks, clock)
    each = {name + INTACT * s.lm.trunk.masks: s for name, s in select_transformers(scorers).items()}
    rates = {
        name: measure_batches(scorer, min(24, longest), 256, 2048) for name, scorer in each.items()
    }
    return collect_figures(scorers, rows, rates, repeats)
