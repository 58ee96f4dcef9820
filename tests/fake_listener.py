"""A recogniser of recordings without a model, for tests: windows of ten seconds with two segments
each, whose alternatives a language model can choose among, and words with times.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

import fake_recogniser
import numpy as np

from lmtools import Hypothesis
from lmtools.decode import recognisers
from lmtools.ears.listening import Heard
from lmtools.transcribe import transcriber

# the command line with this recogniser
SCRIPT = (
    "import fake_listener, sys; fake_listener.install(); from lmtools.cli import main;"
    " sys.exit(main(sys.argv[1:]))"
)
SPAN = 10  # seconds of a window
FIRST, SECOND = (
    ("We see the sea.", "we see the see"),
    ("A blue finch, it sings.", "a blue fins sings"),
)


@dataclass
class FakeSegment:
    start: float
    end: float
    hyps: list


@dataclass
class FakeWindow:
    start: float
    end: float
    segments: list
    state: dict | None
    marks: dict = field(default_factory=lambda: {"avg_logprob": -0.25, "no_speech_prob": 0.1})
    language = "en"

    def word_times(self, segment, text):
        words = text.split()
        step = (segment.end - segment.start) / len(words)
        for place, word in enumerate(words):
            start = segment.start + place * step
            yield word, start, start + 0.9 * step, 0.5

    def sound_of(self, segment):
        return np.full(round(16_000 * (segment.end - segment.start)), 0.5, np.float32)


class FakeEar:
    """Hears the first texts of the fake windows, and half the loudest sound."""

    rate, signature = 16_000, {"ear": "fake"}

    def __init__(self, *_):
        self.asked = []

    def load(self):
        return self

    def score(self, texts, samples):
        assert set(samples) == {0.5}
        self.asked.append((texts, len(samples)))
        return [Heard(-20.0 * ("sea." in text or "finch" in text), 4) for text in texts]


def listen(recogniser, blocks, language=None, prompt=None, state=None):
    """Windows of as much sound as comes; the process ends at window $KILL_AT, once each."""
    seek = (state or {"seek": 0})["seek"]
    seconds = sum(map(len, blocks)) / 16_000
    while seek < seconds:
        place = Path(os.environ.get("KILL_AT", "none"))
        if place.is_file() and seek >= float(place.read_text()):
            place.unlink()
            os.kill(os.getpid(), 9)
        end = min(seek + SPAN, seconds)
        half = (seek + end) / 2
        segments = []
        for start, texts, stop in ((seek, FIRST, half), (half, SECOND, end)):
            hyps = [Hypothesis(text, {"am": -1.0 - 0.1 * n}) for n, text in enumerate(texts[::-1])]
            segments.append(FakeSegment(start, stop, hyps))
        seek = end
        yield FakeWindow(end - SPAN, end, segments, {"seek": seek} if seek < seconds else None)


def install() -> None:
    """Make `whisper:DIR` a recogniser of this process that listens so."""
    recognisers.RECOGNISERS["whisper"] = recognisers.RecogniserKind(
        fake_recogniser.FakeRecogniser, fake_recogniser.FakeOptions, ("soundfile",)
    )
    transcriber.listen = listen
