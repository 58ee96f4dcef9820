"""Whisper by faster-whisper and CTranslate2: its own answer first, and behind it what wider beams
find beside it; equal words are merged, the windows of a recording combined.

Radford et al. 2023, Robust Speech Recognition via Large-Scale Weak Supervision.
"""

import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.options import check_options, option
from lmtools.text.normaliser import NORMALISERS
from lmtools.types import Hypothesis

LONGEST = 30  # seconds that the encoder takes
DIGITS = 4  # of scores
FILES = ("model.bin", "config.json", "tokenizer.json")
WORDS = NORMALISERS["librispeech"]  # what tells words apart: neither case nor punctuation
WIDEST = 80  # beam up to which the search goes on until hypotheses are `depth`
WIDER = 4  # times the beam before, where one did not find enough
STEP = 0.02  # seconds between two tokens of time
CLOSE = 25  # steps by which hypotheses of the same sound may differ in their end


@dataclass(frozen=True)
class WhisperOptions:
    """Options of Whisper, which `--opts` sets."""

    beam: int = option(20, "width of the search for the first hypothesis", least=1)
    depth: int = option(20, "most hypotheses of a list, all with different words", least=1)
    language: str = option("en", "code of the spoken language, or auto to detect it")

    def __post_init__(self):
        check_options(self)


class Candidate(NamedTuple):
    """A text, the sum of the log-probabilities of its tokens and the end, and their number."""

    text: str
    am: float
    length: int

    @property
    def avg(self) -> float:
        return self.am / max(self.length, 1)


NOTHING = Candidate("", 0.0, 0)


@dataclass
class Window:
    """Up to LONGEST seconds: `candidates`, the first of which is the answer, and what
    faster-whisper takes of that.
    """

    candidates: list[Candidate]
    no_speech: float
    answer: list[str] = field(default_factory=list)

    def heard(self) -> list[Candidate]:
        """Return the candidates; silence alone, as probable as it is that nobody speaks, where
        faster-whisper takes no word of them.
        """
        if not (text := "".join(self.answer)).strip():
            return [Candidate("", math.log(max(self.no_speech, 1e-10)), 0)]
        return [self.candidates[0]._replace(text=text), *self.candidates[1:]]


