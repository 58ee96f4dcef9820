"""Whisper by faster-whisper and CTranslate2: its own answer first, and behind it what wider beams
find beside it.

Radford et al. 2023, Robust Speech Recognition via Large-Scale Weak Supervision.
"""

import re
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lmtools.base.errors import UserError
from lmtools.decode.beams import BeamSearch, Window, average_log_prob
from lmtools.decode.candidates import Candidate, combine_windows
from lmtools.decode.options import option
from lmtools.types import Hypothesis

LONGEST = 30  # seconds that the encoder takes
DIGITS = 4  # of scores
FILES = ("model.bin", "config.json", "tokenizer.json")
ALL = ".*"  # tokens


@dataclass(frozen=True)
class WhisperOptions:
    """Options of Whisper, which `--opts` sets."""

    beam: int = option(20, "hypotheses that the search for the first one keeps")
    depth: int = option(20, "hypotheses of a list, of different words")
    widest: int = option(80, "beam up to which the search goes on until they are `depth`")
    language: str = option("en", "code of the language that is spoken, auto to have it detected")
    timestamps: str = option(
        "auto",
        "tokens of time in the search: auto for recordings of more than 30 s alone, whose windows"
        " they end",
        ("auto", "yes", "no"),
    )
    mass: str = option(
        "no", "also the score `mass`: all that was merged into a hypothesis", ("no", "yes")
    )
    tokens: str = option(
        ALL,
        "regular expression of the tokens of text that may come; any but .* makes the first"
        " hypothesis worse (WER of test-other by Whisper base: 11 with all, 21 with"
        " ' ?[a-z]+|\\'[a-z]+')",
    )
    compute: str = option("int8", "CTranslate2's type of computation, as float32 or float16")


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
        most = max(self.options.beam, self.options.widest)
        if self.options.depth > most:
            raise UserError(
                f"--opts depth={self.options.depth}: more than a beam of {most} holds; raise widest"
                " too"
            )
        try:
            self.wanted = re.compile(self.options.tokens)
        except (re.error, RecursionError, OverflowError) as error:
            raise UserError(f"--opts tokens: no regular expression ({error}); mend it") from None

    def load(self) -> "Whisper":
        """Return itself, able to decode; UserError for a damaged model."""
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
                compute_type=self.options.compute,
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
        self.suppressed = [-1, *self.unwanted_tokens()]
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

    def unwanted_tokens(self) -> list[int]:
        """Return the tokens of text that `tokens` excludes; UserError where it excludes all."""
        if self.options.tokens == ALL:
            return []
        decode = self.model.hf_tokenizer.decode
        end = self.model.hf_tokenizer.token_to_id("<|endoftext|>")
        unwanted = [token for token in range(end) if not self.wanted.fullmatch(decode([token]))]
        if len(unwanted) == end:
            raise UserError(f"--opts tokens={self.options.tokens}: no token is so; correct it")
        return unwanted

    def decode(self, samples: np.ndarray) -> list[Hypothesis]:
        """Return the hypotheses of samples (N,), faster-whisper's answer first, others by `avg`."""
        windows = self.listen(samples)
        no_speech = min((window.no_speech for window in windows), default=1.0)
        heard = combine_windows((window.heard() for window in windows), self.options.depth)
        return [self.as_hypothesis(candidate, no_speech) for candidate in heard]

    def as_hypothesis(self, candidate: Candidate, no_speech: float) -> Hypothesis:
        """Return the candidate with the scores that lists have."""
        scores = {
            "am": candidate.am,
            "avg": candidate.avg,
            "nospeech": no_speech,
            "length": candidate.length,
        }
        if self.options.mass == "yes":
            scores["mass"] = candidate.mass
        text = " ".join(candidate.text.split())
        return Hypothesis(text, {name: round(score, DIGITS) for name, score in scores.items()})

    def listen(self, samples: np.ndarray) -> list[Window]:
        """Return the windows that faster-whisper cuts and what is heard in each.

        It calls our search in place of its own and goes on from our first candidate, so that where
        windows begin, what they know of the words before, and what counts as silence is its
        decision.
        """
        settings = self.options
        depths = {name: getattr(settings, name) for name in ("beam", "depth", "widest")}
        beams = BeamSearch(self.model, first_time=self.first_time, **depths)
        windows: list[Window] = []

        def search(encoded, prompt, tokenizer, options):
            window, result = beams.search(encoded, prompt, options)
            windows.append(window)
            # what it makes of its own result: average, temperature, compression
            return result, average_log_prob(result), 0.0, 1.0

        self.model.generate_with_fallback = search
        segments, _ = self.model.transcribe(
            samples,
            language=None if settings.language == "auto" else settings.language,
            beam_size=settings.beam,
            temperature=0,
            suppress_tokens=self.suppressed,
            without_timestamps=settings.timestamps == "no"
            or (settings.timestamps == "auto" and len(samples) <= LONGEST * self.rate),
        )
        for segment in segments:  # each is there before the next window is searched
            windows[-1].answer.append(segment.text)
        return windows
