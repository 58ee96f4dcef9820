"""ONNX: model.onnx in the form of icefall's and sherpa-onnx's offline language models, token ids
and lengths in, negative log-probabilities of whole sentences out; and the subword model beside it.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import torch
from torch import nn

from lmtools.base.atomic import atomic_directory
from lmtools.base.errors import UserError
from lmtools.base.extras import explain_missing
from lmtools.bridges.export.graph import SentenceScores
from lmtools.models.checkpoint import load_model, model_hash
from lmtools.models.lm import LanguageModel
from lmtools.text.subword import SPECIALS

MODEL, OPSET = "model.onnx", 17
INPUTS, OUTPUTS = ["x", "x_lens"], ["nll", "log_prob"]
AXES = {"x": {0: "N", 1: "T"}, "x_lens": {0: "N"}, "nll": {0: "N"}, "log_prob": {0: "N", 1: "T+1"}}


def write_onnx(directory: str, out: str) -> str:
    """Write the model in `directory` as `out`/model.onnx, with `out`/subword; what to say of it.

    Inputs x (N, T) and x_lens (N,), int64; outputs nll (N,) and log_prob (N, T + 1), see
    SentenceScores. UserError for models that no graph is made of.
    """
    onnx = import_onnx("onnx")
    lm, subword = load_model(directory)
    refuse_unable(lm, directory)
    metadata = {
        "model": lm.settings.model, "objective": lm.settings.objective,
        "vocabulary": subword.size, "subword": subword.hash, "hash": model_hash(directory),
        # the longest sentence in tokens, without the boundary tokens that the graph adds
        "longest": lm.longest,
    }  # fmt: skip
    with atomic_directory(out, MODEL) as temporary:
        # sentences of any number and length
        x = torch.randint(min(len(SPECIALS), subword.size - 1), subword.size, (2, 5))
        inputs, names = (x, torch.tensor([5, 3])), (INPUTS, OUTPUTS, AXES)
        write_graph(
            onnx, SentenceScores(lm), inputs, names, metadata=metadata, path=temporary / MODEL
        )
        subword.save_to(temporary / "subword")
    return (
        f"{out}/{MODEL}: x (N, T), x_lens (N,) -> nll (N,), log_prob (N, T + 1); ids are those of"
        f" {out}/subword"
    )


def refuse_unable(lm: LanguageModel, directory) -> None:
    """Raise UserError for models that no graph of standard operations is made of."""
    if lm.two_way:
        raise UserError(
            f"{directory}: an {lm.settings.model} model reads spelled words, which is no input of"
            " token ids; export another model"
        )
    if getattr(lm.trunk.config, "projection", 0):
        raise UserError(
            f"{directory}: ONNX's LSTM has no projection (arch.projection); export a model without"
        )


def import_onnx(form: str) -> ModuleType:
    """Return the package onnx; UserError where it is not installed."""
    try:
        import onnx
    except ImportError as error:
        raise explain_missing(error, f"--to {form}:") from None
    return onnx


def write_graph(onnx, module: nn.Module, inputs, names, metadata: Mapping, path: Path) -> None:
    """Write the graph of `module`, traced with `inputs`, with the metadata `metadata`; `names` are
    those of inputs and outputs, and of their axes of any length.
    """
    inputs_names, results, axes = names
    with warnings.catch_warnings(), torch.no_grad():
        # torch's newer exporter takes 20 times as long and makes no LSTM of any length
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(), inputs, path, dynamo=False, opset_version=OPSET,
            input_names=inputs_names, output_names=results, dynamic_axes=axes,
        )  # fmt: skip
    graph = onnx.load(path)
    onnx.helper.set_model_props(graph, {key: str(value) for key, value in metadata.items()})
    onnx.checker.check_model(graph)
    onnx.save(graph, path)
