"""A model directory as ESPnet's pair of configuration (--lm_train_config) and weights (--lm_file),
over ESPnet's own tokens.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
import yaml

from lmtools.base.atomic import atomic_directory
from lmtools.base.config import load_yaml
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.models.checkpoint import load_model, read_settings
from lmtools.models.settings import Settings
from lmtools.text import MARK
from lmtools.text.subword import EOS, SPECIALS, UNK, Subword

CONFIG, WEIGHTS = "config.yaml", "lm.pth"
NAME = "lmtools"  # of the class among ESPnet's choices
BLANK, UNKNOWN, BOUNDARY, SPACE = "<blank>", "<unk>", "<sos/eos>", "<space>"
NEVER = -1  # instead of an id: a language model never predicts this token
FIT = 0.9  # of either vocabulary has to be in the other
OWN_PIECES = "train it on ESPnet's own pieces: lmtools subword --model BPE.MODEL --out DIR"


def export_model(directory, tokens: Sequence[str], source, out) -> list[str]:
    """Write the model in `directory` for ESPnet's `tokens` (from `source`) to `out`, which holds
    all that it needs; return the tokens that it lacks. UserError for a model that does not fit.
    """
    settings, _ = read_settings(directory)
    if settings.objective != "causal":
        raise UserError(
            f"{directory}: a {settings.model} model reads both sides of a word, a beam search has"
            " one; use a left-to-right model"
        )
    lm, subword = load_model(directory)
    ids, lacking = match_tokens(tokens, subword, source, directory)
    with atomic_directory(out, CONFIG) as temporary:
        (temporary / CONFIG).write_text(
            write_configuration(settings, subword.size, ids, tokens), encoding="utf-8"
        )
        torch.save(
            {f"lm.model.{name}": tensor for name, tensor in lm.state_dict().items()},
            temporary / WEIGHTS,
        )
    return lacking


def write_configuration(
    settings: Settings, size: int, ids: list[int], tokens: Sequence[str]
) -> str:
    """Return the YAML from which espnet2.tasks.lm builds LmtoolsLM (bridges.espnet.plugin)."""
    names = ("model", "objective", "criterion", "arch", "output")
    model = {name: getattr(settings, name) for name in names}
    tree = {
        "lm": NAME, "lm_conf": {"settings": model, "size": size, "ids": ids},
        "model": "lm", "model_conf": {}, "init": None, "token_list": list(tokens),
    }  # fmt: skip
    return yaml.safe_dump(
        tree, sort_keys=False, allow_unicode=True, default_flow_style=None, width=140
    )


def read_tokens(path) -> list[str]:
    """Return the token list of an ESPnet model's .yaml, or of tokens.txt; else UserError."""
    path = Path(path)
    if path.suffix in (".yaml", ".yml"):
        tokens = load_yaml(path).get("token_list")
        if isinstance(tokens, str):  # a path, before ESPnet has trained
            return read_tokens(tokens)
    else:
        tokens = [line.rstrip() for _, line in read_lines(path)]
    if not isinstance(tokens, list) or tokens[-1:] != [BOUNDARY]:
        raise UserError(
            f"{path}: no token list that ends in {BOUNDARY}; give the config.yaml or the tokens.txt"
            " of an ESPnet model"
        )
    return [str(token) for token in tokens]


def ids_of(tokens: Sequence[str], subword: Subword) -> list[int]:
    """Return our id of each token: UNK where we lack it, EOS for <sos/eos>, NEVER for <blank>."""
    known = {piece: i for i, piece in enumerate(subword.vocabulary) if i >= len(SPECIALS)}
    if subword.scheme == "char":
        known[SPACE] = known.pop(MARK)
    return [{BLANK: NEVER, BOUNDARY: EOS}.get(token, known.get(token, UNK)) for token in tokens]


def match_tokens(
    tokens: Sequence[str], subword: Subword, source, lm
) -> tuple[list[int], list[str]]:
    """Return our id of each token, and the tokens that we lack; UserError if too many lack on
    either side: only a word list may be the larger one.
    """
    ids = ids_of(tokens, subword)
    ordinary = [token for token in tokens if token not in (BLANK, UNKNOWN, BOUNDARY)]
    lacking = [token for token, i in zip(tokens, ids, strict=True) if i == UNK and token != UNKNOWN]
    if len(lacking) > (1 - FIT) * len(ordinary):
        count = f"{len(lacking)} of its {len(ordinary)} tokens are not in the vocabulary of {lm}"
        raise UserError(f"{source}: {count}, such as {lacking[0]!r}; {OWN_PIECES}")
    ours = subword.size - len(SPECIALS)
    if subword.scheme != "word" and len(ordinary) - len(lacking) < FIT * ours:
        count = f"holds only {len(ordinary) - len(lacking)} of the {ours} pieces of {lm}"
        raise UserError(
            f"{source}: {count}, which then sees words in pieces that it was not trained on;"
            f" {OWN_PIECES}"
        )
    return ids, lacking
