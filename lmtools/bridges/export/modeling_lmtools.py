"""Language models of lmtools as classes of transformers, in one file that needs no lmtools.

`lmtools export --to hf` lays a copy beside the weights; transformers runs it where its user passes
trust_remote_code=True. Inputs are right-padded ids with <s> before and </s> after each text, as the
tokenizer beside it makes them.
"""

from itertools import pairwise

import torch
import transformers
from torch import nn
from torch.nn import functional as F
from transformers.modeling_outputs import CausalLMOutput, MaskedLMOutput

EPS = 1e-12  # of every LayerNorm
GATES = {
    "glu": lambda both: F.glu(both, -1),
    "gtu": lambda both: both.chunk(2, -1)[0].tanh() * both.chunk(2, -1)[1].sigmoid(),
    "bilinear": lambda both: torch.mul(*both.chunk(2, -1)),
    "relu": F.relu,
    "tanh": torch.tanh,
    "linear": nn.Identity(),
}


class LmtoolsConfig(transformers.PretrainedConfig):
    """`family` and its size `arch`, as in lmtools' config.yaml; `blocks`: [kernel, outputs]."""

    model_type = "lmtools"

    def __init__(self, family="lstm", arch=None, vocab_size=6, mask_token_id=4, **more):
        self.family, self.arch = family, arch or {"layers": 1, "dim": 1, "units": 1}
        self.vocab_size, self.mask_token_id = vocab_size, mask_token_id
        super().__init__(**{"tie_word_embeddings": False, "use_cache": False} | more)


class LmtoolsLstm(nn.Module):
    """Embedding, LSTM layers, and a linear map to the embedding's width if that is the output."""

    def __init__(self, size: int, dim, layers, units, projection=0, tied=False, **_):
        super().__init__()
        self.embedding = nn.Embedding(size, dim)
        self.width, outputs = dim if tied else projection or units, projection or units
        self.layers = nn.ModuleList(
            nn.LSTM(width, units, batch_first=True, proj_size=projection)
            for width in [dim, *[outputs] * (layers - 1)]
        )
        self.bottleneck = nn.Linear(outputs, dim) if tied else nn.Identity()

    @property
    def lookup(self) -> nn.Embedding:
        return self.embedding

    def forward(self, ids, real):
        """Ids (B, T) and which of them are no padding -> states (B, T, width)."""
        state = self.embedding(ids)
        for layer in self.layers:
            state, _ = layer(state)
        return self.bottleneck(state)


class LmtoolsGatedBlock(nn.Module):
    """Causal convolutions with gates, around all of which the input goes."""

    def __init__(self, channels: int, shape, gate: str, scale: float):
        super().__init__()
        self.gate, self.scale = GATES[gate], scale
        widths = [channels, *(outputs for _, outputs in shape)]
        branches = 2 if gate in ("glu", "gtu", "bilinear") else 1
        self.layers = nn.ModuleList(
            nn.Conv1d(inner, branches * outer, kernel)
            for (inner, outer), (kernel, _) in zip(pairwise(widths), shape, strict=True)
        )
        same = channels == widths[-1]
        self.projection = nn.Identity() if same else nn.Conv1d(channels, widths[-1], 1)

    def forward(self, state):
        """(B, T, channels) -> (B, T, outputs)."""
        inner = state
        for layer in self.layers:
            seen = F.pad(inner.transpose(1, 2), (layer.kernel_size[0] - 1, 0))
            inner = self.gate(layer(seen).transpose(1, 2))
        return (self.projection(state.transpose(1, 2)).transpose(1, 2) + inner) * self.scale


class LmtoolsGcnn(nn.Module):
    """Embedding and residual blocks of gated convolutions, whose weight normalisation is folded."""

    def __init__(self, size: int, dim, blocks, gate, residual_scale, **_):
        super().__init__()
        self.embedding = nn.Embedding(size, dim)
        widths = [dim, *(shape[-1][1] for shape in blocks)]
        self.width = widths[-1]
        self.blocks = nn.ModuleList(
            LmtoolsGatedBlock(channels, shape, gate, residual_scale)
            for channels, shape in zip(widths, blocks, strict=False)
        )

    @property
    def lookup(self) -> nn.Embedding:
        return self.embedding

    def forward(self, ids, real):
        """Ids (B, T) and which of them are no padding -> states (B, T, width)."""
        state = self.embedding(ids)
        for block in self.blocks:
            state = block(state)
        return state


class LmtoolsBlock(nn.Module):
    """Attention and feed-forward network; LayerNorm after each sum or (`pre`) before a branch."""

    def __init__(self, dim: int, heads: int, ffn: int, pre: bool):
        super().__init__()
        self.heads, self.pre = heads, pre
        self.query = nn.Linear(dim, dim)
        self.key_value = nn.Linear(dim, 2 * dim)
        self.attention = nn.Linear(dim, dim)
        self.attention_norm = nn.LayerNorm(dim, eps=EPS)
        self.inner = nn.Linear(dim, ffn)
        self.outer = nn.Linear(ffn, dim)
        self.norm = nn.LayerNorm(dim, eps=EPS)

    def forward(self, state, source, sees):
        """States (B, T, D) after attending to `source` where `sees` (B, 1, T, T) is True."""
        enter = self.attention_norm if self.pre else nn.Identity()
        parts = (self.query(enter(state)), *self.key_value(enter(source)).chunk(2, -1))
        heads = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        context = F.scaled_dot_product_attention(*heads, attn_mask=sees)
        attended = state + self.attention(context.transpose(1, 2).flatten(-2))
        if self.pre:
            return attended + self.outer(F.gelu(self.inner(self.norm(attended))))
        attended = self.attention_norm(attended)
        return self.norm(attended + self.outer(F.gelu(self.inner(attended))))


