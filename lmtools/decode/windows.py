"""Recordings of any length: Whisper's windows as the sound comes, in constant memory, each with
its segments and their alternatives (segments.py).

What is heard is what faster-whisper's `transcribe` hears with the same beam: where a window begins,
what it knows of the words before, what counts as silence, what is decoded again at a higher
temperature, and features that are as loud as in the whole recording; with `vad` what it hears with
its `vad_filter`. Segments that would begin after the sound are left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmtools.decode.segments import SpokenSegment, WindowSearch, find_segments
from lmtools.decode.silence import SpokenSound, find_answer, is_silent
from lmtools.decode.whisper import HOP, LONGEST, MARGIN, Whisper, WhisperOptions

STEP = 2  # steps of HOP samples between two tokens of time
CONTEXT = 223  # tokens of the words before that a window knows
SILENT = {"avg_logprob": 0.0, "no_speech_prob": 1.0, "compression_ratio": 0.0, "temperature": 0.0}
FORGET = 0.5  # temperature beyond which the next window is not told of a text


@dataclass
class Window:
    """Sound from `start` to `end` seconds, where the next window begins, and its segments, none
    where nothing is heard.

    `marks` are avg_logprob, no_speech_prob, compression_ratio and temperature, as faster-whisper
    has them, and language_prob; `state` is what `decode_recording` goes on from, None after the
    last; `samples` begin at `start`, without pauses.
    """

    start: float
    end: float
    segments: list[SpokenSegment]
    marks: Mapping[str, float]
    language: str
    state: dict | None
    search: WindowSearch | None = None
    samples: np.ndarray | None = None

    def word_times(
        self, segment: SpokenSegment, text: str
    ) -> list[tuple[str, float, float, float]]:
        """Return (word, start, end, probability) of each word of `text`, an alternative of one of
        the segments, in seconds of the recording.
        """
        return self.search.word_times(segment, text) if self.search else []

    def sound_of(self, segment: SpokenSegment) -> np.ndarray:
        """Return the samples of a segment, at the rate of the model."""
        part = self.search.parts[segment.place]
        last = min(part.end * STEP, self.search.steps)
        return self.samples[part.start * STEP * HOP : last * HOP]


class Sound:
    """Samples that come in blocks, of which a window is held, and MARGIN `before` it."""

    def __init__(self, blocks: Iterable[np.ndarray], most: int):
        self.blocks, self.most = iter(blocks), most + MARGIN
        self.held = self.before = np.zeros(0, dtype=np.float32)

    def peek(self) -> np.ndarray:
        """Return the next samples, as many as a window has and MARGIN, fewer at the end."""
        parts, size = [self.held], len(self.held)
        while size < self.most and (block := next(self.blocks, None)) is not None:
            parts.append(np.asarray(block, dtype=np.float32))
            size += len(block)
        self.held = np.concatenate(parts)
        return self.held[: self.most]

    def skip(self, samples: int) -> None:
        """Leave out the next samples."""
        while samples > 0 and len(self.peek()):
            self.before = np.concatenate([self.before, self.held[:samples]])[-MARGIN:]
            samples, self.held = samples - len(self.held), self.held[samples:]


def find_loudest(model: Whisper, blocks: Iterable[np.ndarray]) -> float:
    """Return the greatest feature of a recording."""
    sound, loudest = Sound(blocks, LONGEST * model.rate), -np.inf
    while len(samples := sound.peek()) >= HOP:
        loudest = max(loudest, float(model.find_features(samples, sound.before).max()))
        sound.skip(LONGEST * model.rate)
    return loudest


def decode_recording(
    model: Whisper,
    blocks: Iterable[np.ndarray],
    options: WhisperOptions | None = None,
    state: Mapping | None = None,
    prompt: str | None = None,
) -> Iterator[Window]:
    """Yield the windows of a recording in order of time; `blocks` are its samples (N,) float32 in
    [-1, 1] at the model's rate, from its beginning. They are read twice, the first time for the
    loudest sound; of an iterator, which ends, the loudest so far is taken.

    `state` is that of the last window that an earlier call yielded: the rest is the same then.
    `prompt` are words that go before the first window.
    """
    options = options or model.options
    spoken = SpokenSound(blocks, options.vad)
    if state is None:
        told = model.make_tokenizer("en", None).encode(" " + prompt.strip()) if prompt else []
        loudest = -np.inf if isinstance(blocks, Iterator) else find_loudest(model, spoken)
        state = {"at": 0, "told": told, "language": options.language, "loudest": loudest}
    sound = Sound(spoken, LONGEST * model.rate)
    sound.skip(state["at"] * HOP)
    while len(samples := sound.peek()) >= HOP:
        features = model.find_features(samples, sound.before)
        window = hear_window(model, features, options, state, time=spoken.time)
        sound.skip((window.state["at"] - state["at"]) * HOP)
        state, window.samples = window.state, samples
        if len(sound.peek()) < HOP:
            window.end, window.state = spoken.total / model.rate, None
        yield window
    if not state["at"]:  # nobody speaks
        end, language = spoken.total / model.rate, state["language"]
        yield Window(0.0, end, [], dict(SILENT), language=language, state=None)


def hear_window(
    model: Whisper, features: np.ndarray, options: WhisperOptions, state: Mapping, time
) -> Window:
    """Return the window of these features, which begins at `state`."""
    steps, loudest = features.shape[1], max(state["loudest"], float(features.max()))
    encoded = model.encode_features(features, loudest)
    tokenizer = model.make_tokenizer(state["language"], encoded)
    language = tokenizer.language_code
    asked = model.model.get_prompt(tokenizer, list(state["told"])[-CONTEXT:])
    result = model.generate([asked], encoded, tokenizer, options.window)[0]
    answer, marks = find_answer(
        model, result, encoded, asked, tokenizer=tokenizer, seed=state["at"]
    )
    own, *others = map(list, answer.sequences_ids)
    if is_silent(marks):
        own, others = [], []
    elif heard := model.hear_languages(encoded):
        marks["language_prob"] = heard.get(language, 0.0)
    parts, ahead = cut_tokens(own, steps, tokenizer)
    search = WindowSearch(
        model, tokenizer, encoded,
        prompt=asked, tokens=own, parts=parts, at=state["at"], steps=steps, time=time,
    )  # fmt: skip
    others = others if answer is result else []
    segments = find_segments(search, others, marks["no_speech_prob"], options.depth)
    told = [*state["told"], *(t for part in search.parts for t in own[part.begin : part.stop])]
    told = [] if marks["temperature"] > FORGET else told[-CONTEXT:]
    after = {"at": state["at"] + ahead, "told": told, "language": language, "loudest": loudest}
    start, end = (one["at"] * HOP / model.rate for one in (state, after))
    times = time(start), time(end, end=True)
    return Window(*times, segments, marks, language=language, state=after, search=search)


@dataclass(frozen=True)
class TimedPart:
    """Tokens `begin` to `stop` of a window, said between `start` and `end` tokens of time."""

    start: int
    end: int
    begin: int
    stop: int


def cut_tokens(tokens: Sequence[int], steps: int, tokenizer) -> tuple[list[TimedPart], int]:
    """Return the parts of a window's tokens between tokens of time, and the steps to the next
    window: what follows two tokens of time in a row is begun anew in it, unless the last token
    alone is one.
    """
    first = tokenizer.timestamp_begin
    timed = [token >= first for token in tokens]
    cuts = [at for at in range(1, len(tokens)) if timed[at - 1] and timed[at]]
    if not cuts:
        times = [token - first for token in tokens if token > first]
        part = TimedPart(0, times[-1] if times else steps // STEP, 0, len(tokens))
        return [part] if tokens else [], steps
    whole = timed[-2:] == [False, True]
    cuts += [len(tokens)] if whole else []
    bounds = zip([0, *cuts], cuts, strict=False)
    parts = [TimedPart(tokens[a] - first, tokens[b - 1] - first, a, b) for a, b in bounds]
    ahead = steps if whole else (tokens[cuts[-1] - 1] - first) * STEP
    return parts, ahead if 0 < ahead < steps else steps


class Listener(Whisper):
    """Whisper that hears recordings of any length."""

    def listen(self, samples: np.ndarray) -> Iterator[Window]:
        return decode_recording(self, [samples])
