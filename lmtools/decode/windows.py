"""Recordings of any length: Whisper's windows as the sound comes, in constant memory, each with
its segments and their alternatives (segments.py).

What is heard is what faster-whisper's `transcribe` hears with the same beam: where a window begins,
what it knows of the words before, what counts as silence, what is decoded again at a higher
temperature, and features that are as loud as in the whole recording.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from lmtools.decode.segments import SpokenSegment, WindowSearch, find_segments
from lmtools.decode.whisper import (
    HOP,
    LOG_PROB,
    LONGEST,
    MARGIN,
    NO_SPEECH,
    Whisper,
    WhisperOptions,
    average_log_prob,
    find_suppressed,
    is_silence,
)

STEP = 2  # steps of HOP samples between two tokens of time
CONTEXT = 223  # tokens of the words before that a window knows
TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0)  # of the samples that are drawn where a search failed
SAMPLES = 5
REPEATED = 2.4  # ratio of compression beyond which a text repeats itself
FORGET = 0.5  # temperature beyond which the next window is not told of a text


@dataclass
class Window:
    """Sound from `start` to `end` seconds, where the next window begins, and its segments, none
    where nothing is heard.

    `marks` are avg_logprob, no_speech_prob, compression_ratio and temperature, as faster-whisper
    has them; `state` is what `decode_recording` goes on from, None after the last; `samples` begin
    at `start`.
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
        rate = self.search.model.rate
        first, last = (
            max(round((time - self.start) * rate), 0) for time in (segment.start, segment.end)
        )
        return self.samples[first:last]


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
    at, told, language, loudest = 0, [], options.language, -np.inf
    if state is not None:
        at, told, language = state["at"], list(state["told"]), state["language"]
        loudest = state["loudest"]
    elif not isinstance(blocks, Iterator):
        loudest = find_loudest(model, blocks)
    sound = Sound(blocks, LONGEST * model.rate)
    sound.skip(at * HOP)
    while len(samples := sound.peek()) >= HOP:
        features = model.find_features(samples, sound.before)
        steps, loudest = features.shape[1], max(loudest, float(features.max()))
        encoded = model.encode_features(features, loudest)
        tokenizer = model.make_tokenizer(language, encoded)
        if at == 0 and prompt:
            told = tokenizer.encode(" " + prompt.strip())
        language = tokenizer.language_code
        asked = model.model.get_prompt(tokenizer, told[-CONTEXT:])
        tokens, others, marks = search(
            model, encoded, asked, tokenizer, beam=options.window, seed=at
        )
        parts, ahead = cut_tokens(tokens, steps, tokenizer)
        found = WindowSearch(
            model, tokenizer, encoded,
            prompt=asked, tokens=tokens, parts=parts, at=at, steps=steps,
        )  # fmt: skip
        segments = find_segments(found, others, marks["no_speech_prob"], options.depth)
        told = [*told, *(t for part in found.parts for t in tokens[part.begin : part.stop])]
        if marks["temperature"] > FORGET:
            told = []
        told, at = told[-CONTEXT:], at + ahead
        sound.skip(ahead * HOP)
        rest = len(sound.peek()) >= HOP
        after = {"at": at, "told": told, "language": language, "loudest": loudest}
        yield Window(
            start=(at - ahead) * HOP / model.rate,
            end=at * HOP / model.rate,
            segments=segments,
            marks=marks,
            language=language,
            state=after if rest else None,
            search=found,
            samples=samples,
        )


def search(model: Whisper, encoded, prompt: list[int], tokenizer, beam: int, seed: int):
    """Return the tokens of a window, those of other hypotheses, and its marks.

    None are returned where it is silent. Where the text repeats itself or is improbable, samples
    are drawn, at higher temperatures until one is not, as faster-whisper does.
    """
    result = model.generate([prompt], encoded, tokenizer, beam)[0]
    own, *others = result.sequences_ids
    marks = mark(model, tokenizer, result, own)
    if is_silence(result):
        return [], [], marks
    if failed(marks):
        options = SimpleNamespace(
            temperatures=TEMPERATURES, best_of=SAMPLES, length_penalty=1, repetition_penalty=1,
            no_repeat_ngram_size=0, max_new_tokens=None, suppress_blank=True,
            suppress_tokens=find_suppressed(tokenizer), max_initial_timestamp=1.0,
            log_prob_threshold=LOG_PROB, no_speech_threshold=NO_SPEECH,
            compression_ratio_threshold=REPEATED,
        )  # fmt: skip
        sample, average, temperature, ratio = model.draw(
            encoded, prompt, tokenizer, options, seed=seed
        )
        again = {**marks, "avg_logprob": average, "compression_ratio": ratio}
        # the more probable, of those that do not repeat themselves if there are any
        best = max((marks, again), key=lambda one: (not repeats(one), one["avg_logprob"]))
        if not failed(again) or best is again:
            return list(sample.sequences_ids[0]), [], {**again, "temperature": temperature}
        marks["temperature"] = temperature
    return list(own), list(others), marks


def mark(model: Whisper, tokenizer, result, tokens: Sequence[int]) -> dict[str, float]:
    from faster_whisper.transcribe import get_compression_ratio

    text = tokenizer.decode(list(tokens)).strip()
    return {
        "avg_logprob": average_log_prob(result),
        "no_speech_prob": result.no_speech_prob,
        "compression_ratio": get_compression_ratio(text) if text else 0.0,
        "temperature": 0.0,
    }


def repeats(marks: Mapping[str, float]) -> bool:
    return marks["compression_ratio"] > REPEATED


def failed(marks: Mapping[str, float]) -> bool:
    """Return whether faster-whisper decodes a window again."""
    return repeats(marks) or marks["avg_logprob"] < LOG_PROB


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
