"""Gated convolutions: what they compute, what they see, and that they come back from their
directory.
"""

import copy
import dataclasses
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file as load_tensors
from scoring import load_scorer, walk
from torch.nn import functional as F
from toys import grow_random_tree, look_for_the_future, settings
from unit.models.test_convolution import reference

from lmtools.base.config import from_yaml
from lmtools.base.errors import UserError
from lmtools.models import convolution
from lmtools.models.checkpoint import load_model, prepare_directory, save_weights
from lmtools.models.convolution import GATES, GatedConvolution
from lmtools.models.gcnn import Gcnn, GcnnConfig, read_blocks
from lmtools.models.lm import LanguageModel
from lmtools.models.outputs.softmax import Adaptive
from lmtools.models.settings import Settings
from lmtools.train import train

VOCABULARY = 23
CONF = Path(__file__).parents[3] / "conf"
DEEP = ("[3, 8]", "[1, 4; 5, 4; 1, 8] x 2", "[2, 6; 4, 12]")
FORMS = {gate: {"gate": gate} for gate in GATES} | {
    "plain": {"weight_norm": False},
    "scaled": {"residual_scale": 0.5**0.5},
}


def model(dtype=torch.float32, **changes) -> Gcnn:
    """Far from its initialisation, so that a leak would show."""
    torch.manual_seed(3)
    module = Gcnn(GcnnConfig(**{"dim": 6, "blocks": DEEP, **changes}), VOCABULARY).eval().to(dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, 0.7)
    return module


@pytest.mark.parametrize("gate", GATES)
def test_gates_are_their_formulas(gate):
    a, b = torch.randn(2, 3, 4).double()
    sigmoid = 1 / (1 + (-b).exp())
    expected = {
        "glu": a * sigmoid, "gtu": (a.exp() - (-a).exp()) / (a.exp() + (-a).exp()) * sigmoid,
        "bilinear": a * b,
        "relu": torch.where(a > 0, a, 0), "tanh": (a.exp() - (-a).exp()) / (a.exp() + (-a).exp()),
        "linear": a,
    }  # fmt: skip
    torch.testing.assert_close(
        GATES[gate].function(torch.cat([a, b], -1) if GATES[gate].branches == 2 else a),
        expected[gate],
    )


