"""Hugging Face's form: what save_pretrained writes, with tokenizer.json and a model card.

Our Transformers of the default form (LayerNorm after each residual sum, BERT's output head) are
exactly BERT's classes: BertForMaskedLM, and BertLMHeadModel as a decoder. The other families go
with a file of classes of their own, modeling_lmtools.py. Subword models are fast tokenizers: the
same normalisation, the same ids.
"""

import copy
import dataclasses
import json
import math
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import nn

from lmtools.base.atomic import atomic_directory
from lmtools.base.config import as_tree
from lmtools.base.errors import UserError
from lmtools.bridges.export.onnx import replace_convolutions
from lmtools.models.checkpoint import load_model
from lmtools.models.lm import LanguageModel
from lmtools.models.outputs import Softmax
from lmtools.text import MARK, Normaliser
from lmtools.text.normaliser import APOSTROPHES, CASINGS
from lmtools.text.subword import BOS, EOS, MASK, PAD, SPECIALS, UNK, Subword
from lmtools.text.subword.lists import Char, Word
from lmtools.text.subword.sentences import BpePieces, SentencePiece, ordinary

# what the model's scores of a text are; every other family gives a log-probability
SUMS = {"masked": "pseudo-log-likelihood", "tta": "pseudo-log-likelihood"}
CONFIG, CARD = "config.json", "README.md"
BERT = {"causal": "BertLMHeadModel", "masked": "BertForMaskedLM"}
CODE = "modeling_lmtools"  # the file of the custom classes
CUSTOM = {
    **dict.fromkeys(("lstm", "gcnn", "causal"), "LmtoolsForCausalLM"),
    **dict.fromkeys(("masked", "tta"), "LmtoolsForMaskedLM"),
}


def write_huggingface(directory: str, out: str, licence: str = "", corpus: str = "") -> str:
    """Write the model in `directory` as transformers' directory `out`; what to say of it. The model
    card says `licence` and `corpus` (the training text). UserError for what no class computes.
    """
    import transformers

    lm, subword = load_model(directory)
    refuse_unable(lm, directory)
    custom = lm.settings.model not in BERT or lm.settings.architecture.norm != "post"
    name = (CUSTOM if custom else BERT)[lm.settings.model]
    if custom:
        model = make_custom(lm, subword)
    else:
        model = fill_bert(lm, getattr(transformers, name)(bert_config(transformers, lm, subword)))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=make_tokenizer(subword, directory),
        bos_token=SPECIALS[BOS], eos_token=SPECIALS[EOS], unk_token=SPECIALS[UNK],
        pad_token=SPECIALS[PAD], mask_token=SPECIALS[MASK],
        cls_token=SPECIALS[BOS], sep_token=SPECIALS[EOS],
        model_max_length=lm.trunk.positions, clean_up_tokenization_spaces=False,
    )  # fmt: skip
    with atomic_directory(out, CONFIG) as temporary:
        model.save_pretrained(temporary, safe_serialization=True)
        tokenizer.save_pretrained(temporary)
        # safetensors' own file is for its owner alone
        shutil.copymode(temporary / CONFIG, temporary / "model.safetensors")
        if custom:
            shutil.copyfile(Path(__file__).with_name(f"{CODE}.py"), temporary / f"{CODE}.py")
        card = describe_card(lm, subword, directory, name, licence=licence, corpus=corpus)
        (temporary / CARD).write_text(card, encoding="utf-8")
    if custom:
        return f"{out}: {name} with {CODE}.py; from_pretrained({out!r}, trust_remote_code=True)"
    return f"{out}: {name} with tokenizer.json and {CARD}; lmtools score --lm hf:{out}"


def refuse_unable(lm: LanguageModel, directory) -> None:
    if lm.settings.model not in CUSTOM:
        raise UserError(
            f"{directory}: an {lm.settings.model} model reads spelled words, for which there is no"
            " tokenizer.json; export another model"
        )
    if type(lm.output) is not Softmax:
        raise UserError(
            f"{directory}: transformers' output layers are a softmax, not {lm.settings.criterion};"
            " export --to onnx"
        )


@torch.no_grad()
def make_custom(lm: LanguageModel, subword: Subword):
    from lmtools.bridges.export import modeling_lmtools

    settings, arch = lm.settings, dataclasses.asdict(lm.settings.architecture)
    if settings.model == "gcnn":
        arch["blocks"] = [list(map(list, shape)) for shape in settings.architecture.shapes]
    name = CUSTOM[settings.model]
    auto = name.replace("Lmtools", "AutoModel")
    config = modeling_lmtools.LmtoolsConfig(
        family=settings.model, arch=arch, vocab_size=subword.size, mask_token_id=MASK,
        pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS,
        hidden_size=lm.trunk.width, num_hidden_layers=lm.trunk.depth,
        auto_map={"AutoConfig": f"{CODE}.LmtoolsConfig", auto: f"{CODE}.{name}"},
        architectures=[name],
    )  # fmt: skip
    model = getattr(modeling_lmtools, name)(config)
    folded = copy.deepcopy(lm)
    replace_convolutions(folded)
    model.trunk.load_state_dict(folded.trunk.state_dict())
    model.bias.copy_(lm.output.bias)
    if model.weight is not None:
        model.weight.copy_(lm.output.weight)
    return model.eval()


