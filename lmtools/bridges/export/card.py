"""The model card (README.md) of Hugging Face's form: what the model's directory knows, and what its
user says of it.
"""

import json
import math
import sys
from pathlib import Path

from lmtools.base.config import as_tree
from lmtools.models.lm import LanguageModel
from lmtools.text.subword import Subword

# what the model's scores of a text are; every other family gives a log-probability
SUMS = {"masked": "pseudo-log-likelihood", "tta": "pseudo-log-likelihood"}


def describe_card(
    lm: LanguageModel, subword: Subword, directory, name: str, licence: str, corpus: str
) -> str:
    """Return the card of the model in `directory` for transformers' class `name`; an empty
    `licence` or `corpus` is left to say.
    """
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
    """Return the epochs and tokens that the training read and its best validation loss with
    perplexity, where it noted them.
    """
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
