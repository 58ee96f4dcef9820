"""Recordings to transcripts: a recogniser's lists of segments, a second pass over each window of
them, and the times of the words that it chose; in one process, each model loaded once.
"""

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np

from lmtools.api.lm import LM
from lmtools.base.doors import HOME, open_door
from lmtools.base.errors import UserError, one_line
from lmtools.text.scripts import split_units
from lmtools.transcribe.second import WRITING, SecondPass, find_english, share_confidence
from lmtools.transcribe.timed import TimedText, TimedWord, find_changes
from lmtools.transcribe.transcript import Transcript
from lmtools.types import NBest

MODEL = "tools/asr/whisper-base"  # where utils/install_asr.sh puts it, in a checkout
WHISPER = "whisper:"
DIGITS = 3  # of times; of probabilities, one more


@dataclass(frozen=True)
class HeardWindow:
    """The finished segments of a window of sound that ends at `end` seconds; `state` is where the
    recogniser goes on, `fallback` why the second pass failed.
    """

    segments: tuple[TimedText, ...]
    end: float
    language: str
    state: dict | None
    fallback: str | None = None


class Transcriber:
    """A recogniser, language models and weights, loaded once, that turn recordings into
    transcripts; not for several threads at a time.

    `asr` is whisper:DIR, by default the model that utils/install_asr.sh fetched; `lm` are language
    models, each as `lmtools.load` takes it or NAME=LM, or loaded ones by name; by default the
    installed English 4-gram, if any, and without any the text is the recogniser's own. `weights`
    are those of `lmtools tune`, or their path, or default ones; `phrases` a glossary, as of
    `lmtools.rescore`; `ear` a second recogniser, as of `lmtools.listen`, or a loaded one, whose
    scores of the alternatives are the column `ear`. UserError for what cannot be loaded, or does
    not fit.
    """

    def __init__(
        self,
        asr: str | None = None,
        lm: Sequence[str] | Mapping[str, LM] | None = None,
        weights=None,
        phrases=None,
        *,
        opts: Sequence[str] = (),
        device: str = "auto",
        normaliser: str = WRITING,
        ear=None,
    ):
        self.asr = find_asr(asr)
        make = open_door("decode", "recognisers:make_recogniser", "transcribe")
        recogniser = make(self.asr, opts, device)
        self.english = lm is None  # a model that no other language is for
        lm = find_english() if self.english else lm
        if isinstance(ear, str):
            ear = open_door("ears", "listening:listen", "--ear")(ear, device)
        if ear is not None and ear.rate != recogniser.rate:
            raise UserError(f"--ear: hears {ear.rate} Hz, not {recogniser.rate}; give another")
        self.second = SecondPass(lm, weights, phrases, normaliser, ear=ear)
        self.recogniser = recogniser.load()
        sign = open_door("decode", "recognisers:sign_recogniser", "transcribe")
        self.sign = partial(sign, self.asr, recogniser)

    @functools.cached_property
    def signature(self) -> dict:
        """Return what transcripts depend on beside the sound."""
        return {"recogniser": self.sign(), "second": self.second.signature}

    def transcribe(
        self,
        source: str | os.PathLike | bytes,
        *,
        language: str | None = None,
        prompt: str | None = None,
        temperature: float | None = None,
        progress: Callable[[float, float | None], object] | None = None,
        heard: Callable[[str], object] | None = None,
    ) -> Transcript:
        """Return the transcript of a file, its bytes, or an open binary file.

        `language` is the code of another language than the recogniser's option says, or auto;
        `prompt` are words that go before, or the name of a session or speaker whose phrases the
        glossary has. `temperature` is taken and has no effect: the search is no sampling.
        `progress` is called with the seconds that are done and those of the whole, None where the
        file does not say; what it raises ends the work. `heard` is called with the text of each
        window that has some. UserError for what is no sound.
        """
        if isinstance(source, bytes):
            source = BytesIO(source)
        where = str(source) if isinstance(source, str | os.PathLike) else "the recording"
        source = os.fspath(source) if isinstance(source, os.PathLike) else source
        whole = None
        if progress is not None:
            whole = open_door("decode", "audio:measure_sound", "transcribe")(source, where) or None
        windows = []
        for window in self.hear(source, where, language=language, prompt=prompt):
            windows.append(window)
            if progress is not None:
                progress(window.end, whole)
            if heard is not None and window.segments:
                heard(" ".join(segment.text for segment in window.segments))
        return join_windows(windows, self.recogniser.options.language)

    def hear(
        self,
        source,
        where: str,
        name: str = "recording",
        language: str | None = None,
        prompt: str | None = None,
        state: dict | None = None,
    ) -> Iterator[HeardWindow]:
        """Yield the windows of a recording called `name` as they are finished, those after `state`
        alone.
        """
        if self.second.names_session(prompt):
            name, prompt = prompt, None
        stream = open_door("decode", "audio:SoundStream", "transcribe")
        blocks = stream(source, self.recogniser.rate, where)
        blocks = blocks if blocks.again else iter(blocks)
        for window in listen(
            self.recogniser, blocks, language=language, prompt=prompt, state=state
        ):
            yield self.finish(window, name)

    def finish(self, window, name: str) -> HeardWindow:
        """Choose among the alternatives of a window's segments, and find the times of words."""
        segments, fallback = window.segments, None
        texts = ()
        if self.second.active and segments and (not self.english or window.language == "en"):
            ids = (f"{name}-{round(100 * one.start):07}" for one in segments)
            lists = [NBest(utt, one.hyps) for utt, one in zip(ids, segments, strict=True)]
            try:
                sounds = [window.sound_of(one) for one in segments] if self.second.ear else ()
                pairs = zip(segments, self.second.choose(lists, sounds), strict=True)
                texts = tuple(self.write_segment(window, one, best) for one, best in pairs)
            except Exception as error:  # whatever is wrong with it, the first pass is there
                fallback = one_line(error)
        texts = texts or tuple(self.write_segment(window, one, None) for one in segments)
        return HeardWindow(texts, window.end, window.language, window.state, fallback=fallback)

    def write_segment(self, window, segment, best: NBest | None) -> TimedText:
        """Return a segment with the text of the best hypothesis of its list, the recogniser's own
        where nothing was chosen.
        """
        first = segment.hyps[0].display
        text = first if best is None else best.hyps[0].display
        words = list(self.mark_words(list(window.word_times(segment, text)), first, best))
        marks = {name: round(float(value), DIGITS + 1) for name, value in window.marks.items()}
        times = (round(float(time), DIGITS) for time in (segment.start, segment.end))
        return TimedText(*times, text=text, first=first, words=words, marks=marks)

    def mark_words(self, timed: list[tuple], first: str, best: NBest | None) -> Iterator[TimedWord]:
        """Yield words (word, start, end, probability) with what the second pass says of them."""
        normalise = self.second.normalise
        spoken = [split_units(normalise(word)) for word, *_ in timed]
        flat = [word for some in spoken for word in some]
        changes = list(find_changes(split_units(normalise(first)), flat))
        shares = share_confidence(best) if best is not None else []
        shares = shares if [word for word, _ in shares] == flat else []
        at = 0
        for (word, start, end, probability), some in zip(timed, spoken, strict=True):
            part = slice(at, at := at + len(some))
            confidence = min((share for _, share in shares[part]), default=None)
            yield TimedWord(
                start=round(float(start), DIGITS),
                end=round(float(end), DIGITS),
                word=word,
                probability=round(probability, DIGITS + 1),
                changed=any(changes[part]),
                confidence=confidence if confidence is None else round(confidence, DIGITS + 1),
            )


