"""ELMo: what each part may see, and every part against an independent computation."""

from pathlib import Path

import pytest
import torch
from torch import nn

from lmtools.base.config import build, from_yaml
from lmtools.base.errors import UserError
from lmtools.models.elmo import Elmo, ElmoConfig, Highway, Largest, Speller
from lmtools.models.projected import Packing, Steps, TwoWayLstm
from lmtools.models.settings import Settings
from lmtools.text.subword import BOS, EOS, MASK, PAD

VOCABULARY, DIM = 30, 12
SMALL = ElmoConfig(
    piece_dim=5, filters=((1, 4), (2, 3), (5, 6)), dim=DIM, units=20, layers=3, dropout=0.0
)
LENGTHS = torch.tensor([4, 7, 1, 6, 7])


def model(seed=1, config=SMALL) -> Elmo:
    """A random model whose gates, biases and clipping all matter."""
    torch.manual_seed(seed)
    module = Elmo(config, VOCABULARY).eval()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "pieces" not in name:
                parameter.normal_(0, 0.4)
    return module


def words(count: int, seed=1, longest=9) -> torch.Tensor:
    """Spellings (count, L) of random words of 1 to `longest` pieces with their end mark."""
    generator = torch.Generator().manual_seed(seed)
    spelled = torch.randint(5, VOCABULARY, (count, longest + 1), generator=generator)
    lengths = torch.randint(1, longest + 1, (count,), generator=generator)
    lengths[:2] = torch.tensor([1, longest])
    spelled.scatter_(1, lengths[:, None], MASK)
    return spelled.masked_fill(torch.arange(longest + 1) > lengths[:, None], PAD)


@pytest.fixture
def batch():
    """Five sentences of other words, (inputs, lengths, spellings), oddly padded."""
    generator = torch.Generator().manual_seed(2)
    return torch.randint(0, 40, (5, 7), generator=generator), LENGTHS, words(40)


def plain_vector(speller: Speller, word: list[int]) -> torch.Tensor:
    """A word's vector, piece by piece and window by window."""
    found = []
    for convolution in speller.convolutions:
        width = convolution.width
        zeros = [torch.zeros(speller.pieces.embedding_dim)] * max(0, width - len(word))
        rows = [*speller.pieces.weight[word], *zeros]
        windows = [torch.cat(rows[i : i + width]) for i in range(len(rows) - width + 1)]
        found.append(
            torch.stack([convolution.filters(window) for window in windows]).amax(0).relu()
        )
    x = torch.cat(found)
    for layer in speller.highways:
        a, b = layer.both.weight.chunk(2)
        a0, b0 = layer.both.bias.chunk(2)
        gate = 1 / (1 + torch.exp(-(b @ x + b0)))
        x = gate * (a @ x + a0).clamp(min=0) + (1 - gate) * x
    return speller.projection(x)


def plain_lstm(layer: TwoWayLstm, direction: int, inputs: torch.Tensor) -> torch.Tensor:
    """The outputs (T, D) of one direction in reading order, step by step, clipped."""
    weights = (
        layer.inputs[direction].T,
        layer.recurrent[direction].T,
        layer.bias.view(2, -1)[direction],
    )
    h, c, outputs = torch.zeros(layer.inputs.shape[1]), torch.zeros(layer.projection.shape[1]), []
    for x in inputs:
        i, f, g, o = (weights[0] @ x + weights[1] @ h + weights[2]).chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        c = c.clamp(-layer.clips[0], layer.clips[0]) if layer.clips[0] else c
        h = (torch.sigmoid(o) * torch.tanh(c)) @ layer.projection[direction]
        h = h.clamp(-layer.clips[1], layer.clips[1]) if layer.clips[1] else h
        outputs.append(h)
    return torch.stack(outputs)


def test_words_have_the_vectors_of_a_plain_computation():
    speller, spelled = model().speller, words(25)
    expected = torch.stack(
        [plain_vector(speller, [i for i in word if i != PAD]) for word in spelled.tolist()]
    )
    torch.testing.assert_close(speller(spelled), expected, rtol=0, atol=1e-5)


