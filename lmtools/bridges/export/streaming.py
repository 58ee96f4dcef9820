"""ONNX in the form of icefall's streaming RNN language models, which sherpa-onnx reads for shallow
fusion: a token and the LSTM's state in, log-probabilities of the next token and the state out.
"""

import copy

import torch
from torch import Tensor, nn

from lmtools.base.atomic import atomic_directory
from lmtools.base.errors import UserError
from lmtools.bridges.export.onnx import MODEL, import_onnx, refuse_unable, write_graph
from lmtools.models.checkpoint import load_model, model_hash
from lmtools.models.lm import LanguageModel
from lmtools.models.lstm import Lstm
from lmtools.text.subword import BOS, EOS, Subword
from lmtools.text.subword.sentences import SentencePiece

INPUTS, OUTPUTS = ["x", "h0", "c0"], ["log_softmax", "next_h0", "next_c0"]
AXES = {"x": {0: "N", 1: "L"}, "log_softmax": {0: "N", 1: "L"}} | {
    name: {1: "N"} for name in ("h0", "c0", "next_h0", "next_c0")
}


class StreamingScores(nn.Module):
    """Ids (N, L) that go on from the state h0, c0, both (layers, N, units) -> log p (N, L, ids) of
    the token after each, and the state after the last. Id i is our id `ours[i]`.
    """

    def __init__(self, lm: LanguageModel, ours: list[int]):
        super().__init__()
        lm = copy.deepcopy(lm).eval()
        self.trunk, self.output = lm.trunk, lm.output
        self.register_buffer("ours", torch.tensor(ours))

    def forward(self, x: Tensor, h0: Tensor, c0: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        before = [part for layer in zip(h0, c0, strict=True) for part in layer]
        states, after = self.trunk.carried(self.ours[x], before)
        every = self.output.distribution(self.trunk.head(states.flatten(0, 1)))
        log_p = every[:, self.ours].unflatten(0, states.shape[:2])
        return log_p, torch.stack(after[::2]), torch.stack(after[1::2])


def write_onnx_icefall(directory: str, out: str) -> str:
    """Write the LSTM in `directory` as `out`/model.onnx, with `out`/subword; what to say of it.

    Inputs x (N, L) int64, h0 and c0 (layers, N, units); outputs log_softmax (N, L, ids), next_h0,
    next_c0; ids as `recogniser_ids` has them. UserError for any other model.
    """
    onnx = import_onnx("onnx-icefall")
    lm, subword = load_model(directory)
    if not isinstance(lm.trunk, Lstm):
        raise UserError(
            f"{directory}: icefall's streaming form has the state of an LSTM, this is a"
            f" {lm.settings.model} model; export --to onnx"
        )
    refuse_unable(lm, directory)
    ours, sos, eos = recogniser_ids(subword)
    config = lm.trunk.config
    metadata = {
        "model_type": "rnnlm", "version": "1", "model_author": "lmtools", "comment": "rnnlm state",
        "sos_id": sos, "eos_id": eos, "vocab_size": len(ours), "num_layers": config.layers,
        "hidden_size": config.units, "embedding_dim": config.dim,
        "subword": subword.hash, "hash": model_hash(directory),
    }  # fmt: skip
    state = torch.zeros(config.layers, 2, config.units)
    inputs = torch.full((2, 3), sos), state, state
    with atomic_directory(out, MODEL) as temporary:
        graph, names = StreamingScores(lm, ours), (INPUTS, OUTPUTS, AXES)
        write_graph(onnx, graph, inputs, names, metadata=metadata, path=temporary / MODEL)
        subword.save_to(temporary / "subword")
    return (
        f"{out}/{MODEL}: x (N, L), h0, c0 -> log_softmax (N, L, {len(ours)}), next_h0, next_c0;"
        f" <s> is {sos}, </s> {eos}"
    )


def recogniser_ids(subword: Subword) -> tuple[list[int], int, int]:
    """Return our id of each id of the recogniser with the same pieces, and its ids of <s> and </s>.

    They are those of the SentencePiece model, whose special pieces are <unk> here; boundary tokens
    that it lacks come after them. Word and character lists have ours.
    """
    if not isinstance(subword, SentencePiece):
        return list(range(subword.size)), BOS, EOS
    ours, processor, places = list(subword.known.ids), subword.processor, []
    for boundary, place in ((BOS, processor.bos_id()), (EOS, processor.eos_id())):
        if place < 0:
            place = len(ours)
            ours.append(boundary)
        ours[place] = boundary
        places.append(place)
    return ours, *places
