"""Local directories of Hugging Face models: loading weights and tokenizers, what stands around a
text, and trunks: BERT as a masked model of ours, any other as it is.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from lmtools.base.errors import UserError, explain_missing
from lmtools.base.files import sha256
from lmtools.models.base import Trunk
from lmtools.models.masked import Masked
from lmtools.models.transformer import TransformerConfig, real_positions


def load_pretrained(directory: str, choose: Callable, wanted: str):
    """Load the model and tokenizer of a local directory, of AutoModel and what
    `choose(configuration)` adds to its name; return that and both. `wanted`: their name in
    messages. UserError without them, a head's weights, or where an encoder-decoder and pairs of
    texts do not meet.
    """
    try:
        import transformers
    except ImportError as error:
        raise explain_missing(error, f"hf:{directory}:") from None
    transformers.logging.set_verbosity_error()
    check_files(directory)
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(directory, **local)
        kind = choose(config)
        check_pairs(directory, config.is_encoder_decoder, kind == "ForSeq2SeqLM")
        tokenizer = transformers.AutoTokenizer.from_pretrained(directory, **local)
        model, report = getattr(transformers, f"AutoModel{kind}").from_pretrained(
            directory, **local, use_safetensors=True, dtype=torch.float32, output_loading_info=True
        )
    except UserError:
        raise
    # transformers raises whatever its parts raise, for one missing or torn file
    except Exception as error:
        cause = " ".join(str(error).split())
        # a file of code (auto_map), as lmtools' own exports of families that transformers lacks
        if "trust_remote_code" in cause:
            cause = "its class is a file beside it, and no code of a model is run here"
        raise UserError(f"hf:{directory}: {cause[:200]}; give {wanted}") from None
    if kind and (missing := sorted(report["missing_keys"])):  # they would be random numbers
        raise UserError(
            f"hf:{directory}: no weights for {missing[0]} and {len(missing) - 1} others; give"
            f" {wanted}"
        )
    return kind, model, tokenizer


def check_files(directory: str) -> None:
    """Raise UserError unless a local directory has a configuration and no pickle for weights."""
    if not (Path(directory) / "config.json").is_file():
        cause = "no config.json there" if Path(directory).exists() else "no such directory"
        raise UserError(
            f"hf:{directory}: {cause}, and nothing is downloaded; give the local directory that"
            " save_pretrained wrote"
        )
    if any(Path(directory).glob("*.bin")) and not any(Path(directory).glob("*.safetensors")):
        remedy = (
            "load it where you trust it and save it again: save_pretrained writes model.safetensors"
        )
        raise UserError(f"hf:{directory}: its weights are a pickle, which may run code; {remedy}")


def check_pairs(directory: str, able: bool, pairs: bool) -> None:
    """Raise UserError where a model is `able` to read pairs and there are none, or vice versa."""
    if able and not pairs:
        raise UserError(
            f"hf:{directory}: a translation model (encoder and decoder), which reads a source"
            " beside each sentence; use it with lmtools score --source"
        )
    if pairs and not able:
        raise UserError(
            f"hf:{directory}: no translation model, so it reads no source; leave --source out"
        )


def hash_directory(directory) -> str:
    paths = Path(directory).iterdir()
    files = sorted(p for p in paths if p.is_file() and not p.name.startswith("."))
    return hashlib.sha256("".join(p.name + sha256(p) for p in files).encode()).hexdigest()


def find_boundaries(config, tokenizer, source) -> tuple[int, int]:
    """Return the ids before and after a sentence; the end of text may stand for the beginning."""
    begin, end = (
        first_id(config, name) if (known := getattr(tokenizer, name)) is None else known
        for name in ("bos_token_id", "eos_token_id")
    )
    if end is None:
        raise UserError(
            f"{source}: the tokenizer has no end of sentence; set eos_token in its configuration"
        )
    return (end if begin is None else begin), end


def first_id(config, name: str) -> int | None:
    """Return a token id of a configuration, where several may stand."""
    value = getattr(config, name, None)
    return value[0] if isinstance(value, list) else value


def find_frame(tokenizer) -> tuple[list[int], list[int]]:
    """Return the ids that a tokenizer puts before and after a text."""
    encoded = tokenizer("a", return_special_tokens_mask=True)
    ids, added = encoded["input_ids"], encoded["special_tokens_mask"]
    first = added.index(0) if 0 in added else len(ids)
    after = added[first:].index(1) if 1 in added[first:] else len(ids) - first
    return ids[:first], ids[first + after :]


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
        output = self.model(input_ids=tokens, attention_mask=attention, output_hidden_states=True)
        return iter(output.hidden_states)

    def masked_layers(self, tokens, lengths, mask_id, layers):
        """See Trunk; a pass a sentence makes all layers."""
        empty = tokens.new_zeros((*tokens.shape, self.width), dtype=torch.float32)
        masked = {layer: empty.clone() for layer in layers}
        for row, length in enumerate(lengths.tolist()):
            which = torch.arange(length, device=tokens.device)
            copies = tokens[row, :length].repeat(length, 1)
            copies[which, which] = mask_id
            states = list(self.layer_states(copies, torch.full_like(which, length)))
            for layer in layers:
                masked[layer][row, :length] = states[layer][which, which].float()
        return iter(masked.items())


def bert_trunk(bert) -> Masked:
    """Return our masked model with a BertModel's weights, without the head."""
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
        attention, output = layer.attention.self, layer.attention.output
        parts = {
            "query": attention.query, "attention": output.dense, "attention_norm": output.LayerNorm,
            "inner": layer.intermediate.dense, "outer": layer.output.dense,
            "norm": layer.output.LayerNorm,
        }  # fmt: skip
        for name, module in parts.items():
            state |= module_state(f"blocks.{i}.{name}", module)
        for kind in ("weight", "bias"):
            state[f"blocks.{i}.key_value.{kind}"] = torch.cat(
                [getattr(attention.key, kind), getattr(attention.value, kind)]
            )
    missing, unknown = trunk.load_state_dict(state, strict=False)
    assert not unknown and all(name.startswith("head_") for name in missing), (missing, unknown)
    return trunk


def module_state(prefix: str, module) -> dict[str, torch.Tensor]:
    return {f"{prefix}.weight": module.weight, f"{prefix}.bias": module.bias}
