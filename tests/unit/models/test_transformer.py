"""What defines each family: who may look at what, bit for bit."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmtools.models import MODELS
from lmtools.models.dropout import Dropout
from lmtools.models.transformer import TransformerConfig, matrix_flops
from lmtools.subword import BOS, EOS, MASK, PAD

VOCABULARY = 23
SIZES = {
    "small": TransformerConfig(layers=1, dim=8, heads=2, ffn=16, positions=12),
    "deep": TransformerConfig(layers=3, dim=16, heads=4, ffn=32, positions=12),
}


def model(family: str, size: str, dtype=torch.float32):
    torch.manual_seed(3)
    module = MODELS[family](SIZES[size], VOCABULARY).eval().to(dtype)
    for parameter in module.parameters():  # far from initialisation, so that a leak would show
        parameter.data.normal_(0, 0.5)
    return module


def hidden_of_every_layer(module, tokens, lengths):
    """The states after each block, by hooks."""
    states = []
    hooks = [block.register_forward_hook(lambda *args: states.append(args[-1])) for block in module.blocks]
    with torch.inference_mode():
        module.hidden(tokens, lengths)
    for hook in hooks:
        hook.remove()
    return states


def batch(seed: int):
    """Padded sentences of 0 to 8 tokens with BOS and EOS, so the one-token and the empty sentence are among them."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([10, 3, 2, 7])
    tokens = torch.randint(5, VOCABULARY, (4, 10), generator=generator)
    for row, length in zip(tokens, lengths, strict=True):
        row[0], row[length - 1], row[length:] = BOS, EOS, PAD
    return tokens, lengths


@pytest.mark.parametrize("size", SIZES)
def test_tta_state_never_depends_on_its_own_token_nor_on_padding(size):
    module = model("tta", size)
    tokens, lengths = batch(0)
    before = hidden_of_every_layer(module, tokens, lengths)
    for position in range(tokens.shape[1]):
        changed = tokens.clone()
        changed[:, position] = (changed[:, position] + 7) % VOCABULARY
        for layer, (old, new) in enumerate(zip(before, hidden_of_every_layer(module, changed, lengths), strict=True)):
            inside = position < lengths
            assert torch.equal(old[inside, position], new[inside, position]), f"layer {layer}: state {position} sees its own token"
            for row in (~inside).nonzero()[:, 0]:
                assert torch.equal(old[row, : lengths[row]], new[row, : lengths[row]]), f"layer {layer}: padding is seen"


def test_tta_state_depends_on_every_other_token():
    module = model("tta", "deep")
    tokens, lengths = batch(1)
    before = hidden_of_every_layer(module, tokens[:1], lengths[:1])[-1]
    for position in range(10):
        changed = tokens[:1].clone()
        changed[:, position] = (changed[:, position] + 7) % VOCABULARY
        after = hidden_of_every_layer(module, changed, lengths[:1])[-1]
        others = [i for i in range(10) if i != position]
        assert not (before[0, others] == after[0, others]).all(-1).any()


def test_a_one_token_sentence_attends_to_the_boundary_tokens_only():
    """Its query must not fall back to attending everywhere when all others are padding."""
    module = model("tta", "deep")
    for word in range(5, VOCABULARY):
        tokens = torch.tensor([[BOS, word, EOS, PAD, PAD], [BOS, 5, 6, 7, EOS]])
        state = module.hidden(tokens, torch.tensor([3, 5]))[0, 1]
        alone = module.hidden(torch.tensor([[BOS, 9, EOS]]), torch.tensor([3]))[0, 1]
        torch.testing.assert_close(state, alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_causal_state_never_sees_the_future(size):
    module = model("causal", size)
    tokens, lengths = batch(2)
    before = hidden_of_every_layer(module, tokens, lengths)
    for position in range(tokens.shape[1]):
        changed = tokens.clone()
        changed[:, position:] = (changed[:, position:] + 7) % VOCABULARY
        for old, new in zip(before, hidden_of_every_layer(module, changed, lengths), strict=True):
            assert torch.equal(old[:, :position], new[:, :position])
            assert not torch.equal(old[:, position], new[:, position])


def test_masked_state_sees_all_but_padding():
    module = model("masked", "deep")
    tokens, lengths = batch(3)
    before = module.hidden(tokens, lengths)
    changed = torch.where(tokens == PAD, 9, tokens)
    after = module.hidden(changed, lengths)
    for row, length in enumerate(lengths):
        assert torch.equal(before[row, :length], after[row, :length])
    changed = tokens.clone()
    changed[0, 4] = (changed[0, 4] + 7) % VOCABULARY
    assert (module.hidden(changed, lengths)[0] != before[0]).any(-1).all()


@pytest.mark.parametrize("size", SIZES)
def test_masked_states_equal_one_plain_pass_a_token(size):
    module = model("masked", size, torch.float64)
    tokens = torch.tensor([[BOS, 7, 8, 9, EOS], [BOS, 5, 5, 22, EOS]])
    fast = module.masked_states(tokens, MASK)
    for position in range(5):
        copy = tokens.clone()
        copy[:, position] = MASK
        plain = module.hidden(copy, torch.tensor([5, 5]))[:, position]
        torch.testing.assert_close(fast[:, position], plain, rtol=1e-10, atol=1e-10)


def test_families_have_equal_parameter_counts():
    families = ("causal", "masked", "tta")
    counts = {family: sum(p.numel() for p in MODELS[family](SIZES["deep"], VOCABULARY).parameters()) for family in families}
    assert len(set(counts.values())) == 1, counts


def test_flops_are_those_of_the_matrices():
    config = SIZES["deep"]
    module = MODELS["masked"](config, VOCABULARY)
    weights = sum(p.numel() for name, p in module.named_parameters() if p.dim() == 2 and "embedding" not in name and "head" not in name)
    assert matrix_flops(config, positions=7, attended=0) == 2 * 7 * weights
    extra = matrix_flops(config, 7, 0, vocabulary=VOCABULARY, predicted=2) - matrix_flops(config, 7, 0)
    assert extra == 2 * 2 * (config.dim**2 + config.dim * VOCABULARY)


@given(rate=st.sampled_from([0.0, 0.1, 0.25, 0.5]), seed=st.integers(0, 2**32))
def test_dropout_keeps_the_expectation_and_the_rate(rate, seed):
    torch.manual_seed(seed)
    x = torch.ones(100, 1003)
    y = Dropout(rate)(x)
    assert abs(float((y == 0).float().mean()) - rate) < 0.01
    assert abs(float(y.mean()) - 1) < 0.02
    assert torch.equal(Dropout(rate).eval()(x), x)