class LmtoolsEmbedding(nn.Module):
    """Tokens and positions, with LayerNorm where the blocks do not begin with one."""

    def __init__(self, size: int, dim: int, positions: int, pre: bool):
        super().__init__()
        self.token = nn.Embedding(size, dim)
        self.position = nn.Embedding(positions, dim) if positions else None
        self.norm = nn.Identity() if pre else nn.LayerNorm(dim, eps=EPS)

    def forward(self, state):
        """Add its position to the state at each place, (..., T, D), and normalise."""
        if self.position is not None:
            state = state + self.position.weight[: state.shape[-2]]
        return self.norm(state)


class LmtoolsTransformer(nn.Module):
    """A position sees those to its left and itself (`causal`), all (`masked`), or all but itself
    (`tta`), which then reads keys and values off the embedding in every layer.
    """

    def __init__(
        self, size: int, family, dim, layers, heads, ffn, positions, position, norm, **arch
    ):
        super().__init__()
        self.family, self.width, pre = family, dim, norm == "pre"
        self.by_position = arch.get("query") == "position"
        self.mask_token_id = arch["mask_token_id"]
        places = positions if position == "learned" else 0
        self.embedding = LmtoolsEmbedding(size, dim, places, pre)
        self.blocks = nn.ModuleList(LmtoolsBlock(dim, heads, ffn, pre) for _ in range(layers))
        self.head_dense = None if pre else nn.Linear(dim, dim)
        self.head_norm = nn.LayerNorm(dim, eps=EPS)

    @property
    def lookup(self) -> nn.Embedding:
        return self.embedding.token

    def forward(self, ids, real):
        """Ids (B, T) and which of them are no padding -> states (B, T, width)."""
        place = torch.arange(ids.shape[1], device=ids.device)
        sees = real[:, None, None, :].expand(-1, 1, len(place), -1)
        source = state = self.embedding(self.embedding.token(ids))
        if self.family == "causal":
            sees = sees & (place[:, None] >= place)
        elif self.family == "tta":
            sees = sees & (place[:, None] != place)
            first = self.embedding.token.weight[self.mask_token_id].expand(len(place), -1)
            first = self.embedding(torch.zeros_like(first) if self.by_position else first)
            state = first.expand_as(source)
        for block in self.blocks:
            state = block(state, source if self.family == "tta" else state, sees)
        if self.head_dense is not None:
            state = F.gelu(self.head_dense(state))
        return self.head_norm(state)


class LmtoolsModel(transformers.PreTrainedModel):
    """A trunk and the softmax's matrix, which may be the embedding's."""

    config_class = LmtoolsConfig
    base_model_prefix = "trunk"

    def __init__(self, config: LmtoolsConfig):
        super().__init__(config)
        size, arch = config.vocab_size, dict(config.arch)
        if config.family == "lstm":
            self.trunk = LmtoolsLstm(size, **arch)
        elif config.family == "gcnn":
            self.trunk = LmtoolsGcnn(size, **arch)
        else:
            more = {"family": config.family, "mask_token_id": config.mask_token_id}
            self.trunk = LmtoolsTransformer(size, **arch, **more)
        tied = arch.get("tied", False)
        self.weight = None if tied else nn.Parameter(torch.zeros(size, self.trunk.width))
        self.bias = nn.Parameter(torch.zeros(size))
        self.post_init()

    def get_input_embeddings(self):
        return self.trunk.lookup

    def set_input_embeddings(self, value):
        """Replace the input embedding's matrix."""
        self.trunk.lookup.weight = value.weight

    def _init_weights(self, module):
        """PyTorch's own initialisation stays: the models come with their weights."""

    def logits(self, input_ids, attention_mask):
        """Logits (B, T, V)."""
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        weight = self.trunk.lookup.weight if self.weight is None else self.weight
        return F.linear(self.trunk(input_ids, real.bool()), weight, self.bias)


class LmtoolsForCausalLM(LmtoolsModel, transformers.GenerationMixin):
    """Logits at t are of token t + 1. No cache: generation reads the text anew for each token."""

    def forward(self, input_ids, attention_mask=None, labels=None, **_):
        """CausalLMOutput; `labels` are the ids, -100 where no loss is taken."""
        logits, loss = self.logits(input_ids, attention_mask), None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return CausalLMOutput(loss=loss, logits=logits)

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **_):
        return {"input_ids": input_ids, "attention_mask": attention_mask}


class LmtoolsForMaskedLM(LmtoolsModel):
    """Logits at t are of token t. `tta` needs no mask: they never depend on token t."""

    def forward(self, input_ids, attention_mask=None, labels=None, **_):
        """MaskedLMOutput; `labels` are the ids, -100 where no loss is taken."""
        logits, loss = self.logits(input_ids, attention_mask), None
        if labels is not None:
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return MaskedLMOutput(loss=loss, logits=logits)
