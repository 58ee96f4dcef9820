"""Prepared models give the scores of those they were made of."""

import numpy as np
import pytest
import torch
from engine_models import ARCH, CPU, MODELS, native, scorer, scores, with_int8
from torch import nn
from torch.nn import functional as F

from lmtools.base.computing import ENGINES
from lmtools.base.errors import UserError
from lmtools.models.device import onednn_computes_bfloat16
from lmtools.models.engine import (
    Int8Linear,
    PackedLinear,
    quantise_rows,
    resolve_engine,
    weight_levels,
)


@pytest.mark.parametrize("name", MODELS)
def test_float32_is_equal_but_for_rounding(name):
    plain, prepared = (scores(scorer(name, "float32", engine)) for engine in ("torch", "prepared"))
    assert np.abs(plain - prepared).max() < 1e-4


@native
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("criterion", ["softmax", "bce-nce", "ce-nce"])
def test_bfloat16_has_the_same_bits(name, criterion):
    plain, prepared = (
        scores(scorer(name, "bfloat16", engine, criterion)) for engine in ("torch", "prepared")
    )
    assert np.array_equal(plain, prepared)


@with_int8
@pytest.mark.parametrize("name", MODELS)
def test_int8_is_near(name):
    plain, int8 = (scores(scorer(name, precision, "auto")) for precision in ("float32", "int8"))
    assert 0 < np.abs(plain - int8).max() < 0.5


@with_int8
@pytest.mark.parametrize("criterion", ["softmax", "bce-nce"])
def test_int8_is_normalised(criterion):
    one = scorer("causal", "int8", "auto", criterion)
    states = torch.randn(3, ARCH["dim"])
    with torch.inference_mode():
        distribution = one.output.distribution(states)
        assert distribution.exp().sum(-1).allclose(torch.ones(3))
        ids = torch.tensor([7, 2100, 2499])
        expected = distribution.gather(1, ids[:, None])[:, 0]
        assert one.output.log_prob(states, ids).allclose(expected, atol=1e-4)


@with_int8
def test_int8_layer_multiplies_what_was_quantised():
    torch.manual_seed(0)
    linear, x = nn.Linear(96, 40), torch.randn(2, 5, 96) * torch.logspace(-3, 3, 5)[:, None]
    with torch.inference_mode():
        made = Int8Linear(linear.weight, linear.bias)(x)
        levels, scale = quantise_rows(x.flatten(0, 1))
        rows, column = quantise_rows(linear.weight, weight_levels())
        expected = F.linear(levels.double() * scale, rows.double() * column, linear.bias.double())
    assert (levels.abs().amax(-1) == 127).all()
    assert made.double().allclose(expected.view(2, 5, 40), rtol=1e-4, atol=1e-4)
    # a row of zeros is the bias, one that is not finite stays so
    with torch.inference_mode():
        layer = Int8Linear(linear.weight, linear.bias)
        assert layer(torch.zeros(1, 96)).allclose(linear.bias)
        assert layer(torch.full((1, 96), torch.nan)).isnan().all()


@with_int8
@pytest.mark.parametrize("rows", [1, 25, 256])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_int8_are_added_exactly(rows, sign):
    # where a processor adds two products in 16 bits, 255 * 127 * 2 would not fit
    layer = Int8Linear(torch.full((64, 512), sign * 0.5), None)
    levels = torch.full((rows, 512), 127, dtype=torch.int8)
    product = layer.multiply(levels, torch.ones(rows, 1), torch.zeros(64))
    assert product.allclose(torch.full_like(product, sign * 0.5 * 127 * 512), rtol=1e-6)


@with_int8
def test_processors_without_vnni_have_fewer_levels(monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: False)
    one = scorer("causal", "int8", "auto")
    assert one.signature["levels"] == "63"
    assert 0 < np.abs(scores(scorer("causal", "float32", "torch")) - scores(one)).max() < 0.5
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True)
    assert "levels" not in scorer("causal", "int8", "auto").signature


def test_gelu_is_fused():
    torch.manual_seed(0)
    linear, x = nn.Linear(96, 40), torch.randn(2, 5, 96)
    layer = PackedLinear(linear.weight, linear.bias, torch.float32)
    layer.post = "gelu"
    with torch.inference_mode():
        assert layer(x).allclose(F.gelu(linear(x)), atol=1e-5)


def test_the_signature_says_it_where_values_change():
    said = {
        (precision, engine): scorer("causal", precision, engine).signature.get("engine")
        for precision, engine in [
            *(("float32", engine) for engine in ENGINES),
            *[("bfloat16", "prepared")] * onednn_computes_bfloat16(),
        ]
    }
    named = {how for how, engine in said.items() if engine}
    assert named == {("float32", "prepared"), ("float32", "onnx")}


def test_what_cannot_be_prepared_is_refused(monkeypatch):
    with pytest.raises(UserError, match="known: auto, torch, prepared, onnx"):
        resolve_engine("gpu", "float32", CPU)
    with pytest.raises(UserError, match="int8"):
        resolve_engine("torch", "int8", CPU)
    with pytest.raises(UserError, match="on a CPU"):
        resolve_engine("prepared", "float32", torch.device("meta"))
    monkeypatch.setattr("lmtools.models.engine.multiplies_int8", lambda: False)
    with pytest.raises(UserError, match="AVX2 or VNNI"):
        resolve_engine("auto", "int8", CPU)
    monkeypatch.setattr("lmtools.models.engine.onednn_computes_bfloat16", lambda: False)
    with pytest.raises(UserError, match="AVX-512"):
        resolve_engine("prepared", "bfloat16", CPU)
