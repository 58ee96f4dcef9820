"""Hugging Face's form: what save_pretrained writes, with tokenizer.json and a model card.

Our Transformers of the default form (LayerNorm after each residual sum, BERT's output head) are
exactly BERT's classes: BertForMaskedLM, and BertLMHeadModel as a decoder.
"""

import json
import shutil
from pathlib import Path

import torch
from torch import nn

from lmtools.atomic import atomic_directory
from lmtools.checkpoint import load_model
from lmtools.errors import UserError
from lmtools.lm import LanguageModel
from lmtools.outputs import Softmax
from lmtools.subword import BOS, EOS, MASK, PAD, SPECIALS, UNK, Subword

CONFIG, CARD = "config.json", "README.md"
CLASSES = {"causal": "BertLMHeadModel", "masked": "BertForMaskedLM"}


def write_huggingface(directory: str, out: str) -> str:
    """Write the model in `directory` as transformers' directory `out`; what to say of it. UserError
    for models that transformers has no class for.
    """
    try:
        import transformers

        from lmtools.export.tokenizer import make_tokenizer
    except ImportError:
        raise UserError(
            "--to hf: needs the package transformers; pip install 'lmtools[hf]'"
        ) from None
    lm, subword = load_model(directory)
    refuse_unable(lm, directory)
    name = CLASSES[lm.settings.model]
    model = fill_bert(lm, getattr(transformers, name)(bert_config(transformers, lm, subword)))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=make_tokenizer(subword, directory),
        bos_token=SPECIALS[BOS], eos_token=SPECIALS[EOS], unk_token=SPECIALS[UNK],
        pad_token=SPECIALS[PAD], mask_token=SPECIALS[MASK],
        cls_token=SPECIALS[BOS], sep_token=SPECIALS[EOS],
        model_max_length=lm.settings.architecture.positions, clean_up_tokenization_spaces=False,
    )  # fmt: skip
    with atomic_directory(out, CONFIG) as temporary:
        model.save_pretrained(temporary, safe_serialization=True)
        tokenizer.save_pretrained(temporary)
        # safetensors' own file is for its owner alone
        shutil.copymode(temporary / CONFIG, temporary / "model.safetensors")
        (temporary / CARD).write_text(describe_card(lm, subword, directory), encoding="utf-8")
    return f"{out}: {name} with tokenizer.json and {CARD}; lmtools score --lm hf:{out}"


def refuse_unable(lm: LanguageModel, directory) -> None:
    """UserError for models that BERT's classes cannot be."""
    settings, reason = lm.settings, ""
    if settings.model not in CLASSES:
        reason = f"transformers has no class for model {settings.model}"
    elif settings.architecture.norm != "post":
        reason = "transformers has no class for arch.norm pre with this output layer"
    elif type(lm.output) is not Softmax:
        reason = f"transformers' output layers are a softmax, not {settings.criterion}"
    if reason:
        raise UserError(f"{directory}: {reason}; export --to onnx")


def bert_config(transformers, lm: LanguageModel, subword: Subword):
    """BERT's configuration of the same size."""
    c, decoder = lm.settings.architecture, lm.settings.model == "causal"
    return transformers.BertConfig(
        vocab_size=subword.size, hidden_size=c.dim, num_hidden_layers=c.layers,
        num_attention_heads=c.heads, intermediate_size=c.ffn, hidden_act="gelu",
        hidden_dropout_prob=c.dropout, attention_probs_dropout_prob=c.attention_dropout,
        max_position_embeddings=c.positions, type_vocab_size=1, layer_norm_eps=1e-12,
        pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS, tie_word_embeddings=c.tied,
        is_decoder=decoder,
    )  # fmt: skip


@torch.no_grad()
def fill_bert(lm: LanguageModel, model):
    """The BERT model with the weights of ours; the inverse of models.huggingface.bert_trunk."""
    trunk, bert, head = lm.trunk, model.bert, model.cls.predictions
    embeddings = bert.embeddings
    embeddings.word_embeddings.weight.copy_(trunk.lookup.weight)
    embeddings.token_type_embeddings.weight.zero_()
    position = trunk.embedding.position
    embeddings.position_embeddings.weight.copy_(0 if position is None else position.weight)
    pairs: list[tuple[nn.Module, nn.Module]] = [
        (embeddings.LayerNorm, trunk.embedding.norm),
        (head.transform.dense, trunk.head_dense), (head.transform.LayerNorm, trunk.head_norm),
    ]  # fmt: skip
    for layer, block in zip(bert.encoder.layer, trunk.blocks, strict=True):
        own, output = layer.attention.self, layer.attention.output
        pairs += [
            (own.query, block.query), (output.dense, block.attention),
            (output.LayerNorm, block.attention_norm), (layer.intermediate.dense, block.inner),
            (layer.output.dense, block.outer), (layer.output.LayerNorm, block.norm),
        ]  # fmt: skip
        for kind in ("weight", "bias"):
            key, value = getattr(block.key_value, kind).chunk(2)
            getattr(own.key, kind).copy_(key)
            getattr(own.value, kind).copy_(value)
    for to, ours in pairs:
        to.load_state_dict(ours.state_dict())
    head.decoder.weight.copy_(lm.output.weight)
    head.bias.copy_(lm.output.bias)
    head.decoder.bias = head.bias
    return model.eval()


def describe_card(lm: LanguageModel, subword: Subword, directory) -> str:
    """The model card: what the model is and what its training measured, and how to load it."""
    settings, name = lm.settings, Path(directory).resolve().name
    masked = settings.model == "masked"
    task = "fill-mask" if masked else "text-generation"
    rows = {
        "class": CLASSES[settings.model],
        "architecture": json.dumps(settings.arch),
        "parameters": f"{sum(p.numel() for p in lm.parameters()):,}",
        "vocabulary": f"{subword.size:,} ({subword.scheme})",
        "text is normalised to": ", ".join(f"{k} {v}" for k, v in vars(subword.normaliser).items()),
        "longest text": f"{lm.longest} tokens",
        **read_training(directory),
    }
    table = "\n".join(f"| {key} | {value} |" for key, value in rows.items())
    scored = "pseudo-log-likelihood" if masked else "log-probability"
    return (
        f"---\nlibrary_name: transformers\npipeline_tag: {task}\ntags: [lmtools]\n---\n"
        f"# {name}\n\nA {lm.trunk.title} language model trained by lmtools.\n\n"
        f"| | |\n|---|---|\n{table}\n\n"
        f"`lmtools score --lm hf:DIR` gives the {scored} of sentences. Before it is published, say"
        " here what text it was trained on and under which licence the weights are.\n"
    )


def read_training(directory) -> dict[str, str]:
    """The tokens that the training read and the best validation perplexity, where it noted them."""
    path, found = Path(directory) / "metrics.jsonl", {}
    if not path.is_file():
        return found
    steps = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if tokens := max((step.get("tokens", 0) for step in steps), default=0):
        found["tokens read in training"] = f"{tokens:,}"
    if losses := [step["valid_loss"] for step in steps if "valid_loss" in step]:
        found["validation loss"] = f"{min(losses):.4f} nats a token"
    return found
