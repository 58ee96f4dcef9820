"""Scores of sentences by the states of the nodes of their tree."""

import numpy as np
import torch
from torch import Tensor

from lmtools.score.trees import SentenceTree


def score_nodes(
    tree: SentenceTree, heads: Tensor, output, end: int, normalised: bool = True
) -> list[np.ndarray]:
    """Return the scores, float64 (tokens + 1,), of the sentences of a tree by the states (N, width)
    of its nodes, ready for the output layer, each computed once.
    """
    before, targets = (torch.from_numpy(array).to(heads.device) for array in tree.predictions(end))
    scores = output.unnormalised(heads[before], targets)
    if normalised:
        scores = scores - output.log_normaliser(heads)[before]
    return tree.split_values(scores.double().cpu().numpy())
