"""ONNX Runtime as an engine gives the scores of torch, but for rounding."""

import numpy as np
import pytest
import torch
from engine_models import CPU, SIZE, Ids, model, native, scorer, scores, with_int8
from scoring import CPU as ON_CPU
from scoring import make_scorer, score_sentences

from lmtools.base.errors import UserError
from lmtools.models.engine import onnx, resolve_engine
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Settings
from lmtools.score.neural import NeuralScorer
from lmtools.score.texts import open_cache

pytest.importorskip("onnxruntime")
FAMILIES = ("causal", "pre", "tta", "masked")


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("criterion", ["softmax", "bce-nce"])
def test_float32_is_equal_but_for_rounding(name, criterion):
    # of 32 positions: the longest sentence of `scores` fits, the ones below do not
    plain, graph = (scorer(name, "float32", engine, criterion) for engine in ("torch", "onnx"))
    assert np.abs(scores(plain) - scores(graph)).max() < 1e-4
    rng = np.random.default_rng(2)
    for length in (0, 1, 31, 32, 70):
        sentence = tuple(rng.integers(5, SIZE, length).tolist())
        expected, values = (one.log_probs([sentence])[0] for one in (plain, graph))
        assert values.shape == (length + 1,) and values.dtype == np.float64
        assert np.abs(values - expected).max() < 1e-4


@pytest.mark.parametrize("family", ["pre", "position"])
def test_forms_of_a_tta_model(family):
    torch.manual_seed(3)
    arch = {"layers": 2, "dim": 32, "heads": 2, "ffn": 64, "positions": 16}
    arch |= {"norm": "pre"} if family == "pre" else {"query": "position"}
    lm = LanguageModel(Settings("tta", "autoencoding", arch=arch | {"tied": False}), 50)
    for parameter in lm.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    plain, graph = (
        make_scorer(NeuralScorer, lm, Ids(), "0" * 16, engine=e) for e in ("torch", "onnx")
    )
    for sentence in ((7, 8, 9, 30), (6,)):
        expected, values = (one.log_probs([sentence])[0] for one in (plain, graph))
        assert np.abs(values - expected).max() < 1e-4


def test_an_intact_masked_model():
    plain, graph = (
        scorer("masked", "float32", engine, intact=True) for engine in ("torch", "onnx")
    )
    assert np.abs(scores(plain) - scores(graph)).max() < 1e-4


@with_int8
@pytest.mark.parametrize("name", FAMILIES)
def test_int8_is_near(name):
    plain, int8 = (scores(scorer(name, *how)) for how in (("float32", "torch"), ("int8", "onnx")))
    assert 0 < np.abs(plain - int8).max() < 0.5


@with_int8
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_company_changes_no_bit(precision):
    one = scorer("tta", precision, "onnx")
    rng = np.random.default_rng(4)
    sentences = [tuple(rng.integers(5, SIZE, length).tolist()) for length in (9, 9, 9, 3, 20)]
    cache = open_cache(one, ON_CPU)
    together = score_sentences(sentences, one, ON_CPU, cache)
    alone = [score_sentences([s], one, ON_CPU, cache)[0] for s in sentences]
    assert np.array_equal(together, alone)


@with_int8
def test_int8_of_lists_is_that_of_single_texts():
    one = scorer("causal", "int8", "onnx")
    sentences = [(7, 8, 9, 10, 11, i) for i in range(20, 40)]
    assert one.plan_trees(sentences) == []
    assert scorer("causal", "float32", "onnx").plan_trees(sentences)


@native
def test_the_engine_of_single_texts():
    engines = {
        (name, precision): scorer(name, precision, "auto").live().engine
        for name in ("causal", "lstm")
        for precision in ("float32", "bfloat16")
    }
    assert engines == {
        ("causal", "float32"): "onnx", ("lstm", "float32"): "torch",
        ("causal", "bfloat16"): "prepared", ("lstm", "bfloat16"): "prepared",
    }  # fmt: skip
    assert scorer("causal", "float32", "auto", normalise="none").live().engine == "torch"
    one = scorer("causal", "float32", "auto").with_oov_penalty(3.0)
    live = one.live()
    assert live.signature == scorer("causal", "float32", "onnx").with_oov_penalty(3.0).signature
    assert "engine" not in one.signature and one.rows != live.rows
    assert np.abs(scores(live) - scores(one)).max() < 1e-4