@dataclass
class Whisper:
    """A model that CTranslate2 wrote: DIR with model.bin, config.json and tokenizer.json.

    The first hypothesis is what faster-whisper's `transcribe` answers with the same beam at
    temperature 0. `am` of a hypothesis is the sum of the log-probabilities of its tokens and the
    end among all tokens that may come, `avg` that a token, `length` their number, `nospeech` the
    probability that nobody speaks (of several windows, the least).
    """

    directory: str
    options: WhisperOptions = field(default_factory=WhisperOptions)
    device: str = "auto"
    rate = 16_000
    longest = LONGEST

    def __post_init__(self):
        for name in FILES:
            if not Path(self.directory, name).is_file():
                raise UserError(
                    f"{self.directory}: no {name}; give a Whisper model of CTranslate2"
                    " (utils/install_asr.sh fetches one)"
                )
        most = max(self.options.beam, WIDEST)
        if self.options.depth > most:
            raise UserError(
                f"--opts depth={self.options.depth}: more than a beam of {most} holds; raise"
                " beam too"
            )

    def load(self) -> "Whisper":
        from faster_whisper import WhisperModel
        from tqdm import tqdm

        # its own lock has a semaphore, which a worker that is ended leaves behind with a warning
        tqdm.set_lock(threading.RLock())
        device, _, index = self.device.partition(":")
        try:
            self.model = WhisperModel(
                self.directory,
                device=device,
                device_index=int(index or 0),
                compute_type="int8",
                cpu_threads=1,  # more processes are faster, and leave the last digits alone
                local_files_only=True,
            )
        # whatever CTranslate2, tokenizers and JSON find wrong
        except Exception as error:
            cause = " ".join(str(error).split())
            raise UserError(
                f"{self.directory}: cannot load the model ({cause}); fetch it again"
                " (utils/install_asr.sh does, once the directory is gone)"
            ) from None
        self.check_tokens()
        return self

    def check_tokens(self) -> None:
        """Raise UserError for a language or a token that the model lacks."""
        known = self.model.supported_languages
        language = self.options.language
        if language != "auto" and language not in known:
            has = "knows English alone" if known == ["en"] else "has no such language"
            raise UserError(
                f"--opts language={language}: {self.directory} {has}; give a code as en or de, or"
                " leave language out"
            )
        # by these the search is begun and ended
        names = ["<|startoftranscript|>", "<|notimestamps|>", "<|endoftext|>"]
        if self.model.model.is_multilingual:
            names += ["<|transcribe|>", f"<|{'en' if language == 'auto' else language}|>"]
        for name in names:
            if self.model.hf_tokenizer.token_to_id(name) is None:
                raise UserError(
                    f"{self.directory}/tokenizer.json: has no token {name}; fetch the model again"
                )
        self.first_time = self.model.hf_tokenizer.token_to_id("<|notimestamps|>") + 1

    def decode(self, samples: np.ndarray) -> list[Hypothesis]:
        """Return the hypotheses of samples (N,), faster-whisper's answer first, others by `avg`."""
        windows = self.listen(samples)
        no_speech = min((window.no_speech for window in windows), default=1.0)
        hyps = []
        for one in combine_windows((window.heard() for window in windows), self.options.depth):
            scores = {"am": one.am, "avg": one.avg, "nospeech": no_speech, "length": one.length}
            rounded = {name: round(score, DIGITS) for name, score in scores.items()}
            hyps.append(Hypothesis(" ".join(one.text.split()), rounded))
        return hyps

    def listen(self, samples: np.ndarray) -> list[Window]:
        """Return the windows that faster-whisper cuts and what is heard in each.

        It calls our search in place of its own and goes on from our first candidate, so that where
        windows begin, what they know of the words before, and what counts as silence is its
        decision.
        """
        settings = self.options
        windows: list[Window] = []

        def search(encoded, prompt, tokenizer, options):
            window, result = self.search(encoded, prompt, options)
            windows.append(window)
            # what it makes of its own result: average, temperature, compression
            return result, average_log_prob(result), 0.0, 1.0

        self.model.generate_with_fallback = search
        segments, _ = self.model.transcribe(
            samples,
            language=None if settings.language == "auto" else settings.language,
            beam_size=settings.beam,
            temperature=0,
            without_timestamps=len(samples) <= LONGEST * self.rate,  # they end windows
        )
        for segment in segments:  # each is there before the next window is searched
            windows[-1].answer.append(segment.text)
        return windows

    def search(self, encoded, prompt: list[int], options) -> tuple[Window, object]:
        """Return a window and CTranslate2's result of the first beam, under faster-whisper's
        `options`; wider beams follow until there are `depth` candidates of different words, or
        none is new, but not where faster-whisper hears silence.
        """
        scores: dict[tuple[int, ...], float] = {}
        beam, distinct = self.options.beam, 0
        first = result = self.generate(encoded, prompt, options, beam)
        while True:
            scores |= {
                tuple(tokens): score
                for tokens, score in zip(result.sequences_ids, result.scores, strict=True)
                if tuple(tokens) not in scores
            }
            candidates = merge_equal(self.as_candidates(scores))
            spent = len(candidates) == distinct or beam >= WIDEST
            if spent or len(candidates) >= self.options.depth or is_silence(first, options):
                break
            distinct, beam = len(candidates), min(WIDER * beam, WIDEST)
            result = self.generate(encoded, prompt, options, beam)
        candidates = rank_rest(candidates)[: self.options.depth]
        return Window(candidates, first.no_speech_prob), first

    def generate(self, encoded, prompt: list[int], options, beam: int):
        """Return CTranslate2's result of a search that keeps all `beam` hypotheses."""
        return self.model.model.generate(
            encoded,
            [prompt],
            beam_size=beam,
            num_hypotheses=beam,
            length_penalty=options.length_penalty,
            max_length=self.model.max_length,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_blank=options.suppress_blank,
            suppress_tokens=options.suppress_tokens,
            max_initial_timestamp_index=round(options.max_initial_timestamp / STEP),
        )[0]

    def as_candidates(self, scores: dict[tuple[int, ...], float]) -> list[Candidate]:
        """Return candidates of tokens and their average scores, but for those that end their
        window elsewhere than the first does: what they lack, or have twice, is not in their scores.
        """
        decode = self.model.hf_tokenizer.decode
        end_of_text = self.model.hf_tokenizer.token_to_id("<|endoftext|>")
        ends = [find_end(tokens, self.first_time) for tokens in scores]
        candidates = []
        for (kept, end), (tokens, score) in zip(ends, scores.items(), strict=True):
            if (end is None) != (ends[0][1] is None) or abs((end or 0) - (ends[0][1] or 0)) > CLOSE:
                continue
            text = decode([token for token in tokens[:kept] if token < end_of_text])
            candidates.append(Candidate(text, score * len(tokens), len(tokens)))
        return candidates


def average_log_prob(result) -> float:
    """Return the log-probability a token of the first hypothesis, the end counted as one."""
    tokens = len(result.sequences_ids[0])
    return result.scores[0] * tokens / (tokens + 1)


def is_silence(result, options) -> bool:
    """Return whether faster-whisper drops the first hypothesis, by the thresholds of `options`."""
    return (
        result.no_speech_prob > options.no_speech_threshold
        and average_log_prob(result) <= options.log_prob_threshold
    )


def find_end(tokens: Sequence[int], first_time: int) -> tuple[int, int | None]:
    """Return how many of a window's tokens count, and at which token of time the next window
    begins, None: where this one ends.

    As Whisper has it: what follows two tokens of time in a row is begun anew in the next window,
    unless the last token alone is one.
    """
    timed = [token >= first_time for token in tokens]
    pairs = [place for place in range(1, len(tokens)) if timed[place - 1] and timed[place]]
    if not pairs or timed[-2:] == [False, True]:
        return len(tokens), None
    return pairs[-1], tokens[pairs[-1] - 1]


def merge_equal(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return those of different words, each as it is written first, in that order."""
    merged: dict[str, Candidate] = {}
    for candidate in candidates:
        merged.setdefault(WORDS(candidate.text), candidate)
    return list(merged.values())


def rank_rest(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the first, which is the recogniser's own answer, and the others by `avg`."""
    return [*candidates[:1], *sorted(candidates[1:], key=lambda other: -other.avg)]


def combine_windows(windows: Iterable[Sequence[Candidate]], depth: int) -> list[Candidate]:
    """Return at most `depth` combinations of the windows' candidates, the first ones' first."""
    whole = [NOTHING]
    for window in windows:
        pairs = [
            Candidate(f"{a.text} {b.text}", a.am + b.am, a.length + b.length)
            for a in whole
            for b in window
        ]
        whole = rank_rest(merge_equal(pairs))[:depth]
    return whole
