"""ONNX: model.onnx in the form of icefall's and sherpa-onnx's offline language models, token ids
and lengths in, negative log-probabilities of whole sentences out; and the subword model beside it.
"""

import copy
import warnings

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.base.atomic import atomic_directory
from lmtools.base.errors import UserError
from lmtools.models.checkpoint import load_model, model_hash
from lmtools.models.convolution import GatedConvolution
from lmtools.models.lm import LanguageModel
from lmtools.text.subword import BOS, EOS, MASK, PAD, SPECIALS

MODEL, OPSET = "model.onnx", 17
INPUTS, OUTPUTS = ["x", "x_lens"], ["nll", "log_prob"]
AXES = {"x": {0: "N", 1: "T"}, "x_lens": {0: "N"}, "nll": {0: "N"}, "log_prob": {0: "N", 1: "T+1"}}


class SentenceScores(nn.Module):
    """Sentences (N, T) right-padded with anything and their lengths (N,) -> the negative
    log-probabilities (N,) of the whole sentences in nats, and the log-probabilities (N, T + 1) of
    their tokens and ends, 0 after them.

    The boundary tokens are added inside, as `lmtools score` adds them: <s> before and, for models
    that read both sides, </s> after the last token. A masked model reads T + 1 copies of each
    sentence, each with one token masked (pseudo-log-likelihood).
    """

    def __init__(self, lm: LanguageModel):
        super().__init__()
        lm = copy.deepcopy(lm).eval()
        replace_convolutions(lm)
        self.trunk, self.output = lm.trunk, lm.output
        self.masks, self.both_sides = lm.trunk.masks, lm.objective.boundary == 2

    def forward(self, x: Tensor, x_lens: Tensor) -> tuple[Tensor, Tensor]:
        first = torch.full_like(x[:, :1], BOS)
        place = torch.arange(x.shape[1] + 1, device=x.device)
        end = x_lens[:, None]
        # (N, T + 1): tokens, </s>, padding
        targets = F.pad(x, (0, 1))
        targets = torch.where(place < end, targets, torch.where(place == end, EOS, PAD))
        if self.masks:
            states = self.masked_states(torch.cat([first, targets], 1), x_lens + 2)
        elif self.both_sides:
            states = self.trunk.hidden(torch.cat([first, targets], 1), x_lens + 2)[:, 1:]
        else:
            states = self.trunk.hidden(torch.cat([first, targets[:, :-1]], 1), x_lens + 1)
        every = self.output.distribution(self.trunk.head(states.flatten(0, 1)))
        log_prob = every.gather(1, targets.flatten()[:, None]).view_as(targets)
        log_prob = torch.where(place <= end, log_prob, 0.0)
        return -log_prob.sum(1), log_prob

    def masked_states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return each token's state where it is masked, (N, L) -> (N, L - 1, D)."""
        place = torch.arange(tokens.shape[1], device=tokens.device)
        itself = place[1:, None] == place  # (L - 1, L)
        copies = torch.where(itself, MASK, tokens[:, None])  # (N, L - 1, L)
        every = lengths[:, None].expand(-1, tokens.shape[1] - 1).flatten()
        states = self.trunk.hidden(copies.flatten(0, 1), every).unflatten(0, copies.shape[:2])
        return (states * itself[:, :, None]).sum(2)


class Convolution(nn.Module):
    """A causal convolution as the one operation of every engine, weight normalisation folded."""

    def __init__(self, layer: GatedConvolution):
        super().__init__()
        self.kernel = layer.kernel
        self.weight = nn.Parameter(layer.normal().detach().permute(2, 1, 0).contiguous())
        self.bias = layer.bias

    def forward(self, x: Tensor) -> Tensor:
        seen = F.pad(x.transpose(1, 2), (self.kernel - 1, 0))
        return F.conv1d(seen, self.weight, self.bias).transpose(1, 2)


def replace_convolutions(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, GatedConvolution):
            setattr(module, name, Convolution(child))
        else:
            replace_convolutions(child)


def write_onnx(directory: str, out: str) -> str:
    """Write the model in `directory` as `out`/model.onnx (see SentenceScores: x, x_lens to nll,
    log_prob), with `out`/subword; what to say of it. UserError for models without a graph.
    """
    import onnx

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
        inputs, path = (x, torch.tensor([5, 3])), temporary / MODEL
        with warnings.catch_warnings(), torch.no_grad():
            # torch's newer exporter takes 20 times as long and makes no LSTM of any length
            warnings.simplefilter("ignore")
            torch.onnx.export(
                SentenceScores(lm).eval(), inputs, path, dynamo=False, opset_version=OPSET,
                input_names=INPUTS, output_names=OUTPUTS, dynamic_axes=AXES,
            )  # fmt: skip
        graph = onnx.load(path)
        onnx.helper.set_model_props(graph, {key: str(value) for key, value in metadata.items()})
        onnx.checker.check_model(graph)
        onnx.save(graph, path)
        subword.save_to(temporary / "subword")
    return (
        f"{out}/{MODEL}: x (N, T), x_lens (N,) -> nll (N,), log_prob (N, T + 1); ids are those of"
        f" {out}/subword"
    )


def refuse_unable(lm: LanguageModel, directory) -> None:
    if lm.two_way:
        raise UserError(
            f"{directory}: an {lm.settings.model} model reads spelled words, which is no input of"
            " token ids; export another model"
        )
    if getattr(lm.trunk.config, "projection", 0):
        raise UserError(
            f"{directory}: ONNX's LSTM has no projection (arch.projection); export a model without"
        )
