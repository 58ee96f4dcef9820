"""The recognisers by name, and what is asked of one."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from lmtools.base.errors import UserError, install_extra
from lmtools.base.files import sha256
from lmtools.base.grammar import parse_pairs
from lmtools.base.options import list_options, parse_option
from lmtools.decode.vosk import Vosk, VoskOptions
from lmtools.decode.whisper import WhisperOptions
from lmtools.decode.windows import Listener
from lmtools.types import Hypothesis

RULES = 5  # part of the signature: raised when equal options give other lists


class Recogniser(Protocol):
    """A model in `directory`, which goes to worker processes before it is loaded there.

    `rate`: samples a second that it takes; `longest`: seconds beyond which it cuts an utterance
    into segments, 0 for none.
    """

    directory: str
    options: object
    rate: int
    longest: ClassVar[int]

    def load(self) -> "Recogniser":
        """Return itself, able to decode."""

    def decode(self, samples: np.ndarray) -> list[Hypothesis]:
        """Return the hypotheses of samples (N,) float32 in [-1, 1], its own answer, as its users
        get it, first; a function of them alone.
        """

    def listen(self, samples: np.ndarray) -> Iterator:
        """Yield the windows (windows.py) of samples of more than `longest` seconds."""


class RecogniserKind(NamedTuple):
    """A recogniser's class, the dataclass of its options, and the packages that it needs."""

    make: type
    options: type
    packages: tuple[str, ...]


RECOGNISERS: dict[str, RecogniserKind] = {
    "whisper": RecogniserKind(
        Listener, WhisperOptions, ("soundfile", "faster-whisper", "ctranslate2")
    ),
    "vosk": RecogniserKind(Vosk, VoskOptions, ("soundfile", "vosk")),
}


def make_recogniser(spec: str, assignments: Sequence[str], device: str = "auto") -> Recogniser:
    """Return the recogniser that NAME:DIR means, with `key=value` options; UserError where it is
    none, its packages are not installed, or the directory holds no model of its kind.
    """
    name, _, directory = spec.partition(":")
    if name not in RECOGNISERS or not directory:
        raise UserError(
            f"--asr {spec}: no recogniser is called so; give"
            f" {' or '.join(f'{known}:DIR' for known in RECOGNISERS)}"
        )
    recogniser = RECOGNISERS[name].make(
        directory, parse_options(RECOGNISERS[name].options, assignments, name), device
    )
    find_versions(name)
    return recogniser


def parse_options(cls: type, assignments: Sequence[str], name: str):
    """Return a recogniser's options of `key=value` assignments; UserError, with those there are."""
    declared = list_options(cls)
    has = f"{name} has {', '.join(declared)}"
    values = parse_pairs(assignments, "--opts", "key=value", has)
    for key, value in values.items():
        if key not in declared:
            raise UserError(f"--opts {key}={value}: no option is called {key!r}; {has}")
    try:
        return cls(**{key: parse_option(cls, key, value) for key, value in values.items()})
    except UserError as error:
        raise UserError(f"--opts {error}") from None


def describe_options(cls: type) -> str:
    return "; ".join(
        f"{name}: {declared.help} ({'|'.join(declared.choices or [str(default)])})"
        for name, (_, default, declared) in list_options(cls).items()
    )


def find_versions(name: str) -> dict[str, str]:
    """Return the versions of a recogniser's packages; UserError for one that is not installed."""
    versions = {}
    for package in RECOGNISERS[name].packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            raise UserError(
                f"--asr {name}: package {package} is not installed; install it with"
                f" utils/install_asr.sh or {install_extra('asr')}"
            ) from None
    return versions


def sign_recogniser(spec: str, recogniser: Recogniser) -> dict:
    """Return the signature of a recogniser's lists: packages, options and its model's files."""
    model = Path(recogniser.directory)
    files = sorted(path for path in model.rglob("*") if path.is_file())
    parts = [[str(path.relative_to(model)), sha256(path)] for path in files]
    name = spec.partition(":")[0]
    return {
        "asr": name,
        "rules": RULES,
        "packages": find_versions(name),
        "options": vars(recogniser.options),
        "model": hashlib.sha256(json.dumps(parts).encode()).hexdigest(),
    }
