"""Local directories of Hugging Face models: loading their weights and tokenizers, and what they
are.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import torch

from lmtools.errors import UserError
from lmtools.files import sha256


def load_pretrained(directory: str, family: Callable, wanted: str, whole=True, pairs=False):
    """Load the model, of the class that `family(transformers, config)` names, and the tokenizer of
    a local directory; UserError without them or, if it is to be `whole`, without some weights, and
    where either an encoder with a decoder or `pairs` of texts are without the other.
    """
    try:
        import transformers
    except ImportError:
        raise UserError(
            f"hf:{directory}: needs the package transformers; pip install 'lmtools[hf]'"
        ) from None
    transformers.logging.set_verbosity_error()
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
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(directory, **local)
        if config.is_encoder_decoder and not pairs:
            raise UserError(
                f"hf:{directory}: a translation model (encoder and decoder), which reads a source"
                " beside each sentence; use it with lmtools score --source"
            )
        if pairs and not config.is_encoder_decoder:
            raise UserError(
                f"hf:{directory}: no translation model, so it reads no source; leave --source out"
            )
        tokenizer = transformers.AutoTokenizer.from_pretrained(directory, **local)
        model, found = family(transformers, config).from_pretrained(
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
    if whole and (missing := sorted(found["missing_keys"])):  # they would be random numbers
        raise UserError(
            f"hf:{directory}: no weights for {missing[0]} and {len(missing) - 1} others; give"
            f" {wanted}"
        )
    return model, tokenizer


def directory_hash(directory) -> str:
    """Identifies a model by the files in its directory."""
    paths = Path(directory).iterdir()
    files = sorted(p for p in paths if p.is_file() and not p.name.startswith("."))
    return hashlib.sha256("".join(p.name + sha256(p) for p in files).encode()).hexdigest()


def boundaries(config, tokenizer, directory) -> tuple[int, int]:
    """Return the ids before and after a sentence: of the tokenizer, else of the configuration; the
    end of text stands for a beginning that there is not.
    """
    begin, end = (
        getattr(tokenizer, name) if getattr(tokenizer, name) is not None else first_of(config, name)
        for name in ("bos_token_id", "eos_token_id")
    )
    if end is None:
        raise UserError(
            f"hf:{directory}: the tokenizer has no end of sentence; set eos_token in its"
            " configuration"
        )
    return (end if begin is None else begin), end


def first_of(config, name: str) -> int | None:
    """Return a token id of a configuration, where several may stand."""
    value = getattr(config, name, None)
    return value[0] if isinstance(value, list) else value


def frame(tokenizer) -> tuple[list[int], list[int]]:
    """Return the ids that a tokenizer puts before and after a text."""
    made = tokenizer("a", return_special_tokens_mask=True)
    ids, added = made["input_ids"], made["special_tokens_mask"]
    first = added.index(0) if 0 in added else len(ids)
    after = added[first:].index(1) if 1 in added[first:] else len(ids) - first
    return ids[:first], ids[first + after :]
