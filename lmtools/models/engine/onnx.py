"""ONNX Runtime as an engine: Transformers as graphs, in float32 or with products in int8; a text by
itself goes through one graph, which starts no operator from Python.

The weights stay outside of the graph, so that it has no greatest size and is made in milliseconds.
Beside ONNX's operators it has those of ONNX Runtime's own domain, which no other program knows.
"""

import threading
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.base.errors import install_extra
from lmtools.models.engine import quantise_rows, weight_levels
from lmtools.models.lm import LanguageModel
from lmtools.models.transformer import TransformerBlock
from lmtools.text.subword import BOS, EOS, MASK

OWN, OPSET, IR = "com.microsoft", 20, 9
# of inputs and outputs: positions read (N, T), queries of the first layer (N, T), predicting
# positions among all N T (P,), their targets (P, 1)
INPUTS = {"tokens": ("N", "T"), "rows": ("P",), "targets": ("P", 1)}
OUTPUT = "log_prob"
BLOCK = 128  # values with one scale in int8
INSIDE = 64  # values of a weight that stands in the graph, where shapes are found by it
FAMILIES = ("causal", "tta", "masked")
PACKAGES = ("onnx", "onnxruntime")


class Graph:
    """A graph in the making: nodes, and weights by name as numpy arrays."""

    def __init__(self, onnx):
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.weights: dict[str, np.ndarray] = {}

    def add(self, operator: str, *inputs: str, outputs: int = 0, **attributes) -> Any:
        """Add an operator; return the name of its output, or those of several."""
        name = f"{operator}{len(self.nodes)}"
        names = [f"{name}_{i}" for i in range(outputs)] or [name]
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, names, name, **attributes))
        return names if outputs else name

    def keep(self, array: Tensor | np.ndarray) -> str:
        """Keep a weight; return its name, the same for the same memory."""
        if isinstance(array, Tensor):
            array = array.detach().numpy()
        array = np.ascontiguousarray(array)
        for name, kept in self.weights.items():
            if kept.ctypes.data == array.ctypes.data and kept.shape == array.shape:
                return name
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    @property
    def outside(self) -> dict[str, np.ndarray]:
        return {name: array for name, array in self.weights.items() if array.size > INSIDE}

    def finish(self, output: str) -> bytes:
        """Return the graph's bytes, with `output` as its output."""
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        self.nodes.append(helper.make_node("Identity", [output], [OUTPUT]))
        inputs = [
            helper.make_tensor_value_info(name, kinds.INT64, shape)
            for name, shape in INPUTS.items()
        ]
        result = helper.make_tensor_value_info(OUTPUT, kinds.FLOAT, INPUTS["targets"])
        weights = [self.declare(name, array) for name, array in self.weights.items()]
        graph = helper.make_graph(self.nodes, "scores", inputs, [result], initializer=weights)
        domains = [helper.make_opsetid("", OPSET), helper.make_opsetid(OWN, 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=IR).SerializeToString()

    def declare(self, name: str, array: np.ndarray):
        """Return a small weight, or the declaration of one that the session is given."""
        if array.size <= INSIDE:
            return self.onnx.numpy_helper.from_array(array, name)
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = self.onnx.TensorProto(name=name, data_type=kind, dims=array.shape)
        tensor.data_location = self.onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=name)
        return tensor


