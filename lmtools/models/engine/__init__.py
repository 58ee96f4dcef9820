"""Loaded models made ready for a CPU, so that all that scores with a model runs faster without
knowing of it: weights packed once as oneDNN multiplies them, in float32, bfloat16 or int8; a graph
for ONNX Runtime, in float32 or int8.
"""

import copy

import torch
from torch import nn

from lmtools.base.computing import ENGINES
from lmtools.base.errors import UserError
from lmtools.models.device import cpu_multiplies_bfloat16, onednn_computes_bfloat16
from lmtools.models.engine.linear import (
    LEVELS,
    PackedMatrix,
    make_linear,
    multiplies_int8,
    weight_levels,
)
from lmtools.models.lm import LanguageModel
from lmtools.models.outputs.base import OutputLayer
from lmtools.models.transformer import Transformer, TransformerBlock


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
