"""Loaded models made ready for a CPU, so that all that scores with a model runs faster without
knowing of it: weights packed once as oneDNN multiplies them, in float32, bfloat16 or int8, the
output matrix block by block of the vocabulary; a graph for ONNX Runtime, in float32 or int8.
"""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lmtools.base.computing import ENGINES
from lmtools.base.errors import UserError
from lmtools.models.device import PRECISIONS, cpu_multiplies_bfloat16, onednn_computes_bfloat16
from lmtools.models.lm import LanguageModel
from lmtools.models.outputs.base import OutputLayer
from lmtools.models.transformer import Transformer, TransformerBlock

# what the layout of packed weights is chosen for; other numbers of rows are as fast
ROWS = 256
LEVELS = 127  # of int8 on either side of 0
# of weights where two products are added in 16 bits: 255 * 63 * 2 < 2 ** 15
FEWER_LEVELS = 63


class PackedLinear(nn.Module):
    """x W^T + b, and GELU where `post` says so, in `dtype`: (..., K) of any type -> (..., N).

    In bfloat16 the same bits as torch's own; in float32 the sums have another order. Where it is
    `fused` one kernel may take exp and sum of its logits.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype):
        super().__init__()
        self.dtype, self.post, self.fused = dtype, "none", dtype == torch.float32
        # plain attributes: nothing moves or saves them
        kept = weight.detach().to(dtype)
        self.packed = torch.ops.mkldnn._reorder_linear_weight(kept, ROWS)  # oneDNN's layout
        self.bias = None if bias is None else bias.detach().to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        return packed_product(x.to(self.dtype), self.packed, self.bias, self.post)

    def logits(self, states: Tensor, bias: Tensor) -> Tensor:
        """Return x W^T + `bias` in float32; the bias is added in float32."""
        if self.fused:
            return packed_product(states, self.packed, bias)
        return packed_product(states, self.packed, None).float().add_(bias)


def multiplies_int8() -> bool:
    """Return whether this processor has instructions for products of int8: VNNI, or AVX2's."""
    return torch.cpu._is_vnni_supported() or torch.cpu._is_avx2_supported()


def weight_levels() -> int:
    """Return the levels of int8 weights whose sums are exact here: fewer without VNNI."""
    return LEVELS if torch.cpu._is_vnni_supported() else FEWER_LEVELS


def packed_product(x: Tensor, packed: Tensor, bias: Tensor | None, post: str = "none") -> Tensor:
    """Return oneDNN's product of `x` and packed weights, with the exact GELU after it or none."""
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, post, [], "none")