@pytest.mark.parametrize("form", FORMS)
def test_states_are_those_of_the_equations(form):
    """Residual blocks of torch's own convolutions, normalised by their formula."""
    module = model(torch.float64, **FORMS[form])
    gate = GATES[module.config.gate].function
    tokens = torch.randint(5, VOCABULARY, (3, 11))

    def convolve(layer, x):
        weight = layer.direction
        if layer.gain is not None:
            weight = weight * (layer.gain / weight.square().sum((0, 1)).sqrt())
        return reference(x, weight, layer.bias)

    state = module.embedding.weight[tokens]
    for block in module.blocks:
        inner = state
        for layer in block.layers:
            inner = gate(convolve(layer, inner))
        around = convolve(block.projection, state) if inner.shape != state.shape else state
        state = (around + inner) * (math.sqrt(0.5) if form == "scaled" else 1.0)
    torch.testing.assert_close(
        module.hidden(tokens, torch.full((3,), 11)), state, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("form", FORMS)
def test_no_state_sees_the_future_or_padding(form, monkeypatch):
    """Bit for bit, with as many halvings as there can be."""
    monkeypatch.setattr(convolution, "ADDITIONS", 0)
    monkeypatch.setattr(convolution, "FILTERS", 0)
    module = model(**FORMS[form])
    with torch.inference_mode():
        tokens, before = look_for_the_future(module, VOCABULARY)
        padded = module.hidden(F.pad(tokens, (0, 5)), torch.tensor([8, 3]))[:, :8]
    torch.testing.assert_close(padded, before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "blocks", [("[1, 4]",), ("[4, 6] x 3",), ("[3, 4; 2, 4] x 2", "[1, 8; 5, 6]"), DEEP]
)
def test_a_state_sees_its_receptive_field(blocks):
    """Exactly that many tokens have a gradient."""
    module = model(torch.float64, blocks=blocks, gate="bilinear")
    field, length = module.config.receptive_field, 40
    inputs = (
        module.embedding.weight[torch.randint(VOCABULARY, (1, length))].detach().requires_grad_()
    )
    state = inputs
    for block in module.blocks:
        state = block(state)
    state[0, 35].sum().backward()
    seen = inputs.grad[0].abs().sum(-1) > 0
    assert seen.nonzero().flatten().tolist() == list(range(36 - field, 36))
    assert module.describe() == f"receptive field {field} tokens"


@pytest.mark.parametrize("form", FORMS)
def test_a_memory_of_prefixes_gives_the_states_of_whole_passes(form):
    module = model(**FORMS[form])
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(0.6)
    grow_random_tree(module, VOCABULARY, longest=20)


WRONG = {
    "blocks: ['4, 900']": "write .kernel, outputs; kernel, outputs .... x times",
    "blocks: ['[4]']": r"cannot read '\[4\]'",
    "blocks: ['[4, 900] x 0']": "cannot read", "blocks: ['[0, 900]']": "cannot read",
    "blocks: ['[4, 900;]']": "cannot read",
    "blocks: ['[4, 900] times 2']": "cannot read", "blocks: [[4, 900]]": "setting 'blocks' is",
    "blocks: []": "needs a block",
    "gate: GLU": "arch.gate: 'GLU' is unknown; known: glu, gtu",
    "dropout: 1.0": "arch.dropout: 1.0", "dim: 0": "arch.dim: 0 is too small",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_configuration(tmp_path, text):
    (tmp_path / "arch.yaml").write_text(text)
    with pytest.raises(UserError, match=WRONG[text]):
        from_yaml(GcnnConfig, tmp_path / "arch.yaml")


def test_the_notation_of_blocks():
    assert read_blocks("[1, 128; 5, 128; 1, 512] x 3") == [((1, 128), (5, 128), (1, 512))] * 3
    assert read_blocks(" [4,900]x2 ") == [((4, 900),)] * 2


@pytest.mark.parametrize("gate", GATES)
def test_initial_weights_keep_the_variance(gate):
    """Kaiming's: inputs of variance 1 make outputs of a mean square of about 1."""
    torch.manual_seed(0)
    block = Gcnn(
        GcnnConfig(dim=64, blocks=("[4, 256; 4, 300]",), gate=gate, dropout=0.5), 9
    ).blocks[0]
    layer, kept = block.layers[0], 0.5 * GATES[gate].gain
    assert layer.direction.std().item() == pytest.approx(math.sqrt(kept / (4 * 64)), rel=0.02)
    assert block.projection.direction.std().item() == pytest.approx(math.sqrt(0.5 / 64), rel=0.02)
    assert not layer.bias.any() and not block.projection.bias.any()
    dropped = torch.randn(8, 64, 64) * (torch.rand(8, 64, 64) < 0.5) * 2
    with torch.no_grad():
        power = GATES[gate].function(layer(dropped))[:, 3:].square().mean().item()
    # far from 0 sigmoid is more, tanh less
    low, high = {"tanh": (0.35, 0.45), "gtu": (0.2, 0.25), "glu": (1.2, 1.6)}.get(gate, (0.9, 1.1))
    assert low < power < high


def test_a_folded_filter_is_never_stale(monkeypatch):
    """Made once in evaluation; made anew after every way in which weights change."""
    module, tokens, lengths = model(), torch.randint(5, VOCABULARY, (1, 9)), torch.tensor([9])
    made, normal = [], GatedConvolution.normal
    monkeypatch.setattr(GatedConvolution, "normal", lambda self: made.append(self) or normal(self))

    def check(some):
        with torch.inference_mode():
            kept = some.hidden(tokens, lengths)
        # with gradients nothing is kept
        torch.testing.assert_close(
            kept, some.hidden(tokens, lengths).detach(), rtol=1e-5, atol=1e-5
        )
        return kept

    before = check(module)
    count = len(made)
    with torch.inference_mode():
        assert torch.equal(module.hidden(tokens, lengths), before) and len(made) == count
    twin = copy.deepcopy(module)
    assert torch.equal(check(twin), before)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(1.1)
    changed = check(twin)
    assert not torch.allclose(changed, before) and torch.equal(check(module), before)
    module.load_state_dict(twin.state_dict())
    assert torch.allclose(check(module), changed)
    module.load_state_dict(
        {name: tensor.clone() / 1.1 for name, tensor in twin.state_dict().items()}, assign=True
    )
    torch.testing.assert_close(check(module), before, rtol=1e-4, atol=1e-4)
    doubled = module.double()
    assert check(doubled).dtype == torch.float64
    optimiser = torch.optim.SGD(doubled.train().parameters(), lr=0.1, fused=True)
    doubled.hidden(tokens, lengths).sum().backward()
    doubled.eval()
    check(doubled)
    optimiser.step()
    assert not torch.allclose(check(doubled).float(), before)
    doubled.train()
    for parameter in doubled.parameters():
        parameter.data.mul_(0.5)
    check(doubled.eval())
    with torch.autocast("cpu", torch.bfloat16), torch.inference_mode():
        low = doubled.float().hidden(tokens, lengths)
    assert low.dtype == torch.float32  # the residual stream
    torch.testing.assert_close(low, check(doubled), rtol=0.05, atol=0.05)
    assert not any("folded" in name for name in doubled.state_dict())


def toy(**changes) -> Settings:
    """Settings of a small model that trains in a second."""
    arch = {"dim": 12, "blocks": ["[3, 16]", "[1, 8; 3, 8; 1, 16]"], "dropout": 0.1}
    changes = {
        "model": "gcnn",
        "arch": arch,
        "criterion": "adaptive",
        "output": {"cutoffs": [6, 12]},
        "epochs": 5,
        **changes,
    }
    return dataclasses.replace(settings("lstm"), **changes)


@pytest.fixture(scope="module")
def folder(tiny, tmp_path_factory):
    """A trained model's directory."""
    out = tmp_path_factory.mktemp("gcnn") / "lm"
    train(toy(), tiny / "train.bin", tiny / "valid.bin", out, "cpu")
    return out


def test_a_model_comes_back_from_its_directory_and_scores_prefix_by_prefix(tiny, folder, tmp_path):
    scorer = load_scorer(str(folder), "cpu")
    assert scorer.lm.trunk.config == toy().architecture
    assert scorer.lm.trunk.config.receptive_field == 5
    again, subword = load_model(folder)
    prepare_directory(tmp_path / "copy", again.settings, subword)
    save_weights(tmp_path / "copy", again)
    one, other = (load_tensors(path / "model.safetensors") for path in (folder, tmp_path / "copy"))
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
    line = "the a king queen city went"  # as the corpus goes
    whole = scorer.log_probs(scorer.prepare([line]))[0].sum()
    assert sum(walk(scorer.prefixes(), line.split())) == pytest.approx(whole, abs=1e-4)
    assert whole > -7 * math.log(len(subword.vocabulary) - 5)  # better than a guess


GBW, WIKITEXT = 793_471 + 2, 267_735 + 3  # ids: words, and the specials that the list does not have
TABLE = {  # (lookup, ids, cut-offs, [(layers of a block), times]) of Table 1
    "gcnn-13": (128, GBW, (10_000, 40_000, 200_000), [
        ([(4, 1268)], 1), ([(4, 1268), (4, 1268)], 12),
    ]),
    "gcnn-13-single": (128, GBW, (10_000, 40_000, 200_000), [([(4, 1268)], 13)]),
    "gcnn-14b": (128, GBW, (10_000, 40_000, 200_000), [
        ([(5, 512)], 1), ([(1, 128), (5, 128), (1, 512)], 3), ([(1, 512), (5, 512), (1, 1024)], 3),
        ([(1, 1024), (5, 1024), (1, 2048)], 6), ([(1, 1024), (5, 1024), (1, 4096)], 1),
    ]),
    "gcnn-9": (128, GBW, (4_000, 40_000, 200_000), [([(4, 807)], 1), ([(4, 807), (4, 807)], 4)]),
    "gcnn-8b": (128, GBW, (4_000, 40_000, 200_000), [
        ([(1, 512)], 1), ([(1, 128), (5, 128), (1, 512)], 3), ([(1, 256), (5, 256), (1, 512)], 3),
        ([(1, 1024), (1, 1024), (1, 2048)], 1),
    ]),
    "gcnn-8": (280, WIKITEXT, (2_000, 10_000, 50_000), [([(4, 900)], 8)]),
    "gcnn-14": (280, WIKITEXT, (10_000, 20_000, 200_000), [
        ([(6, 850)], 3), ([(1, 850)], 1), ([(5, 850)], 4), ([(1, 850)], 1), ([(4, 850)], 3),
        ([(4, 1024)], 1), ([(4, 2048)], 1),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_the_papers_models_have_their_parameters(name):
    """Trunk, lookup and adaptive softmax by the formula and the YAML; nothing allocated."""
    dim, ids, cutoffs, blocks = TABLE[name]
    width, trunk, field = dim, 0, 1
    for layers, times in blocks:
        for _ in range(times):
            inner = width
            for kernel, outputs in layers:
                trunk += 2 * outputs * (kernel * inner + 2)  # W and V, each with gain and bias
                inner, field = outputs, field + kernel - 1
            trunk += outputs * (width + 2) if width != outputs else 0  # the way around
            width = outputs
    softmax = (cutoffs[0] + 3) * (width + 1)
    for i, (low, high) in enumerate(zip(cutoffs, (*cutoffs[1:], ids), strict=True), 1):
        softmax += (width // 4**i) * (width + high - low) + high - low
    some = from_yaml(Settings, CONF / f"{name}.yaml")
    with torch.device("meta"):
        module = Gcnn(some.architecture, ids)
        output = Adaptive(module.width, ids, some.output_layer.cutoffs, some.output_layer.divide)
    counts = [
        sum(p.numel() for p in part.parameters())
        for part in (module.blocks, module.embedding, output)
    ]
    assert counts == [trunk, ids * dim, softmax]
    assert sum(counts[:2]) == sum(p.numel() for p in module.parameters())
    stated = (CONF / f"{name}.yaml").read_text().replace("\n# ", " ")
    assert all(
        f"{count:,} of the {part}" in stated
        for count, part in zip(counts, ("trunk", "lookup", "adaptive softmax"), strict=True)
    )
    assert f"Receptive field: {field} tokens" in stated
    assert module.config.receptive_field == field
    assert f"{ids:,} ids" in stated


def test_the_papers_models_learn_as_stated():
    for name in TABLE:
        some = from_yaml(Settings, CONF / f"{name}.yaml")
        assert (
            some.optim.name,
            some.optim.momentum,
            some.optim.lr,
            some.optim.clip,
            some.optim.weight_decay,
        ) == ("nag", 0.99, 1, 0.1, 0)
        arch = some.architecture
        assert arch.gate == "glu" and arch.weight_norm
        assert (arch.residual_scale, arch.dropout) == (1, 0)  # no factor and no dropout is printed
    fairseq = from_yaml(Settings, CONF / "gcnn-14-fairseq.yaml").architecture
    assert (fairseq.residual_scale, fairseq.dropout) == (0.5**0.5, 0.2)


def test_sparse_gradients_of_the_lookup():
    """Where the criterion asks for them, against the dense gradient."""
    grads = []
    for sparse in (False, True):
        lm = LanguageModel(toy(optim=dataclasses.replace(toy().optim, sparse=sparse)), VOCABULARY)
        torch.manual_seed(5)
        for parameter in lm.trunk.parameters():
            parameter.data.normal_(0, 0.3)
        lm.trunk.eval().hidden(
            torch.arange(8)[None] + 5, torch.tensor([8])
        ).square().sum().backward()
        grads.append(lm.trunk.lookup.weight.grad)
    assert grads[1].is_sparse
    torch.testing.assert_close(grads[1].to_dense(), grads[0], rtol=1e-5, atol=1e-6)
