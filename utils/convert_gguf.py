#!/usr/bin/env python3
"""Write a GGUF language model as the Hugging Face directory that `hf:DIR` loads: weights in
bfloat16, config and tokenizer.

transformers reads the weights, and BPE over bytes (SmolLM2). It takes SentencePiece's BPE for a
unigram model in some families (Gemma), so that words fall into letters; here that tokenizer comes
from the file's own pieces, scores and types. Needs transformers, gguf and accelerate
(`pip install -e '.[hf,gguf]'`).
"""

import argparse
import os
from pathlib import Path

from lmtools.base.errors import UserError, exit_with_message, install_extra

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4  # types of pieces, as SentencePiece numbers them
SPACE = "▁"


def convert_gguf(path: str, out: str, end: str | None = None) -> None:
    """Convert the model in the GGUF file `path`, in the directory `out`; `end`: the token that ends
    a text, where the file names another. UserError for a file that is none or another tokenizer
    than SentencePiece's BPE and BPE over bytes.
    """
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; give a GGUF language model")
    try:
        import accelerate  # noqa: F401  (transformers asks for it late)
        import torch
        from gguf import GGUFReader
        from transformers import AutoModelForCausalLM
    except ImportError as error:
        remedy = install_extra("hf", "gguf")
        raise UserError(f"{path}: needs the package {error.name}; {remedy}") from None
    try:
        fields = {name: field.contents() for name, field in GGUFReader(path).fields.items()}
        tokenizer = build_tokenizer(path, fields)
        model = AutoModelForCausalLM.from_pretrained(
            Path(path).parent, gguf_file=Path(path).name, dtype=torch.bfloat16
        )
    except UserError:
        raise
    except Exception as error:  # both libraries raise whatever their parts raise
        cause = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: {cause}; give a whole GGUF that transformers knows") from None
    if end is not None:
        if end not in tokenizer.get_vocab():
            raise UserError(f"{path}: --end: {end!r} is no token; give one of the model's tokens")
        tokenizer.eos_token = end
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def build_tokenizer(path: str, fields: dict):
    """Return the tokenizer that a GGUF's metadata `fields` describe."""
    from tokenizers import processors
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    settings = {
        name.removeprefix("tokenizer.ggml."): value
        for name, value in fields.items()
        if name.startswith("tokenizer.ggml.")
    }
    bytewise = settings.get("model") == "gpt2"
    if not bytewise and (settings.get("model") != "llama" or "scores" not in settings):
        raise UserError(
            f"{path}: its tokenizer is {settings.get('model')}, not SentencePiece's BPE (llama) or"
            " BPE over bytes (gpt2); convert the model with its maker's tokenizer files"
        )
    pieces = settings["tokens"]
    names = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    special = {
        f"{ours}_token": pieces[number]
        for ours, theirs in names.items()
        if (number := settings.get(f"{theirs}_token_id")) is not None
    }
    if bytewise:
        given = {"gguf_file": Path(path).name, **special}
        return AutoTokenizer.from_pretrained(Path(path).parent, **given)
    bpe = build_bpe(
        pieces, settings["scores"], settings["token_type"],
        special.get("unk_token"), settings.get("add_space_prefix", True),
    )  # fmt: skip
    begin, end = (
        [special[f"{name}_token"]] if settings.get(f"add_{name}_token", default) else []
        for name, default in (("bos", "bos_token" in special), ("eos", False))
    )
    bpe.post_processor = processors.TemplateProcessing(
        single=[*begin, "$A", *end], special_tokens=[(p, pieces.index(p)) for p in begin + end]
    )
    return PreTrainedTokenizerFast(tokenizer_object=bpe, **special)


def build_bpe(pieces: list[str], scores: list, types: list, unknown: str | None, prefix: bool):
    """Return SentencePiece's BPE over `pieces` with byte fallback: of two neighbours that make a
    piece, those that make the one of highest score are merged first. `prefix`: a space before the
    text.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

    number = {piece: i for i, piece in enumerate(pieces)}
    merges = sorted(
        (-score, number[piece[:cut]], number[piece[cut:]])
        for piece, score, kind in zip(pieces, scores, types, strict=True)
        if kind == NORMAL
        for cut in range(1, len(piece))
        if piece[:cut] in number and piece[cut:] in number
    )
    tokenizer = Tokenizer(
        models.BPE(
            vocab=number, merges=[(pieces[left], pieces[right]) for _, left, right in merges],
            unk_token=unknown, fuse_unk=True, byte_fallback=True,
        )
    )  # fmt: skip
    spaces = [normalizers.Prepend(SPACE)] if prefix else []
    tokenizer.normalizer = normalizers.Sequence([*spaces, normalizers.Replace(" ", SPACE)])
    strip = [decoders.Strip(" ", 1, 0)] if prefix else []
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    for kind, add in (
        (CONTROL, tokenizer.add_special_tokens),
        (USER_DEFINED, tokenizer.add_tokens),
    ):
        add(
            [
                AddedToken(p, normalized=False)
                for p, t in zip(pieces, types, strict=True)
                if t == kind
            ]
        )
    return tokenizer


def main() -> None:
    """Parse, convert."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gguf", help="the model, a file")
    parser.add_argument("out", help="the directory to write")
    help_text = "token that ends a text, where the file names another one"
    parser.add_argument("--end", metavar="TOKEN", help=help_text)
    args = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is fetched
    convert_gguf(args.gguf, args.out, args.end)


if __name__ == "__main__":
    with exit_with_message():
        main()