def test_what_is_not_computed_is_refused(monkeypatch):
    for name, how, said in (
        ("lstm", {}, "not lstm"),
        ("causal", {"normalise": "none"}, "normalisation"),
        ("causal", {"criterion": "mse"}, "criterion mse"),
        ("causal", {"precision": "bfloat16"}, "bfloat16"),
    ):
        criterion, precision = how.pop("criterion", "softmax"), how.pop("precision", "float32")
        with pytest.raises(UserError, match=f"engine onnx: .*{said}"):
            scorer(name, precision, "onnx", criterion, **how)
    with pytest.raises(UserError, match="vectors are made in torch"):
        scorer("causal", "float32", "onnx").states([(7,)], [0])
    with pytest.raises(UserError, match="on meta"):
        resolve_engine("onnx", "float32", torch.device("meta"))
    monkeypatch.setattr(onnx, "find_spec", lambda name: None)
    assert scorer("causal", "float32", "auto").live().engine == "torch"
    with pytest.raises(UserError, match=r"pip install -e .*\[onnx\]"):
        scorer("causal", "float32", "onnx")
    monkeypatch.setattr("lmtools.models.engine.multiplies_int8", lambda: False)
    with pytest.raises(UserError, match="AVX2 or VNNI"):
        resolve_engine("onnx", "int8", CPU)


@with_int8
def test_prefixes_are_those_of_torch_and_refused_in_int8():
    assert scorer("causal", "float32", "onnx").grow_prefixes()
    with pytest.raises(UserError, match="int8 of ONNX Runtime scores texts"):
        scorer("causal", "int8", "onnx").grow_prefixes()


def test_the_weights_stay_outside_of_the_graph():
    import onnx as package

    from lmtools.models.engine.onnx import ScoringGraph

    lm = model("causal")
    graph = ScoringGraph(package, lm, int8=False)
    content = graph.build()
    values = sum(array.nbytes for array in graph.outside.values())
    shared = lm.output.weight.numel() * 4  # the embedding is the output matrix
    assert len(content) < 20_000 < shared < values < 2 * shared + 400_000


@with_int8
@pytest.mark.parametrize("multiply", ["multiply_int8", "multiply_blocks"])
@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_int8_do_not_overflow(multiply, rows, sign):
    import onnx as package
    from onnxruntime import InferenceSession

    from lmtools.models.engine.onnx import IR, OPSET, OWN, ScoringGraph

    graph, linear = ScoringGraph(package, model("causal"), int8=True), torch.nn.Linear(512, 64)
    torch.nn.init.constant_(linear.weight, sign * 0.5)
    torch.nn.init.zeros_(linear.bias)
    blocks = multiply == "multiply_blocks"
    given = (linear,) if blocks else (linear.weight, linear.bias)
    name, helper = getattr(graph, multiply)("x", *given), package.helper
    x, y = (helper.make_tensor_value_info(value, 1, None) for value in ("x", name))
    weights = [package.numpy_helper.from_array(kept, key) for key, kept in graph.weights.items()]
    made = helper.make_graph(graph.nodes, "product", [x], [y], initializer=weights)
    domains = [helper.make_opsetid("", OPSET), helper.make_opsetid(OWN, 1)]
    content = helper.make_model(made, opset_imports=domains, ir_version=IR).SerializeToString()
    session = InferenceSession(content, providers=["CPUExecutionProvider"])
    product = session.run(None, {"x": np.ones((rows, 512), dtype=np.float32)})[0]
    assert np.allclose(product, sign * 0.5 * 512, rtol=1e-3)