def bert_config(transformers, lm: LanguageModel, subword: Subword):
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
    """Return the BERT model with the weights of ours, the inverse of `bert_trunk`."""
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
        attention, output = layer.attention.self, layer.attention.output
        pairs += [
            (attention.query, block.query), (output.dense, block.attention),
            (output.LayerNorm, block.attention_norm), (layer.intermediate.dense, block.inner),
            (layer.output.dense, block.outer), (layer.output.LayerNorm, block.norm),
        ]  # fmt: skip
        for kind in ("weight", "bias"):
            key, value = getattr(block.key_value, kind).chunk(2)
            getattr(attention.key, kind).copy_(key)
            getattr(attention.value, kind).copy_(value)
    for to, ours in pairs:
        to.load_state_dict(ours.state_dict())
    head.decoder.weight.copy_(lm.output.weight)
    head.bias.copy_(lm.output.bias)
    head.decoder.bias = head.bias
    return model.eval()


def describe_card(
    lm: LanguageModel, subword: Subword, directory, name: str, licence: str, corpus: str
) -> str:
    """Return the card of a model for transformers' class `name`; what is empty is left to say."""
    settings, custom = lm.settings, name.startswith("Lmtools")
    masked = settings.model in SUMS
    rows = {
        "class": name,
        **describe_model(lm, subword),
        "training text": corpus,
        **read_training(directory),
        "licence": licence,
    }
    table = "".join(
        f"| {key} | {' '.join(value.split()).replace('|', chr(92) + '|')} |\n"
        for key, value in rows.items()
        if value
    )
    front = ["library_name: transformers", "tags: [lmtools]"]
    front.append(f"pipeline_tag: {'fill-mask' if masked else 'text-generation'}")
    front += [f"license: {json.dumps(licence)}"] if licence else []
    auto = "AutoModelForMaskedLM" if masked else "AutoModelForCausalLM"
    trust = ", trust_remote_code=True" if custom else ""
    lines = [
        "---", *front, "---", f"# {Path(directory).resolve().name}", "",
        f"A {lm.trunk.title} language model trained by lmtools.", "", "| | |", "|---|---|",
        table, "```python", f"from transformers import {auto}, AutoTokenizer", "",
        'tokenizer = AutoTokenizer.from_pretrained("DIR")',
        f'model = {auto}.from_pretrained("DIR"{trust})', "```", "",
        f"The model gives the {SUMS.get(settings.model, 'log-probability')} of a text"
        " between `<s>` and `</s>`, which the tokenizer adds.",
    ]  # fmt: skip
    missing = {
        "what text it was trained on": corpus,
        "under which licence the weights are": licence,
    }
    if left := " and ".join(what for what, value in missing.items() if not value):
        lines += ["", f"Before it is published, say here {left}."]
    return "\n".join(lines) + "\n"


def describe_model(lm: LanguageModel, subword: Subword) -> dict[str, str]:
    """Return what a model and its vocabulary are, by the names of the card's rows."""
    settings, normaliser = lm.settings, as_tree(subword.normaliser)
    unlimited = lm.trunk.positions == sys.maxsize
    return {
        "family": f"{lm.trunk.title} ({settings.model})",
        "architecture": json.dumps(settings.arch),
        "criterion": settings.criterion,
        "parameters": f"{sum(p.numel() for p in lm.parameters()):,}",
        "vocabulary": f"{subword.size:,} ({subword.scheme})",
        "text is normalised to": ", ".join(f"{key} {value}" for key, value in normaliser.items()),
        "longest text": "any" if unlimited else f"{lm.longest} tokens",
    }


def read_training(directory) -> dict[str, str]:
    """Return epochs, tokens, and best validation loss with perplexity, where noted."""
    path, facts = Path(directory) / "metrics.jsonl", {}
    if not path.is_file():
        return facts
    steps = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for key, name in (("tokens", "tokens read in training"), ("step", "steps of training")):
        if most := max((step.get(key, 0) for step in steps), default=0):
            facts[name] = f"{most:,}"
    if losses := [step["valid_loss"] for step in steps if "valid_loss" in step]:
        loss = min(losses)
        facts["validation loss"] = f"{loss:.4f} nats a token (perplexity {math.exp(loss):.2f})"
    return facts


NORMAL, UNKNOWN, CONTROL = 1, 2, 3  # types of SentencePiece's pieces
SPACES = Regex(r"[\s\x{1c}-\x{1f}\x{85}]+")  # what Python's split() splits at


