"""Scoring many texts with the least work: each distinct one once, sorted by length, in batches that fit."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from lmtools.errors import UserError
from lmtools.score.scorers import Scorer


def batches(costs: Sequence[int], budget: int) -> list[list[int]]:
    """Indices into `costs` in batches of similar cost; rows times the greatest cost in a batch stays within `budget` where one row does."""
    order = sorted(range(len(costs)), key=lambda i: (costs[i], i))
    result: list[list[int]] = []
    for index in order:
        if result and (len(result[-1]) + 1) * costs[index] <= budget:
            result[-1].append(index)
        else:
            result.append([index])
    return result


def score_batch(scorer: Scorer, sentences: list) -> list[np.ndarray]:
    """The scorer's token log-probabilities of a batch; one that does not fit into memory is halved until it does."""
    return within_memory(scorer.log_probs, sentences)


def within_memory(compute: Callable[[list], list], sentences: list) -> list:
    """What `compute` gives of a batch, one value a sentence; a batch that does not fit into memory is halved until it does."""
    try:
        return compute(sentences)
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        if len(sentences) == 1:
            raise UserError(f"a text of {len(sentences[0])} tokens does not fit into memory; drop it or use a larger machine") from None
    torch.cuda.empty_cache()
    half = len(sentences) // 2
    return within_memory(compute, sentences[:half]) + within_memory(compute, sentences[half:])


def out_of_memory(error: Exception) -> bool:
    """Whether memory, of the machine or of a device, did not suffice."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "allocate memory" in str(error)


def score_all(scorer: Scorer, sentences: Sequence, budget: int) -> Iterator[tuple[list[int], list[np.ndarray]]]:
    """Pairs (indices, their token log-probabilities), batch by batch, of distinct `sentences`."""
    for batch in batches([scorer.cost(s) for s in sentences], budget):
        yield batch, score_batch(scorer, [sentences[i] for i in batch])
