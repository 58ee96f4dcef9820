"""Models of Hugging Face with CTC (wav2vec2, MMS ..): the exact log-probability of a text, summed
over all its alignments to the frames.

Graves et al. 2006, Connectionist Temporal Classification.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lmtools.base.errors import UserError, explain_missing
from lmtools.base.files import sha256


class Heard(NamedTuple):
    """The log-probability of a text given the sound, and the tokens it sums over."""

    log_prob: float
    tokens: int


class CtcEar:
    """A directory with what transformers' AutoModelForCTC and AutoProcessor load."""

    def __init__(self, directory: str, device: str = "cpu", opts: Sequence[str] = ()):
        self.directory, self.device = directory, "cpu" if device == "auto" else device
        if opts:
            raise UserError(f"--opts {opts[0]}: ctc has no options; leave it out")
        if not Path(directory, "config.json").is_file():
            raise UserError(f"{directory}: no config.json; give a model of Hugging Face with CTC")

    @cached_property
    def rate(self) -> int:
        path = Path(self.directory, "preprocessor_config.json")
        try:
            return int(json.loads(path.read_text(encoding="utf-8")).get("sampling_rate", 16_000))
        except (OSError, ValueError, AttributeError, TypeError) as error:
            cause = " ".join(str(error).split())
            raise UserError(f"{path}: cannot be read ({cause}); fetch the model again") from None

    @cached_property
    def signature(self) -> dict[str, str]:
        files = sorted(path for path in Path(self.directory).iterdir() if path.is_file())
        parts = json.dumps([[path.name, sha256(path)] for path in files])
        return {"ear": "ctc", "rules": "1", "model": hashlib.sha256(parts.encode()).hexdigest()}

    def load(self) -> "CtcEar":
        try:
            from transformers import AutoModelForCTC, AutoProcessor
        except ImportError as error:
            raise explain_missing(error, "--asr ctc:") from None
        local = {"local_files_only": True, "trust_remote_code": False}
        try:
            self.processor = AutoProcessor.from_pretrained(self.directory, **local)
            model = AutoModelForCTC.from_pretrained(self.directory, use_safetensors=True, **local)
            self.model = model.to(self.device).eval()
        # whatever transformers, torch and JSON find wrong
        except Exception as error:
            cause = " ".join(str(error).split())[:200]
            raise UserError(f"{self.directory}: cannot load the model ({cause})") from None
        tokenizer = self.processor.tokenizer
        self.blank = tokenizer.pad_token_id
        letters = "".join(token for token in tokenizer.get_vocab() if len(token) == 1)
        # models of one case read the other as nothing
        same = [case for case in (str.upper, str.lower) if case(letters) == letters]
        self.case = same[0] if len(same) == 1 else str
        self.known = {*letters, " "}
        return self

    def spell(self, text: str) -> list[int]:
        """Return the labels of a text: its letters that the model knows, in its case."""
        letters = (letter for letter in self.case(text) if letter in self.known)
        words = " ".join("".join(letters).split())
        return self.processor.tokenizer(words, add_special_tokens=False).input_ids if words else []

    def score(self, texts: Sequence[str], samples: np.ndarray) -> list[Heard]:
        """Return the exact log-probability of each text: of one that needs more frames than there
        are, what the least probable path has.
        """
        import torch

        given = self.processor(samples, sampling_rate=self.rate, return_tensors="pt")
        with torch.inference_mode():
            logits = self.model(given.input_values.to(self.device)).logits[0]
        frames = logits.double().cpu().log_softmax(-1)
        labels = [self.spell(text) for text in texts]
        values = sum_paths(frames, labels, self.blank)
        return [Heard(value, len(row)) for value, row in zip(values, labels, strict=True)]


def sum_paths(frames, labels: Sequence[Sequence[int]], blank: int) -> list[float]:
    """Return log p of each sequence of labels under log-probabilities `frames` (frames, labels)."""
    import torch

    longest = max([1, *map(len, labels)])
    targets = torch.tensor([[*row, *[blank] * (longest - len(row))] for row in labels])
    count = len(labels)
    losses = torch.nn.functional.ctc_loss(
        frames[:, None].expand(-1, count, -1),
        targets,
        torch.full((count,), len(frames)),
        torch.tensor([len(row) for row in labels]),
        blank=blank,
        reduction="none",
    )
    least = float(frames.min(-1).values.sum())
    return [least if value == float("inf") else -value for value in losses.tolist()]
