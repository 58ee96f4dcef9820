"""What defines each family: who may look at what, bit for bit."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F
from toys import settings

from lmtools.base.errors import UserError
from lmtools.models import MODELS
from lmtools.models.device import Dropout
from lmtools.models.lm import LanguageModel
from lmtools.models.lstm import LstmConfig
from lmtools.models.transformer import TransformerConfig
from lmtools.models.tta import QUERIES
from lmtools.text.subword import BOS, EOS, MASK, PAD

VOCABULARY = 23
SIZES = {
    "small": TransformerConfig(layers=1, dim=8, heads=2, ffn=16, positions=12),
    "deep": TransformerConfig(layers=3, dim=16, heads=4, ffn=32, positions=12),
    "pre": TransformerConfig(layers=3, dim=16, heads=4, ffn=32, positions=12, norm="pre"),
}
ORDERLESS = TransformerConfig(
    layers=3, dim=16, heads=4, ffn=32, positions=12, norm="pre", position="none"
)
PAPER = {"layers": 42, "dim": 512, "ffn": 2048, "heads": 8, "position": "none", "norm": "pre"}


def model(family: str, size: str, dtype=torch.float32, **more):
    torch.manual_seed(3)
    size = vars(ORDERLESS if size == "orderless" else SIZES[size])
    config = MODELS[family].Config(**{**size, **more})
    module = MODELS[family](config, VOCABULARY).eval().to(dtype)
    for parameter in module.parameters():  # far from initialisation, so that a leak would show
        parameter.data.normal_(0, 0.5)
    return module


def hidden_of_every_layer(module, tokens, lengths):
    """The states after each block, by hooks."""
    states = []
    hooks = [
        block.register_forward_hook(lambda *args: states.append(args[-1]))
        for block in module.blocks
    ]
    with torch.inference_mode():
        module.hidden(tokens, lengths)
    for hook in hooks:
        hook.remove()
    return states


def batch(seed: int):
    """Padded sentences of 0 to 8 tokens with BOS and EOS."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([10, 3, 2, 7])
    tokens = torch.randint(5, VOCABULARY, (4, 10), generator=generator)
    for row, length in zip(tokens, lengths, strict=True):
        row[0], row[length - 1], row[length:] = BOS, EOS, PAD
    return tokens, lengths


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("size", SIZES)
def test_tta_state_never_depends_on_its_own_token_nor_on_padding(size, query):
    module = model("tta", size, query=query)
    tokens, lengths = batch(0)
    before = hidden_of_every_layer(module, tokens, lengths)
    for position in range(tokens.shape[1]):
        changed = tokens.clone()
        changed[:, position] = (changed[:, position] + 7) % VOCABULARY
        for layer, (old, new) in enumerate(
            zip(before, hidden_of_every_layer(module, changed, lengths), strict=True)
        ):
            inside = position < lengths
            assert torch.equal(old[inside, position], new[inside, position]), (
                f"layer {layer}: state {position} sees its own token"
            )
            for row in (~inside).nonzero()[:, 0]:
                assert torch.equal(old[row, : lengths[row]], new[row, : lengths[row]]), (
                    f"layer {layer}: padding is seen"
                )


