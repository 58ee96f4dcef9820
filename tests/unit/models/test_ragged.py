"""Sentences without padding have the states that they have with it; they go through so where the
bits of a row do not depend on the others.
"""

import numpy as np
import pytest
import torch
from scoring import make_scorer
from torch.nn import functional as F

from lmtools.base.batching import RAGGED_ROWS, plan_batches
from lmtools.models.lm import LanguageModel
from lmtools.models.ragged import STEP, Ragged
from lmtools.models.settings import Settings
from lmtools.score import neural
from lmtools.score.neural import NeuralScorer
from lmtools.score.texts import plan_work, score_all

SIZE = 300
FAMILIES = {"causal": "causal", "tta": "autoencoding", "masked": "masked"}


class Ids:
    """A vocabulary of ids."""

    hash = "0" * 64


def model(family: str, **arch) -> LanguageModel:
    """A random model far from its initialisation."""
    torch.manual_seed(0)
    arch = {"layers": 2, "dim": 128, "heads": 2, "ffn": 256, "positions": 64} | arch
    lm = LanguageModel(Settings(family, FAMILIES[family], arch=arch), SIZE).eval()
    for parameter in lm.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    return lm


def sentences(*lengths: int) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(0)
    return [tuple(rng.integers(5, SIZE, length).tolist()) for length in lengths]


def scorer_of(lm: LanguageModel) -> NeuralScorer:
    return make_scorer(NeuralScorer, lm, Ids(), "0" * 16, intact=lm.trunk.masks)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_states_are_those_with_padding(family, norm):
    lm = model(family, norm=norm)
    examples = lm.objective.scoring(sentences(0, 3, 3, 7, 20))
    ragged = Ragged.of(examples)
    assert {len(x) % STEP for x in (ragged.tokens, ragged.rows, ragged.targets)} == {0}
    made = lm.trunk.ragged_states(ragged)[ragged.rows][: len(examples.rows)]
    assert torch.allclose(made, lm.states(examples), rtol=0, atol=1e-5)
    assert torch.equal(ragged.targets[: len(examples.targets)], examples.targets)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_alone_costs_no_other(family, monkeypatch):
    scorer = scorer_of(model(family))
    assert scorer.ragged
    rows, linear = [], F.linear
    monkeypatch.setattr(F, "linear", lambda x, *more: rows.append(len(x)) or linear(x, *more))
    ((_, values),) = score_all(scorer, sentences(20))
    assert set(rows) == {STEP} and len(values[0]) == 21


def test_products_are_tried_when_a_sentence_needs_it(monkeypatch):
    tried = []
    monkeypatch.setattr(neural, "rows_agree", lambda *product: not tried.append(product))
    scorer, some = scorer_of(model("causal")), sentences(5, 9)
    assert plan_work(some, scorer, [], known={0, 1}) == [] and not tried
    assert plan_work(some, scorer, []) == [[0, 1]] and len(tried) == 1
    plan_work(some, scorer, [])
    assert len(tried) == 1


def test_where_bits_depend_on_the_number_of_rows_shapes_are_equal(monkeypatch):
    lm = model("causal")
    query = lm.trunk.blocks[0].query
    forward = query.forward
    monkeypatch.setattr(query, "forward", lambda x: forward(x) * (1 + 1e-6 * (len(x) > 128)))
    scorer = scorer_of(lm)
    assert not scorer.ragged
    some, seen = sentences(4, 9, 9, 20), []
    monkeypatch.setattr(scorer, "token_log_probs", lambda batch: seen.append(len(batch)) or batch)
    list(score_all(scorer, some))
    assert seen == [48, 24, 8]  # as many as 256 rows hold, by eights


@pytest.mark.parametrize("rows", [1, 100, 256, 4096])
def test_batches_hold_sentences_of_any_length(rows):
    costs = np.random.default_rng(0).integers(1, 400, 300).tolist()
    plan = plan_batches(costs, rows, ragged=True)
    assert sorted(i for batch in plan for i in batch) == list(range(300))
    filled = [sum(costs[i] for i in batch) for batch in plan]
    most = min(rows, RAGGED_ROWS)
    assert all(total <= most or len(batch) == 1 for total, batch in zip(filled, plan, strict=True))
    # no batch could have taken the first of the next
    following = [costs[batch[0]] for batch in plan[1:]]
    assert all(a + b > most for a, b in zip(filled, following, strict=False))