def find_asr(asr: str | None) -> str:
    """Return the recogniser, by default Whisper where utils/install_asr.sh puts it; UserError where
    it is not there, and for another kind of recogniser.
    """
    if asr is None:
        places = [place for place in (Path(MODEL), HOME.parent / MODEL) if place.is_dir()]
        if not places:
            raise UserError(
                "--asr: no recogniser in tools/asr; fetch one with utils/install_asr.sh, or give"
                " whisper:DIR"
            )
        return f"{WHISPER}{places[0]}"
    if not asr.startswith(WHISPER):
        raise UserError(f"--asr {asr}: has no segments of recordings; give whisper:DIR")
    return asr


def join_windows(windows: Sequence[HeardWindow], language: str) -> Transcript:
    """Return the transcript of a recording's windows; of none, too short, in `language`."""
    return Transcript(
        language=windows[0].language if windows else language,
        duration=round(windows[-1].end, DIGITS) if windows else 0.0,
        segments=tuple(segment for window in windows for segment in window.segments),
        fallback=next((window.fallback for window in windows if window.fallback), None),
    )


def listen(recogniser, blocks: Iterable[np.ndarray], language, prompt, state) -> Iterator:
    """Yield the windows of a recording, each with its segments and their alternatives."""
    options, known = recogniser.options, recogniser.model.supported_languages
    if language is not None and language not in (*known, "auto"):
        raise UserError(f"language {language}: the model knows {', '.join(known)}, or auto")
    options = options if language is None else replace(options, language=language)
    decode = open_door("decode", "windows:decode_recording", "transcribe")
    yield from decode(recogniser, blocks, options, state=state, prompt=prompt)