@pytest.mark.parametrize("query", QUERIES)
def test_tta_is_the_papers_formulas(query):
    """Q = P (or the mask at each position), K = V = X + P in every layer; Eq. 1 and 2 written out
    head by head, the scale that of a head's width.
    """
    module = model("tta", "deep", torch.float64, query=query)
    tokens = torch.tensor([[BOS, 7, 8, 9, 7, EOS]])

    def norm(layer, y):
        deviation = y.var(-1, keepdim=True, correction=0).sqrt()
        return (y - y.mean(-1, keepdim=True)) / deviation * layer.weight + layer.bias

    with torch.inference_mode():
        words, places = module.embedding.token.weight, module.embedding.position.weight[:6]
        source = norm(module.embedding.norm, words[tokens[0]] + places)
        asked = norm(module.embedding.norm, places + (words[MASK] if query == "mask" else 0))
        for block in module.blocks:
            context = []
            for head in torch.arange(16).split(4):
                q = asked @ block.query.weight[head].T + block.query.bias[head]
                k, v = (
                    source @ block.key_value.weight[some].T + block.key_value.bias[some]
                    for some in (head, head + 16)
                )
                weights = (q @ k.T / 2).fill_diagonal_(-math.inf).softmax(-1)
                context.append(weights @ v)
            x = norm(block.attention_norm, asked + block.attention(torch.cat(context, -1)))
            asked = norm(block.norm, x + block.outer(F.gelu(block.inner(x))))
        found = module.hidden(tokens, torch.tensor([6]))[0]
    torch.testing.assert_close(found, asked, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", ["causal", "masked", "tta"])
def test_attention_dropout_is_of_training_alone(family):
    """It zeroes weights and keeps their expectation; the same seed gives the same states."""
    module = model(family, "small", attention_dropout=0.5, dropout=0.0)
    plain = model(family, "small", dropout=0.0)
    tokens, lengths = batch(5)
    with torch.inference_mode():
        expected = plain.hidden(tokens, lengths)
        assert torch.equal(module.hidden(tokens, lengths), expected)
        module.train()
        states = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            states.append(module.hidden(tokens, lengths))
        assert torch.equal(states[0], states[1]) and not torch.equal(states[0], states[2])
        assert not torch.equal(states[0], expected)
        query, both = torch.randn(1, 10, 8), torch.randn(1, 10, 16)
        mean = torch.stack([module.blocks[0].attend(query, both) for _ in range(4000)]).mean(0)
        torch.testing.assert_close(mean, plain.blocks[0].attend(query, both), rtol=0, atol=0.1)


def test_a_one_token_sentence_attends_to_the_boundary_tokens_only():
    """Its query must not fall back to attending everywhere when all others are padding."""
    module = model("tta", "deep")
    for word in range(5, VOCABULARY):
        tokens = torch.tensor([[BOS, word, EOS, PAD, PAD], [BOS, 5, 6, 7, EOS]])
        state = module.hidden(tokens, torch.tensor([3, 5]))[0, 1]
        alone = module.hidden(torch.tensor([[BOS, 9, EOS]]), torch.tensor([3]))[0, 1]
        torch.testing.assert_close(state, alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [*SIZES, "orderless"])
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


def test_causal_masks_tell_order_without_positions():
    """The same words in another order give another last state, but for one layer."""
    module = model("causal", "orderless")
    tokens = torch.tensor([[BOS, 7, 8, 9, 10], [BOS, 8, 7, 9, 10]])
    with torch.inference_mode():
        one, other = module.hidden(tokens, torch.tensor([5, 5]))[:, -1]
        bag, same = module.blocks[0](*2 * [module.embedding(tokens)], causal=True)[:, -1]
    assert not torch.allclose(one, other, rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(bag, same, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", ["masked", "tta"])
def test_models_of_both_sides_need_positions(family):
    with pytest.raises(
        UserError, match=f"arch.position: none, but a {family} model .*; set it to learned"
    ):
        model(family, "orderless")


@pytest.mark.parametrize(
    ("name", "value"),
    [("norm", "none"), ("norm", "Pre"), ("position", "sinusoidal"), ("query", "token")],
)
def test_unknown_forms_are_refused(name, value):
    with pytest.raises(UserError, match=f"arch.{name}: '{value}' is unknown; known: "):
        MODELS["tta"].Config(**{name: value})


def test_a_pre_norm_layer_is_the_formula():
    """x + attention(LayerNorm(x)), x + feed-forward(LayerNorm(x)), head by head."""
    block = model("causal", "pre", torch.float64).blocks[1]
    x = torch.randn(1, 5, 16, dtype=torch.float64)

    def norm(layer, y):
        return (y - y.mean(-1, keepdim=True)) / y.var(
            -1, keepdim=True, correction=0
        ).sqrt() * layer.weight + layer.bias

    with torch.inference_mode():
        seen, context = norm(block.attention_norm, x)[0], []
        for head in torch.arange(16).split(4):
            q = seen @ block.query.weight[head].T + block.query.bias[head]
            k, v = (
                seen @ block.key_value.weight[some].T + block.key_value.bias[some]
                for some in (head, head + 16)
            )
            weights = (
                (q @ k.T / 2).masked_fill(torch.ones(5, 5).triu(1).bool(), -math.inf).softmax(-1)
            )
            context.append(weights @ v)
        y = x[0] + block.attention(torch.cat(context, -1))
        y = y + block.outer(F.gelu(block.inner(norm(block.norm, y))))
        torch.testing.assert_close(block(x, x, causal=True)[0], y, rtol=1e-9, atol=1e-9)


LSTM = LstmConfig(layers=2, dim=8, units=12)
TABLES = {
    f"{family}-{size}": (family, SIZES[size])
    for family in ("causal", "masked", "tta")
    for size in SIZES
}
TABLES |= {"causal-orderless": ("causal", ORDERLESS), "lstm": ("lstm", LSTM)}


@pytest.mark.parametrize("name", TABLES)
def test_the_table_has_a_sparse_gradient_where_it_is_asked_for(name):
    """The shared matrix too, where the criterion looks up rows; against the dense one."""
    family, config = TABLES[name]
    for tied in (True, False):
        module = MODELS[family](
            MODELS[family].Config(**{**vars(config), "tied": tied, "dropout": 0.1}), VOCABULARY
        ).double()
        assert module.lookup.weight.shape == (VOCABULARY, config.dim)
        assert module.shared is (module.lookup.weight if tied else None)
        (tokens, lengths), picked, gradients = batch(4), torch.tensor([3, 9, 22, 9]), []
        for sparse in (False, True):
            module.lookup.sparse = sparse
            torch.manual_seed(5)  # of the dropout
            states = module.head(module.hidden(tokens, lengths).flatten(0, 1))
            assert states.shape == (40, module.width)
            rows = (
                F.embedding(picked, module.shared, sparse=sparse)
                if tied
                else torch.eye(module.width)[:2].double()
            )
            (states @ rows.T).square().sum().backward()
            gradients.append(module.lookup.weight.grad)
            module.zero_grad()
        dense, sparse = gradients
        assert sparse.is_sparse and not dense.is_sparse and dense.abs().max() > 1e-6
        torch.testing.assert_close(sparse.to_dense(), dense, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("tied", [True, False])
def test_the_sampling_papers_transformer_has_its_parameters(tied):
    """By the formula, with shared and separate embeddings of 200k words."""
    size, layers, dim, ffn = 200_000, 42, 512, 2048
    with torch.device("meta"):
        lm = LanguageModel(settings("causal", arch={**PAPER, "tied": tied}), size)
    # attention, feed-forward, two LayerNorms
    layer = (4 * dim * dim + 4 * dim) + (2 * dim * ffn + ffn + dim) + 2 * 2 * dim
    # matrices, output bias, layers, last LayerNorm
    expected = (1 if tied else 2) * size * dim + size + layers * layer + 2 * dim
    assert sum(p.numel() for p in lm.parameters()) == expected
    assert round(expected / 1e6) == (235 if tied else 337)


def test_forty_two_layers_train():
    """Sentences a b a b: what comes next is two tokens back, so attention has to learn."""
    torch.manual_seed(0)
    module = MODELS["causal"](
        TransformerConfig(
            **{**PAPER, "dim": 16, "ffn": 32, "heads": 2, "tied": False, "dropout": 0.0}
        ),
        8,
    )
    output = torch.nn.Linear(16, 8)
    optimiser, losses = torch.optim.Adam([*module.parameters(), *output.parameters()], lr=1e-2), []
    for _ in range(30):
        tokens = torch.randint(8, (32, 2)).repeat(1, 6)
        states = module.head(module.hidden(tokens[:, :-1], torch.full((32,), 11)))[:, 1:]
        loss = F.cross_entropy(output(states).flatten(0, 1), tokens[:, 2:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert abs(losses[0] - math.log(8)) < 0.5
    assert sum(losses[-5:]) / 5 < 0.8 * math.log(8)


@given(rate=st.sampled_from([0.0, 0.1, 0.25, 0.5]), seed=st.integers(0, 2**32))
def test_dropout_keeps_the_expectation_and_the_rate(rate, seed):
    torch.manual_seed(seed)
    x = torch.ones(100, 1003)
    y = Dropout(rate)(x)
    assert abs(float((y == 0).float().mean()) - rate) < 0.01
    assert abs(float(y.mean()) - 1) < 0.02
    assert torch.equal(Dropout(rate).eval()(x), x)


@pytest.mark.parametrize("counts", [(1, 1, 70, 5), (33,), (32, 64)])
def test_prefixes_attend_to_their_ancestors(counts):
    """Of a tree that grows: each part sees all that its prefixes attend to, each once, in order."""
    rng = np.random.default_rng(0)
    memory = model("causal", "small", positions=128).memory()
    paths, first = [], 0
    for count in counts:
        parents = [int(rng.integers(max(0, row - 9), row)) if row else -1
                   for row in range(first, first + count)]  # fmt: skip
        for row, parent in enumerate(parents, first):
            paths.append([*(paths[parent] if row else []), row])
        depths = memory.place(memory.layers[0].add(count), np.array(parents))
        seen, mask = memory.find_attended(first, depths)
        assert depths.tolist() == [len(path) - 1 for path in paths[first:]]
        size = mask.shape[2]
        for number, path in enumerate(paths[first:]):
            part, place = divmod(number, size)
            assert seen[part][mask[part, 0, place]].tolist() == path
        for part, rows in enumerate(seen):
            begin = first + part * size
            used = {row for path in paths[begin : min(begin + size, len(paths))] for row in path}
            assert rows[: len(used)].tolist() == sorted(used) and not rows[len(used) :].any()
        for number in range(count, len(seen) * size):  # nobody's: NaN if they saw nothing
            part, place = divmod(number, size)
            assert seen[part][mask[part, 0, place]].tolist() == [0]
        first += count
