"""A recogniser without a model for tests: what it hears is the number of samples, with
a full stop and without.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from lmtools import Hypothesis, UserError
from lmtools.base.options import check_options, option
from lmtools.decode import recognisers

RAISES, MUTE = 6_666, 6_667  # samples of an utterance at which it fails, or hears nothing


@dataclass(frozen=True)
class FakeOptions:
    """`seconds` an utterance; `kill`: number of samples at which the process ends."""

    depth: int = option(2, "hypotheses of a list", least=1)
    seconds: float = option(0.0, "that decoding takes")
    language: str = option("en", "that is heard")
    kill: int = option(1, "samples of the utterance that ends the process", least=0)

    def __post_init__(self):
        check_options(self)


@dataclass
class FakeRecogniser:
    """A directory with any file `model`; it notes in `heard` beside it what it decodes."""

    directory: str
    options: FakeOptions = field(default_factory=FakeOptions)
    device: str = "auto"
    rate = 16_000
    longest = 2

    def __post_init__(self):
        if not Path(self.directory, "model").is_file():
            raise UserError(f"{self.directory}: no model")

    def load(self):
        self.name = Path(self.directory, "model").read_text().strip()
        return self

    def decode(self, samples):
        with open(f"{self.directory}.heard", "a") as heard:
            heard.write(f"{len(samples)}\n")
        if len(samples) == self.options.kill:
            os.kill(os.getpid(), 9)
        if len(samples) == RAISES:
            raise RuntimeError("no such sound")
        time.sleep(self.options.seconds)
        loud = float(np.abs(samples).sum())
        return [
            Hypothesis(
                f"{self.name} {len(samples)} {rank // 2}{'.' * (rank % 2)}",
                {"am": round(loud - rank, 4)},
            )
            for rank in range(0 if len(samples) == MUTE else self.options.depth)
        ]

    def listen(self, samples):
        """Two segments a window of two seconds."""
        for start in range(0, len(samples) // self.rate, self.longest):
            window = samples[start * self.rate : (start + self.longest) * self.rate]
            hyps = self.decode(window)
            parts = [
                SimpleNamespace(start=start + at, end=start + at + 1, hyps=hyps) for at in (0, 1)
            ]
            marks = {"no_speech_prob": 0.25}
            yield SimpleNamespace(
                start=start, end=start + 2, segments=parts[: len(hyps)], marks=marks
            )


def install() -> None:
    """Make `fake:DIR` a recogniser of this process."""
    recognisers.RECOGNISERS["fake"] = recognisers.RecogniserKind(
        FakeRecogniser, FakeOptions, ("soundfile",)
    )
