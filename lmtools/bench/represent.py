"""How fast language models make sentence vectors: by sentence length, one sentence at a time (the
T-TA paper's run time in semantic textual similarity), and batched. No output layer is computed; a
vector is the mean of the last layer's states over the tokens."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from lmtools.bench.score import (
    TOKENS_A_WORD,
    Tasks,
    by_length,
    figures,
    layer_shapes,
    naive_states,
    throughput,
    transformers,
)
from lmtools.device import autocast
from lmtools.errors import UserError
from lmtools.models.base import last
from lmtools.models.transformer import matrix_flops
from lmtools.score.scorers import NeuralScorer
from lmtools.subword import MASK

TASK = "represent"
INTACT = "-intact"  # of a masked model's name: one pass over the input as it is


@torch.inference_mode()
def intact(scorer: NeuralScorer, sentences: Sequence[tuple]) -> Tensor:
    """Sentence vectors (B, D) out of one pass over the input as it is; beginning and end of
    sentence are not in the mean.
    """
    examples = scorer.lm.objective.scoring(sentences).to(scorer.device)
    with autocast(scorer.device, scorer.precision):
        states = last(scorer.lm.trunk.layer_states(*examples.read))  # (B, T, columns)
    place, ends = (
        torch.arange(states.shape[1], device=scorer.device),
        scorer.lm.objective.boundary - 1,
    )
    tokens = (place > 0) & (place < (examples.lengths - ends)[:, None])
    return (states * tokens[..., None]).sum(1) / tokens.sum(1, keepdim=True)


@torch.inference_mode()
def one_by_one(scorer: NeuralScorer, sentence: tuple) -> Tensor:
    """The vector (D,) of a masked model as papers make it (mask-and-predict): of each token the
    state where it alone is masked, from a whole pass a token over copies of the sentence that go
    through as one batch."""
    inputs = scorer.lm.objective.scoring([sentence]).inputs.to(scorer.device)
    with autocast(scorer.device, scorer.precision):
        return naive_states(
            scorer, inputs, torch.arange(1, len(sentence) + 1, device=scorer.device)
        ).mean(0)


@torch.inference_mode()
def shared(scorer: NeuralScorer, sentence: tuple) -> Tensor:
    """The same vector (D,) without what the copies have in common."""
    inputs = scorer.lm.objective.scoring([sentence]).inputs.to(scorer.device)
    with autocast(scorer.device, scorer.precision):
        return scorer.lm.trunk.masked_states(inputs, MASK)[0, 1:-1].mean(0)


def representations(scorer: NeuralScorer) -> Tasks:
    """The ways to a sentence's vector; a masked model has three."""
    if not scorer.lm.trunk.masks:
        return {("", TASK): lambda sentence: intact(scorer, [sentence])}
    return {
        ("", TASK): lambda sentence: one_by_one(scorer, sentence),
        ("-shared", TASK): lambda sentence: shared(scorer, sentence),
        (INTACT, TASK): lambda sentence: intact(scorer, [sentence]),
    }


def batched(scorer: NeuralScorer, tokens: int, count: int, rows: int) -> dict:
    """Batched vectors of `count` sentences, one pass each: sentences a second, and the share of the
    machine's matrix-product rate.
    """
    config, width = scorer.lm.trunk.config, tokens + scorer.lm.objective.boundary
    flops = matrix_flops(config, width, width)
    return throughput(
        scorer,
        tokens,
        count,
        rows,
        "sentences",
        flops,
        layer_shapes(config),
        lambda some: intact(scorer, some),
    )


def bench_representation(
    scorers: Mapping[str, NeuralScorer], words: list[int], repeats: int
) -> dict:
    """Everything `lmtools bench score --representation` measures of these models; UserError for
    lengths that one of them cannot read.
    """
    # without the softmax the vectors are the same
    scorers = {name: scorer for name, scorer in scorers.items() if scorer.normalised}
    shortest = min(scorers, key=lambda name: scorers[name].lm.longest)
    longest = scorers[shortest].lm.longest
    if (needed := round(max(words) * TOKENS_A_WORD)) > longest:
        raise UserError(
            f"--length {max(words)}: {needed} tokens, but {shortest} takes {longest} at most; give"
            " shorter lengths"
        )
    rows = by_length(scorers, words, repeats, representations)
    each = {name + INTACT * s.lm.trunk.masks: s for name, s in transformers(scorers).items()}
    rates = {name: batched(scorer, min(24, longest), 256, 2048) for name, scorer in each.items()}
    return figures(scorers, rows, rates, repeats)
