"""A model directory as ESPnet's pair of configuration (--lm_train_config) and weights
(--lm_file).
"""

from collections.abc import Sequence

import torch
import yaml

from lmtools.base.atomic import atomic_directory
from lmtools.base.errors import UserError
from lmtools.bridges.espnet.tokens import match_tokens
from lmtools.models.checkpoint import load_model, read_settings
from lmtools.models.settings import Settings

CONFIG, WEIGHTS = "config.yaml", "lm.pth"
NAME = "lmtools"  # of the class among ESPnet's choices


def export_model(directory, tokens: Sequence[str], source, out) -> list[str]:
    """Write the model in `directory` for ESPnet's `tokens` (read from `source`) to the directory
    `out`; returns the tokens it lacks.

    What is written holds all: it can be moved, and the model directory may go. UserError if the
    model does not read left to right or its vocabulary does not fit.
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
