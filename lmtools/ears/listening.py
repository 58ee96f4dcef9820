"""Ears: recognisers that say how probable any text is, given the sound.

An ear goes to worker processes before it is loaded there. `score` gives, for each text, the natural
log-probability with the end, where the recogniser has one, and the tokens that it sums over.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from lmtools.base.doors import open_door
from lmtools.base.errors import UserError

RULES = "1"  # part of the signature: raised when equal texts get other scores


class Heard(NamedTuple):
    """The log-probability of a text given the sound, and the tokens it sums over."""

    log_prob: float
    tokens: int


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
        self.recogniser = self.recogniser.load()
        return self

    def score(self, texts: Sequence[str], samples: np.ndarray) -> list[Heard]:
        model = self.recogniser
        if len(samples) > model.longest * self.rate:
            raise UserError(
                f"{len(samples) / self.rate:.1f} s of sound: Whisper hears {model.longest} s at"
                " once; cut it (lists of `lmtools decode` are of shorter segments)"
            )
        encoded, _ = model.encode(samples)
        tokenizer = model.make_tokenizer(model.options.language, encoded)
        prompt = model.model.get_prompt(tokenizer, [], without_timestamps=True)
        tokens = [tokenizer.encode(f" {' '.join(text.split())}".rstrip()) for text in texts]
        values = model.forced.log_probs(np.asarray(encoded)[0], prompt, tokens)
        return [Heard(float(row.sum()), len(row)) for row in values]


EARS = {"whisper": WhisperEar}


def make_ear(spec: str, device: str = "cpu", opts: Sequence[str] = ()) -> Ear:
    """Return the ear that NAME:DIR means, not loaded; UserError where it is none."""
    name, _, directory = spec.partition(":")
    if name not in EARS or not directory:
        known = " or ".join(f"{known}:DIR" for known in EARS)
        raise UserError(f"--asr {spec}: no recogniser that scores texts is called so; give {known}")
    return EARS[name](directory, device, opts)


def listen(spec: str, device: str = "cpu") -> Ear:
    """Load the recogniser of a specification: `whisper:DIR`, a model of CTranslate2."""
    return make_ear(spec, device).load()