class ScoringGraph(Graph):
    """The graph of a causal, T-TA or masked Transformer: token ids with boundaries (N, T), all of
    one length, to log p (P, 1) of targets (P, 1) by the states of the positions `rows` (P,).

    `int8`: a product's states are one matrix with one scale, found as it comes, and a column of the
    weights has a scale of its own; but what comes out of GELU, where few values are large, has a
    scale each BLOCK values, which halves the error of the sums.
    """

    def __init__(self, onnx, lm: LanguageModel, int8: bool):
        super().__init__(onnx)
        self.lm, self.int8 = lm, int8
        self.heads = lm.trunk.config.heads

    def build(self) -> bytes:
        trunk, family = self.lm.trunk, self.lm.settings.model
        state = self.embed()
        if family == "tta":
            source, mask = state, self.hide_itself()
            state = self.repeat_query(state)
            for block in trunk.blocks:
                state = self.run_block(block, state, source, mask)
        else:
            for block in trunk.blocks:
                state = self.run_block(block, state, state)
        columns = self.keep(np.array([-1, trunk.config.dim]))
        heads = self.add("Gather", self.add("Reshape", state, columns), "rows")
        if trunk.head_dense is not None:
            heads = self.gelu(self.multiply(heads, trunk.head_dense))
        logits = self.predict(self.normalise(heads, trunk.head_norm))
        log_p = self.add("LogSoftmax", logits, axis=-1)
        return self.finish(self.add("GatherElements", log_p, "targets", axis=1))

    def embed(self) -> str:
        """Return the embeddings (N, T, D)."""
        embedding = self.lm.trunk.embedding
        state = self.add("Gather", self.keep(embedding.token.weight), "tokens")
        if embedding.position is not None:
            state = self.add("Add", state, self.slice_positions(embedding.position.weight))
        return self.normalise(state, embedding.norm)

    def slice_positions(self, table: Tensor) -> str:
        zero, one = (self.keep(np.array([n])) for n in (0, 1))
        width = self.add("Slice", self.add("Shape", "tokens"), one, self.keep(np.array([2])))
        cut = self.keep(table), zero, width, zero
        return self.add("Slice", *cut)

    def repeat_query(self, state: str) -> str:
        """Return the first queries of a T-TA model (N, T, D)."""
        with torch.no_grad():
            table = self.lm.trunk.first_query(self.lm.trunk.positions)
        return self.add("Expand", self.slice_positions(table), self.add("Shape", state))

    def hide_itself(self) -> str:
        """Return what is added to attention (1, 1, T, T): no position sees itself."""
        size = self.lm.trunk.positions
        hidden = np.zeros((1, 1, size, size), dtype=np.float32)
        np.fill_diagonal(hidden[0, 0], -np.inf)
        one, two = (self.keep(np.array([n])) for n in (1, 2))
        width = self.add("Slice", self.add("Shape", "tokens"), one, two)
        ends = self.add("Concat", width, width, axis=0)
        begins, axes = (self.keep(np.array(pair)) for pair in ([0, 0], [2, 3]))
        cut = self.keep(hidden), begins, ends, axes
        return self.add("Slice", *cut)

    def run_block(self, block: TransformerBlock, state: str, source: str, mask: str = "") -> str:
        """Return the state (N, T, D) after a block that attends to `source` (N, T, D)."""
        before = self.lm.trunk.config.norm == "pre"
        asking, seen = state, source
        if before:
            asking, seen = (self.normalise(x, block.attention_norm) for x in (state, source))
        query = self.multiply(asking, block.query)
        key, value = self.add(
            "Split", self.multiply(seen, block.key_value), outputs=2, axis=-1, num_outputs=2
        )
        attended = query, key, value, "", "", mask  # neither biases nor padding
        causal = int(self.lm.settings.model == "causal")
        context = self.add(
            "MultiHeadAttention", *attended, domain=OWN, num_heads=self.heads, unidirectional=causal
        )
        state = self.add("Add", state, self.multiply(context, block.attention))
        if not before:
            state = self.normalise(state, block.attention_norm)
        inner = self.normalise(state, block.norm) if before else state
        inner = self.gelu(self.multiply(inner, block.inner))
        outer = (self.multiply_blocks if self.int8 else self.multiply)(inner, block.outer)
        state = self.add("Add", state, outer)
        return state if before else self.normalise(state, block.norm)

    def normalise(self, state: str, norm: nn.Module) -> str:
        if isinstance(norm, nn.Identity):
            return state
        weights = self.keep(norm.weight), self.keep(norm.bias)
        return self.add("LayerNormalization", state, *weights, axis=-1, epsilon=norm.eps)

    def gelu(self, state: str) -> str:
        return self.add("Gelu", state, domain=OWN)

    def multiply(self, state: str, linear: nn.Linear) -> str:
        if self.int8:
            return self.multiply_int8(state, linear.weight, linear.bias)
        product = self.add("MatMul", state, self.keep(linear.weight.detach().T))
        return self.add("Add", product, self.keep(linear.bias))

    def multiply_int8(self, state: str, weight: Tensor, bias: Tensor) -> str:
        """Return x W^T + b with both in int8."""
        levels, scale = quantise_rows(weight.detach().float(), weight_levels())
        kept = (self.keep(levels.T), self.keep(scale[:, 0].contiguous()), "", self.keep(bias))
        return self.add("DynamicQuantizeMatMul", state, *kept, domain=OWN)

    def multiply_blocks(self, state: str, linear: nn.Linear) -> str:
        """Return x W^T + b of a linear layer with both in int8, BLOCK columns with one scale."""
        weight = linear.weight.detach().float()
        rows, columns = weight.shape
        weight = F.pad(weight, (0, -columns % BLOCK))
        levels, scale = quantise_rows(weight.view(-1, BLOCK), weight_levels())
        levels = (levels.to(torch.int16) + 128).to(torch.uint8)  # 128 stands for 0
        kept = self.keep(levels.view(rows, -1, BLOCK)), self.keep(scale.view(-1).contiguous())
        product = self.add(
            "MatMulNBits", state, *kept, domain=OWN,
            K=columns, N=rows, bits=8, block_size=BLOCK, accuracy_level=4,
        )  # fmt: skip
        return self.add("Add", product, self.keep(linear.bias))

    def predict(self, heads: str) -> str:
        """Return the logits (P, V)."""
        weight, bias = self.lm.output.weight, self.lm.output.posterior_bias()
        if self.int8:
            return self.multiply_int8(heads, weight, bias)
        return self.add("Gemm", heads, self.keep(weight), self.keep(bias), transB=1)


