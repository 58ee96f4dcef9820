"""Ears: recognisers that say how probable any text is, given the sound.

An ear goes to worker processes before it is loaded there. `score` gives, for each text, the natural
log-probability with the end, where the recogniser has one, and the tokens that it sums over.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from lmtools.base.doors import open_door
from lmtools.base.errors import UserError
from lmtools.ears.ctc import CtcEar, Heard

RULES = "1"  # part of the signature: raised when equal texts get other scores
HOP = 160  # samples a frame of Whisper's features


class Ear(Protocol):
    """A recogniser in a `directory`; `rate`: samples a second that it takes."""

    directory: str
    rate: int

    @property
    def signature(self) -> dict[str, str]:
        """What its scores depend on."""

    def load(self) -> "Ear":
        """Return itself, able to score."""

    def score(self, texts: Sequence[str], samples: np.ndarray) -> list[Heard]:
        """Return what `samples` (N,) float32 in [-1, 1] give each text; UserError for more sound
        than the recogniser hears at once, and a text of too many tokens.
        """


class WhisperEar:
    """Whisper as `lmtools decode` has it: sums of log-probabilities of the tokens and the end among
    those that its search may take, the first window's prompt before them.
    """

    rate = 16_000

    def __init__(self, directory: str, device: str = "cpu", opts: Sequence[str] = ()):
        self.directory = directory
        make = open_door("decode", "recognisers:make_recogniser", "--asr")
        self.recogniser = make(f"whisper:{directory}", opts, device)

    @cached_property
    def signature(self) -> dict[str, str]:
        sign = open_door("decode", "recognisers:sign_recogniser", "--asr")
        signed = sign(f"whisper:{self.directory}", self.recogniser)
        language = self.recogniser.options.language
        return {"ear": "whisper", "rules": RULES, "model": signed["model"], "language": language}

    def load(self) -> "WhisperEar":
        from faster_whisper.tokenizer import Tokenizer
        from faster_whisper.transcribe import get_suppressed_tokens

        self.model = model = self.recogniser.load().model
        language = self.recogniser.options.language
        names = {"task": "transcribe", "language": "en" if language == "auto" else language}
        self.tokenizer = tokenizer = Tokenizer(
            model.hf_tokenizer, model.model.is_multilingual, **names
        )
        config = json.loads(Path(self.directory, "config.json").read_text(encoding="utf-8"))
        forced = open_door("decode", "forced:Forced", "--asr")
        self.decoder = forced(
            self.directory,
            get_suppressed_tokens(tokenizer, (-1,)),
            config.get("suppress_ids_begin", ()),
            tokenizer.eot,
        )
        return self

    def score(self, texts: Sequence[str], samples: np.ndarray) -> list[Heard]:
        longest = self.recogniser.longest
        if len(samples) > longest * self.rate:
            raise UserError(
                f"{len(samples) / self.rate:.1f} s of sound: Whisper hears {longest} s at once; cut"
                " it (lists of `lmtools decode` are of shorter segments)"
            )
        encoded = self.encode(samples)
        prompt = self.prompt(encoded)
        tokens = [self.tokenizer.encode(f" {' '.join(text.split())}".rstrip()) for text in texts]
        values = self.decoder.log_probs(np.asarray(encoded)[0], prompt, tokens)
        return [Heard(float(row.sum()), len(row)) for row in values]

    def encode(self, samples: np.ndarray):
        """Return the encoded window, as `decode` hears it: features of what follows are 0."""
        features = self.model.feature_extractor(samples)[:, : len(samples) // HOP]
        window = np.zeros((len(features), self.recogniser.longest * self.rate // HOP), np.float32)
        kept = min(features.shape[1], window.shape[1])
        window[:, :kept] = features[:, :kept]
        return self.model.encode(window)

    def prompt(self, encoded) -> list[int]:
        """Return the tokens that a text is behind."""
        if self.recogniser.options.language == "auto" and self.model.model.is_multilingual:
            language = self.model.model.detect_language(encoded)[0][0][0]
            self.tokenizer.language = self.tokenizer.tokenizer.token_to_id(language)
        return [*self.tokenizer.sot_sequence, self.tokenizer.no_timestamps]


EARS = {"whisper": WhisperEar, "ctc": CtcEar}


def make_ear(spec: str, device: str = "cpu", opts: Sequence[str] = ()) -> Ear:
    """Return the ear that NAME:DIR means, not loaded; UserError where it is none."""
    name, _, directory = spec.partition(":")
    if name not in EARS or not directory:
        known = " or ".join(f"{known}:DIR" for known in EARS)
        raise UserError(f"--asr {spec}: no recogniser that scores texts is called so; give {known}")
    return EARS[name](directory, device, opts)


def listen(spec: str, device: str = "cpu") -> Ear:
    """Load the recogniser of a specification: `whisper:DIR`, a model of CTranslate2, or `ctc:DIR`,
    one of Hugging Face with CTC.
    """
    return make_ear(spec, device).load()