class Int8Linear(nn.Module):
    """x W^T + b with W in int8, a scale a row of W, and x in int8, a scale a row of x that is found
    as it comes: (..., K) -> (..., N) float32.

    Integers add up exactly and a row has its own scale, so what else is in a batch changes no bit.
    """

    fused = True

    def __init__(self, weight: Tensor, bias: Tensor | None):
        super().__init__()
        weight = weight.detach().float()
        self.columns = len(weight)
        self.bias = torch.zeros(self.columns) if bias is None else bias.detach().float()
        levels, scale = quantise_rows(weight, weight_levels())
        self.scale = scale[:, 0]
        self.zero = torch.zeros(self.columns, dtype=torch.int32)
        # x is multiplied as x + 128, which is never negative; this takes it off again
        self.offset = -128.0 * levels.sum(1, dtype=torch.int64).float() * self.scale
        self.packed = torch.ops.onednn.qlinear_prepack(levels, [ROWS, weight.shape[1]])

    def forward(self, x: Tensor) -> Tensor:
        levels, scale = quantise_rows(x.flatten(0, -2).float())
        return self.multiply(levels, scale, self.bias).view(*x.shape[:-1], self.columns)

    def logits(self, states: tuple[Tensor, Tensor], bias: Tensor) -> Tensor:
        """See PackedLinear."""
        return self.multiply(*states, bias)

    def multiply(self, levels: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
        """Return the product of int8 rows (M, K), scales (M, 1), plus `bias` (N,)."""
        product = torch.ops.onednn.qlinear_pointwise(
            levels.view(torch.uint8).bitwise_xor(128), 1.0, 0,
            self.packed, self.scale, self.zero, self.offset,
            1.0, 0, torch.float32, "none", [], "",
        )  # fmt: skip
        return torch.addcmul(bias, product, scale, out=product)


def quantise_rows(x: Tensor, most: int = LEVELS) -> tuple[Tensor, Tensor]:
    """Return levels (M, K) int8 up to `most`, and each row's scale (M, 1): x = levels * scale."""
    size = x.abs()
    largest = size.amax(-1, keepdim=True).clamp_(min=torch.finfo(torch.float32).tiny * 256)
    torch.mul(x, most / largest, out=size)
    return size.round_().to(torch.int8), largest / most


class PackedMatrix:
    """Stands for an output layer's matrix (V, D), as outputs.logits asks for one."""

    def __init__(self, weight: Tensor, precision: str):
        self.weight, self.precision = weight, precision
        self.blocks: dict[int, Sequence] = {}

    def __len__(self) -> int:
        return len(self.weight)

    def enter(self, states: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Return states (N, D) as the blocks multiply them; in int8 levels and scales."""
        if self.precision == "int8":
            return quantise_rows(states.float())
        return states.to(PRECISIONS[self.precision])

    def split(self, columns: int) -> Sequence:
        """Return the blocks of so many ids, packed on the first call."""
        if columns not in self.blocks:
            parts = self.weight.split(columns)
            self.blocks[columns] = [make_linear(part, None, self.precision) for part in parts]
        return self.blocks[columns]

    def dot(self, states: Tensor, targets: Tensor) -> Tensor:
        """Return h . W[target] (N,) float32 of the values that the blocks multiply."""
        rows = self.weight[targets]
        if self.precision == "int8":
            quantised = quantise_rows(states.float()), quantise_rows(rows, weight_levels())
            states, rows = (levels * scale for levels, scale in quantised)
        return (states.float() * rows.to(states.dtype).float()).sum(-1)


def make_linear(weight: Tensor, bias: Tensor | None, precision: str) -> PackedLinear | Int8Linear:
    """Return a prepared layer of a weight (N, K) and its bias."""
    if precision == "int8":
        return Int8Linear(weight, bias)
    return PackedLinear(weight, bias, PRECISIONS[precision])


def resolve_engine(engine: str, precision: str, device: torch.device, refused: str = "") -> str:
    """Return `torch`, `prepared` or `onnx`; `auto` is prepared where that changes no bit, in
    bfloat16, or is the only one, in int8. UserError for an engine unknown or `refused`.
    """
    if engine not in ENGINES:
        raise UserError(f"engine: {engine!r} is unknown; known: {', '.join(ENGINES)}")
    if engine == "onnx":
        return check_onnx(precision, device, refused)
    able = device.type == "cpu" and torch.backends.mkldnn.is_available()
    if precision == "int8":
        if engine == "torch":
            raise UserError("engine torch: does not compute in int8; leave --engine out")
        if not (able and multiplies_int8()):
            raise UserError(
                f"precision int8: not on this {device.type} (it needs AVX2 or VNNI"
                " instructions); use float32 or bfloat16"
            )
        return "prepared"
    if engine == "prepared" and not able:
        raise UserError(f"engine prepared: not on {device.type}, but on a CPU; leave --engine out")
    if engine == "prepared" and precision == "bfloat16" and not onednn_computes_bfloat16():
        raise UserError(
            "engine prepared: not in bfloat16 on this processor (it needs AVX-512); leave --engine"
            " or --precision out"
        )
    if engine == "auto":
        exact = able and precision == "bfloat16" and cpu_multiplies_bfloat16()
        return "prepared" if exact else "torch"
    return engine


def check_onnx(precision: str, device: torch.device, cause: str) -> str:
    """Return `onnx`; UserError with the cause where it computes no such scores here."""
    if device.type != "cpu":
        cause = f"not on {device.type}, but on a CPU; leave --engine out"
    elif precision == "bfloat16":
        cause = "does not compute in bfloat16; leave --engine or --precision out"
    elif precision == "int8" and not multiplies_int8():
        cause = "int8 needs a processor with AVX2 or VNNI instructions; use float32"
    if cause:
        raise UserError(f"engine onnx: {cause}")
    return "onnx"


def describe_engine(engine: str, precision: str) -> dict[str, str]:
    """Return the signature's entries for a resolved engine; of int8 its levels if below LEVELS."""
    implied = engine == "torch" or (engine == "prepared" and precision != "float32")
    fewer = precision == "int8" and weight_levels() < LEVELS
    return {
        **({} if implied else {"engine": engine}),
        **({"levels": str(weight_levels())} if fewer else {}),
    }


def prepare(lm: LanguageModel, precision: str) -> OutputLayer:
    """Replace the trunk's linear layers by prepared ones, which cannot be trained, and return a
    copy of the output layer with a prepared matrix; other layers stay as they are.
    """
    trunk = lm.trunk
    pack_linear(trunk, precision)
    if isinstance(trunk, Transformer) and precision == "float32":
        # in bfloat16 it would leave out a rounding and change bits, for a hundredth of the time
        for block in [module for module in trunk.modules() if isinstance(module, TransformerBlock)]:
            fuse_gelu(block, "inner", "activation")
        if trunk.head_dense is not None:
            fuse_gelu(trunk, "head_dense", "head_activation")
    return prepare_output(lm.output, precision)


def pack_linear(trunk: nn.Module, precision: str) -> None:
    """Replace the linear layers of a module by prepared ones."""
    for parent in list(trunk.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear:
                setattr(parent, name, make_linear(child.weight, child.bias, precision))


def fuse_gelu(parent: nn.Module, linear: str, activation: str) -> None:
    getattr(parent, linear).post = "gelu"
    setattr(parent, activation, nn.Identity())


def prepare_output(output: OutputLayer, precision: str) -> OutputLayer:
    """Return a copy of the output layer, same parameters, with a prepared matrix if it can."""
    prepared = copy.copy(output)
    if output.weight is not None and output.linear:
        prepared.packed = PackedMatrix(output.weight.detach(), precision)
    return prepared