def refuse_graph(lm: LanguageModel, normalised: bool) -> str:
    """Return why ONNX Runtime does not compute this model's scores here, or "" where it does."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        return f"needs the package {' and '.join(missing)}; {install_extra('onnx')}"
    if lm.settings.model not in FAMILIES:
        return f"computes {', '.join(FAMILIES)} models, not {lm.settings.model}; leave --engine out"
    if not normalised:
        return "computes no scores without normalisation; leave --engine out"
    if lm.output.weight is None or not lm.output.linear:
        return f"has no graph for criterion {lm.settings.criterion}; leave --engine out"
    return ""


class OnnxScores:
    """Log-probabilities of single sentences by ONNX Runtime, one thread each."""

    def __init__(self, lm: LanguageModel, precision: str, masked: bool):
        self.lm, self.precision, self.masked = lm, precision, masked
        self.session = None
        self.weights: list = []  # the session reads their memory
        self.lock = threading.Lock()

    def log_probs(self, sentence: Sequence[int]) -> np.ndarray:
        """Return log p of each token and the end of a sentence that fits the positions, in nats,
        float64 (tokens + 1,); of a masked model each from a copy in which it alone is masked.
        """
        after = self.lm.objective.boundary - 1
        tokens = np.array([[BOS, *sentence, *[EOS] * after]])
        targets, rows = np.array([*sentence, EOS]), np.arange(len(sentence) + 1) + after
        if self.masked:
            copies = np.arange(len(rows))
            tokens = tokens.repeat(len(rows), axis=0)
            tokens[copies, rows] = MASK
            rows = rows + copies * tokens.shape[1]
        return self.run(tokens, rows, targets).astype(np.float64)

    def run(self, tokens: np.ndarray, rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return log p (P,) of targets (P,) at positions `rows` (P,) of tokens (N, T)."""
        if self.session is None:
            with self.lock:
                self.session = self.session or self.start()
        values = tokens, rows, targets[:, None]
        return self.session.run([OUTPUT], dict(zip(INPUTS, values, strict=True)))[0][:, 0]

    def start(self):
        import onnx
        import onnxruntime

        graph = ScoringGraph(onnx, self.lm, self.precision == "int8")
        content = graph.build()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        outside = graph.outside
        self.weights = [*map(onnxruntime.OrtValue.ortvalue_from_numpy, outside.values())]
        options.add_external_initializers([*outside], self.weights)
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
