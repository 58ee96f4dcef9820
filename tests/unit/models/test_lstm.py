"""An LSTM reads from left to right, any length, and trains, stops and goes on like the other
models.
"""

import numpy as np
import pytest
import torch
from scoring import ask
from toys import grow_random_tree, look_for_the_future, settings

from lmtools.models.causal import Causal
from lmtools.models.lm import LanguageModel
from lmtools.models.lstm import Lstm, LstmConfig
from lmtools.models.transformer import TransformerConfig
from lmtools.score import load, score_texts

VOCABULARY = 23
SIZES = {
    "tied": LstmConfig(layers=2, dim=6, units=9, tied=True),
    "untied": LstmConfig(layers=1, dim=6, units=9),
    "projected": LstmConfig(layers=2, dim=6, units=9, projection=4),
    "projected-tied": LstmConfig(layers=2, dim=6, units=9, projection=4, tied=True),
    "causal": TransformerConfig(layers=2, dim=8, heads=2, ffn=16, positions=12),
    "causal-pre": TransformerConfig(layers=2, dim=8, heads=2, ffn=16, positions=12, norm="pre"),
    "causal-none": TransformerConfig(
        layers=3, dim=8, heads=2, ffn=16, positions=12, norm="pre", position="none"
    ),
    "causal-post-none": TransformerConfig(
        layers=2, dim=8, heads=2, ffn=16, positions=12, position="none"
    ),
}


def model(size: str):
    torch.manual_seed(3)
    module = (Causal if size.startswith("causal") else Lstm)(SIZES[size], VOCABULARY).eval()
    for parameter in module.parameters():
        parameter.data.normal_(0, 0.5)
    return module


@pytest.mark.parametrize("size", ["tied", "untied", "projected"])
def test_states_are_those_of_the_equations(size):
    """A second computation in numpy: gates i, f, g, o from input and last output."""
    module = model(size)
    tokens = torch.randint(5, VOCABULARY, (1, 7))
    inputs = module.embedding.weight.detach()[tokens[0]].double().numpy()
    for layer in module.layers:
        w, u, b, c, *p = (weight.detach().double().numpy() for weight in layer.parameters())
        outputs, output, cell = [], np.zeros(u.shape[1]), np.zeros(9)
        for x in inputs:
            i, f, g, o = np.split(w @ x + b + u @ output + c, 4)
            cell = cell / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            output = np.tanh(cell) / (1 + np.exp(-o))
            output = p[0] @ output if p else output
            outputs.append(output)
        inputs = np.array(outputs)
    with torch.inference_mode():
        np.testing.assert_allclose(
            module.hidden(tokens, torch.tensor([7]))[0].numpy(), inputs, atol=1e-5
        )


def test_no_state_sees_the_future_or_padding():
    with torch.inference_mode():
        look_for_the_future(model("tied"), VOCABULARY)


@pytest.mark.parametrize("size", SIZES)
def test_a_memory_of_prefixes_gives_the_states_of_whole_passes(size):
    grow_random_tree(model(size), VOCABULARY, longest=12)


def test_a_projection_is_what_layers_hand_on():
    lm = LanguageModel(
        settings("lstm", arch={"layers": 2, "dim": 8, "units": 24, "projection": 10}), 50
    )
    shapes = [tuple(p.shape) for p in lm.trunk.layers.parameters() if p.dim() == 2]
    assert shapes == [(96, 8), (96, 10), (10, 24), (96, 10), (96, 10), (10, 24)]
    assert lm.output.weight.shape == (50, 10)


def test_any_length_is_one_pass(trained):
    """A sentence longer than any positions is read whole: its first word counts."""
    options = ask(str(trained["lstm"]), cache="none")
    scorer = load(*options)
    lines = ["king " + "the " * 400, "the king"]
    whole, short = score_texts(lines, scorer, options.computing).log_prob
    assert whole == pytest.approx(scorer.compute(scorer.prepare(lines[:1]))[0].sum(), abs=1e-3)
    assert whole < short


def test_the_paper_size_builds_on_paper():
    with torch.device("meta"):
        lm = LanguageModel(settings("lstm", arch={}), 200_000)
    matrices = {tuple(p.shape) for p in lm.parameters() if p.dim() == 2}
    assert matrices == {(200_000, 128), (8192, 128), (8192, 2048), (200_000, 2048)}


def test_processors_without_a_bfloat16_kernel_compute_in_float32(monkeypatch):
    monkeypatch.setattr("lmtools.models.lstm.onednn_computes_bfloat16", lambda: False)
    torch.manual_seed(1)
    lm = Lstm(LstmConfig(layers=2, dim=8, units=12), 20)
    tokens, lengths = torch.tensor([[7, 8, 9], [5, 6, 0]]), torch.tensor([3, 2])
    plain = list(lm.layer_states(tokens, lengths))
    with torch.autocast("cpu", torch.bfloat16):
        states = list(lm.layer_states(tokens, lengths))
    assert all(map(torch.equal, plain, states))