def test_padding_after_a_word_changes_no_bit():
    speller, spelled = model().speller, words(25)
    for columns in (1, 4, 40):
        padded = torch.cat([spelled, torch.full((25, columns), PAD)], dim=1)
        assert torch.equal(speller(padded), speller(spelled))
    with torch.no_grad():
        before = speller(spelled)
        speller.pieces.weight[PAD] += 7
        assert torch.equal(speller(spelled), before)


def test_the_largest_window_has_the_gradient():
    values = torch.randn(12, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: Largest.apply(v, [5, 4, 2, 1]), values)
    equal = torch.zeros(3, 1, requires_grad=True)
    Largest.apply(equal, [1, 1, 1]).sum().backward()
    assert equal.grad.flatten().tolist() == [1, 0, 0]


def test_a_highway_starts_by_carrying():
    """With no weights the gate is sigmoid(-2): 0.88 of the input and 0.12 of relu(0)."""
    layer = Highway(6)
    nn.init.zeros_(layer.both.weight)
    x = torch.randn(4, 6)
    torch.testing.assert_close(layer(x), 0.880797 * x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("clips", [(0.0, 0.0), (3.0, 3.0), (0.3, 0.2)])
def test_both_directions_are_plain_lstms(clips):
    torch.manual_seed(3)
    layer = TwoWayLstm(DIM, 20, *clips)
    x, packing = torch.randn(5, 7, DIM), Packing.of(LENGTHS, 7)
    packed = x.flatten(0, 1)[packing.places]
    states = packing.unpack(layer(packed, packing)).unflatten(1, (2, -1))
    for row, length in enumerate(LENGTHS.tolist()):
        left = plain_lstm(layer, 0, x[row, :length])
        right = plain_lstm(layer, 1, x[row, :length].flip(0)).flip(0)
        torch.testing.assert_close(
            states[row, :, :length], torch.stack([left, right]), rtol=0, atol=1e-5
        )
        assert not states[row, :, length:].any()


@pytest.mark.parametrize("clips", [(0.0, 0.0), (0.25, 0.15)])
def test_the_gradients_are_those_of_finite_differences(clips):
    torch.manual_seed(5)
    packing = Packing.of(torch.tensor([3, 1, 2]), 3)
    shapes = (2, 6, 2), (2, 2, 12), (2, 1, 12), (2, 2, 12), (2, 3, 2)
    tensors = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(lambda *t: Steps.apply(*t, packing.steps, *clips), tensors)
    outputs = Steps.apply(*tensors, packing.steps, *clips)
    assert not clips[1] or 0 < (outputs.abs() == clips[1]).sum() < outputs.numel()


def test_a_sentence_has_the_states_that_it_has_alone(batch):
    module, (inputs, lengths, spelled) = model(), batch
    together = module.hidden(*batch).unflatten(1, (2, -1))
    for row, length in enumerate(lengths.tolist()):
        alone = module.hidden(
            inputs[row : row + 1, :length], lengths[row : row + 1], spelled
        ).unflatten(1, (2, -1))
        torch.testing.assert_close(together[row, :, :length], alone[0], rtol=0, atol=1e-6)


def test_padding_has_no_part_in_the_states(batch):
    module, (inputs, lengths, spelled) = model(), batch
    other = torch.where(torch.arange(7) < lengths[:, None], inputs, (inputs + 11) % 40)
    wider = torch.cat([other, other], dim=1)
    before = module.hidden(inputs, lengths, spelled)
    assert torch.equal(before, module.hidden(other, lengths, spelled))
    assert torch.equal(
        before.unflatten(1, (2, -1)),
        module.hidden(wider, lengths, spelled).unflatten(1, (2, -1))[:, :, :7],
    )


def test_no_direction_sees_what_it_has_not_read(batch):
    module, (inputs, lengths, spelled) = model(), batch
    before = module.hidden(*batch).unflatten(1, (2, -1))
    for position in range(7):
        changed = inputs.clone()
        changed[:, position] = (changed[:, position] + 13) % 40
        after = module.hidden(changed, lengths, spelled).unflatten(1, (2, -1))
        same = (before - after).abs().amax(-1) < 1e-6  # (B, 2, T)
        for row, length in enumerate(lengths.tolist()):
            read = torch.arange(length) >= position, torch.arange(length) <= position
            for direction in (0, 1):
                assert same[row, direction, :length].tolist() == [
                    position >= length or not there for there in read[direction].tolist()
                ]


def test_layers_end_with_the_states_that_predict(batch):
    module, (inputs, lengths, spelled) = model(), batch
    layers, last = list(module.layer_states(*batch)), module.hidden(*batch).unflatten(1, (2, -1))
    assert len(layers) == 4 and all(layer.shape == (5, 7, 2 * DIM) for layer in layers)
    assert torch.equal(layers[-1], torch.cat([last[:, 0], last[:, 1]], dim=-1))
    here = torch.arange(7) < lengths[:, None]
    vectors = module.speller(spelled)[inputs[here]]
    torch.testing.assert_close(
        layers[0][here], torch.cat([vectors, vectors], dim=-1), rtol=0, atol=1e-6
    )
    first, second = (layer[3, :6, :DIM] for layer in layers[1:3])
    torch.testing.assert_close(
        first, plain_lstm(module.lstms[0], 0, layers[0][3, :6, :DIM]), rtol=0, atol=1e-5
    )
    torch.testing.assert_close(
        second, first + plain_lstm(module.lstms[1], 0, first), rtol=0, atol=1e-5
    )


def test_the_published_sizes_have_the_parameters_of_the_formula():
    """Convolutions, highways, projection, LSTMs: 93.6 million with 262 characters."""
    with torch.device("meta"):
        module = Elmo(ElmoConfig(), 262)
    filters = {1: 32, 2: 32, 3: 64, 4: 128, 5: 256, 6: 512, 7: 1024}
    convolutions = sum(width * 16 * count + count for width, count in filters.items())
    highway = 2 * 2 * (2048 * 2048 + 2048)
    lstm = 4 * 4096 * (512 + 512 + 1) + 4096 * 512
    expected = 262 * 16 + convolutions + highway + (2048 * 512 + 512) + 2 * 2 * lstm
    assert sum(parameter.numel() for parameter in module.parameters()) == expected == 93_600_864
    assert module.width == 512
    assert module.shared is None
    assert tuple(module.lookup.weight.shape) == (262, 16)
    assert module.describe() == "2,048 filters over 1 to 7 pieces of a word"


def test_it_learns_in_bfloat16_as_in_float32(batch):
    """Every weight's gradients, and all pieces', agree up to bfloat16's precision."""
    module, gradients = model(), []
    for kind in (torch.float32, torch.bfloat16):
        module.zero_grad()
        with torch.autocast("cpu", kind, enabled=kind is torch.bfloat16):
            states = module.hidden(*batch)
        states.float().square().sum().backward()
        gradients.append({name: parameter.grad for name, parameter in module.named_parameters()})
    exact, rough = gradients
    for name, gradient in exact.items():
        assert rough[name].dtype == torch.float32 and gradient.abs().max() > 0
        similarity = torch.cosine_similarity(gradient.flatten(), rough[name].flatten(), dim=0)
        assert similarity > 0.98, name


def test_the_embedding_can_have_a_sparse_gradient(batch):
    module = model()
    module.hidden(*batch).sum().backward()
    dense, module.lookup.weight.grad, module.lookup.sparse = module.lookup.weight.grad, None, True
    module.hidden(*batch).sum().backward()
    torch.testing.assert_close(module.lookup.weight.grad.to_dense(), dense)
    assert not dense[[PAD, BOS, EOS]].any() and dense[MASK].any()


@pytest.mark.parametrize("name", ["elmo", "esulmo"])
def test_the_published_configurations_have_the_published_sizes(name):
    settings = from_yaml(Settings, Path(__file__).parents[3] / "conf" / f"{name}.yaml")
    assert settings.architecture == ElmoConfig()
    assert settings.objective == "two-way"
    assert settings.output_layer.samples == 8192
    assert settings.sparse


def test_filters_are_read_from_yaml():
    assert build(ElmoConfig, {"filters": [[1, 4], [2, 8]]}).filters == ((1, 4), (2, 8))
    for wrong in ([[1, 4, 5]], [], [[0, 3]]):
        with pytest.raises(UserError, match="filters"):
            build(ElmoConfig, {"filters": wrong})