def make_tokenizer(subword: Subword, source) -> Tokenizer:
    """Return the tokenizer that gives the ids of `subword`, with <s> and </s> around them."""
    if subword.normaliser.whisper != "none" or subword.normaliser.letters != "keep":
        raise UserError(
            f"{source}: its normaliser {subword.normaliser.spec} is a program, which no"
            " tokenizer.json can hold; export --to onnx, and normalise texts before"
        )
    letters = set("".join(subword.vocabulary))
    steps = normaliser_steps(subword.normaliser, letters)
    if isinstance(subword, SentencePiece):
        steps += inner_normaliser(subword.content, source)
        tokenizer = Tokenizer(make_pieces(subword))
        first = "always" if subword.dummy else "never"
        words: pre_tokenizers.PreTokenizer = pre_tokenizers.Metaspace(prepend_scheme=first)
        tokenizer.decoder = decoders.Metaspace(prepend_scheme=first)
    elif isinstance(subword, Word | Char):
        ids = {piece: i for i, piece in enumerate(subword.vocabulary)}
        tokenizer = Tokenizer(models.WordLevel(ids, unk_token=SPECIALS[UNK]))
        words = pre_tokenizers.WhitespaceSplit()
        if isinstance(subword, Char):
            steps.append(normalizers.Replace(" ", MARK))
            words = pre_tokenizers.Split(Regex("(?m)."), "isolated")
            tokenizer.decoder = decoders.Sequence([decoders.Fuse(), decoders.Replace(MARK, " ")])
    else:
        raise UserError(
            f"{source}: a {subword.scheme} vocabulary has no tokenizer.json; export a model of"
            " pieces, words or characters"
        )
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = words
    begin, end = SPECIALS[BOS], SPECIALS[EOS]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}",
        pair=f"{begin} $A {end} $B {end}",
        special_tokens=[(begin, BOS), (end, EOS)],
    )
    return tokenizer


def make_pieces(subword: SentencePiece) -> models.Model:
    processor, pieces = subword.processor, subword.vocabulary
    if not isinstance(subword, BpePieces):
        scores = [processor.get_score(i) for i in ordinary(processor)]
        return models.Unigram(
            list(zip(pieces, [*[0.0] * len(SPECIALS), *scores], strict=True)), UNK, False
        )
    ids = {piece: i for i, piece in enumerate(pieces)}
    scores = {processor.id_to_piece(i): processor.get_score(i) for i in ordinary(processor)}
    # the piece that a merge makes has the score; single characters have lower ones
    ranked = sorted(scores, key=scores.__getitem__, reverse=True)
    merges = [
        (piece[:cut], piece[cut:])
        for piece in ranked
        for cut in range(1, len(piece))
        if piece[:cut] in scores and piece[cut:] in scores
    ]
    return models.BPE(ids, merges, unk_token=SPECIALS[UNK], fuse_unk=True)


def normaliser_steps(normaliser: Normaliser, letters: set[str]) -> list[normalizers.Normalizer]:
    """Return the steps of a normaliser; upper case only of what becomes one of `letters`."""
    replace, marks = normalizers.Replace, re.escape(APOSTROPHES)
    steps: list[normalizers.Normalizer] = [replace(MARK, " ")]
    if normaliser.apostrophe != "keep":
        to = "'" if normaliser.apostrophe == "straight" else ""
        steps.append(replace(Regex(f"[{marks}]"), to))
    if normaliser.unicode_form != "none":
        steps.append(getattr(normalizers, normaliser.unicode_form)())
    if normaliser.case != "keep":
        pairs = CASINGS[normaliser.language][normaliser.case]
        steps += [replace(old, new) for old, new in pairs]
    if normaliser.case == "lower":
        steps.append(normalizers.Lowercase())
    elif normaliser.case == "upper":
        steps += [replace(lower, upper) for lower, upper in upper_case(letters | set(APOSTROPHES))]
    if normaliser.punctuation == "strip":
        steps.append(replace(Regex(rf"[[\p{{P}}\p{{S}}]&&[^{marks}]]"), " "))
        steps.append(replace(Regex(f"[{marks}]{{2,}}"), " "))
        steps.append(replace(Regex(rf"(?<!\S)[{marks}]+|[{marks}]+(?!\S)"), ""))
    return [*steps, replace(SPACES, " "), normalizers.Strip()]


def upper_case(letters: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the characters whose upper case is made of `letters`, and that."""
    for point in range(0x110000):
        upper = chr(point).upper()
        if upper != chr(point) and letters.issuperset(upper):
            yield chr(point), upper


def inner_normaliser(content: bytes, source) -> list[normalizers.Normalizer]:
    """Return the normalisation inside a SentencePiece model; UserError for other pieces."""
    kinds, steps = set(), []
    for field, message in read_fields(content):
        parts = dict(read_fields(message)) if field in (1, 3) else {}
        if field == 1:
            kinds.add(parts.get(3, NORMAL))
        elif field == 3 and parts.get(2):
            steps.append(normalizers.Precompiled(parts[2]))
    if kinds - {NORMAL, UNKNOWN, CONTROL}:
        raise UserError(
            f"{source}: its SentencePiece model has user-defined or unused pieces, or bytes, which"
            " fast tokenizers treat otherwise; export --to onnx"
        )
    return steps


def read_fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield number and value of each field of a protocol buffer; fixed-width values stay bytes."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place, value, shift = place + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while place < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, message[place : place + size]
        place += size
