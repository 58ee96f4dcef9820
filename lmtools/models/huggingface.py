"""Trunks of Hugging Face models: BERT as a masked model of ours, any other as it is."""

import torch
from torch import nn

from lmtools.errors import UserError
from lmtools.models.base import Trunk
from lmtools.models.masked import Masked
from lmtools.models.transformer import TransformerConfig, real_positions


class HuggingFaceTrunk(Trunk):
    """A model of the package transformers (its AutoModel), to read states from."""

    title = "Hugging Face model"
    masks = True

    def __init__(self, model: nn.Module):
        super().__init__(model.config)
        self.model = model

    @property
    def lookup(self):
        return self.model.get_input_embeddings()

    @property
    def width(self):
        return self.config.hidden_size

    @property
    def depth(self):
        return self.config.num_hidden_layers

    def layer_states(self, tokens, lengths):
        attention = real_positions(lengths, tokens.shape[1]).long()
        made = self.model(input_ids=tokens, attention_mask=attention, output_hidden_states=True)
        return iter(made.hidden_states)

    def masked_layers(self, tokens, lengths, mask_id, layers):
        """See Trunk; a pass a sentence makes all layers."""
        empty = tokens.new_zeros((*tokens.shape, self.width), dtype=torch.float32)
        found = {layer: empty.clone() for layer in layers}
        for row, length in enumerate(lengths.tolist()):
            which = torch.arange(length, device=tokens.device)
            copies = tokens[row, :length].repeat(length, 1)
            copies[which, which] = mask_id
            states = list(self.layer_states(copies, torch.full_like(which, length)))
            for layer in layers:
                found[layer][row, :length] = states[layer][which, which].float()
        return iter(found.items())


def bert_trunk(bert) -> Masked:
    """Our masked model with the weights of a Hugging Face BertModel, but for the head; the first
    token type goes into the positions.
    """
    c = bert.config
    if c.hidden_act != "gelu":
        raise UserError(
            f"BERT with activation {c.hidden_act}: only gelu is known; use another model"
        )
    size = (c.num_hidden_layers, c.hidden_size, c.num_attention_heads, c.intermediate_size)
    trunk = Masked(
        TransformerConfig(*size, positions=c.max_position_embeddings, dropout=0.0), c.vocab_size
    )
    state = {
        "embedding.token.weight": bert.embeddings.word_embeddings.weight,
        "embedding.position.weight": (
            bert.embeddings.position_embeddings.weight
            + bert.embeddings.token_type_embeddings.weight[0]
        ),
        **module_state("embedding.norm", bert.embeddings.LayerNorm),
    }
    for i, layer in enumerate(bert.encoder.layer):
        own, output = layer.attention.self, layer.attention.output
        parts = {
            "query": own.query, "attention": output.dense, "attention_norm": output.LayerNorm,
            "inner": layer.intermediate.dense, "outer": layer.output.dense,
            "norm": layer.output.LayerNorm,
        }  # fmt: skip
        for name, module in parts.items():
            state |= module_state(f"blocks.{i}.{name}", module)
        for kind in ("weight", "bias"):
            state[f"blocks.{i}.key_value.{kind}"] = torch.cat(
                [getattr(own.key, kind), getattr(own.value, kind)]
            )
    missing, unknown = trunk.load_state_dict(state, strict=False)
    assert not unknown and all(name.startswith("head_") for name in missing), (missing, unknown)
    return trunk


def module_state(prefix: str, module) -> dict[str, torch.Tensor]:
    """Return a module's weight and bias under another name."""
    return {f"{prefix}.weight": module.weight, f"{prefix}.bias": module.bias}
