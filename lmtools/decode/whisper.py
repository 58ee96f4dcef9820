"""Whisper by faster-whisper and CTranslate2: its own answer first, and behind it what the same
search found beside it; equal words are merged.

Radford et al. 2023, Robust Speech Recognition via Large-Scale Weak Supervision.
"""

import contextlib
import ctypes
import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.options import check_options, option
from lmtools.decode.forced import Forced
from lmtools.decode.silence import (
    REPEATED,
    SpokenSound,
    compress,
    find_answer,
    find_suppressed,
    is_silent,
)
from lmtools.text.normaliser import NORMALISERS
from lmtools.types import Hypothesis

LONGEST = 30  # seconds that the encoder takes
HOP = 160  # samples of a step of the features
MARGIN = 2 * HOP  # samples beside a window that its features reach into
RANGE = 2.0  # below the loudest feature of a recording, what is quieter counts as this
DIGITS = 4  # of scores
WIDEST = 80  # beam up to which the search of a short recording goes on until hypotheses are `depth`
WIDER = 4  # times the beam before, where one did not find enough
FILES = ("model.bin", "config.json", "tokenizer.json")
WORDS = NORMALISERS["librispeech"]  # what tells words apart: neither case nor punctuation
LEAST = 1e-10  # of a probability of no speech, before its logarithm
# of glibc's mallopt: one arena, no mapping, no trimming
MALLOC = ((-8, 1), (-4, 0), (-1, (1 << 31) - 1), (-2, 1 << 26))


@dataclass(frozen=True)
class WhisperOptions:
    """Options of Whisper, which `--opts` sets."""

    beam: int = option(20, "width of the search of utterances up to 30 s", least=1)
    window: int = option(5, "width of the search of windows of longer recordings", least=1)
    depth: int = option(20, "most hypotheses of a list, all with different words", least=1)
    language: str = option("en", "code of the spoken language, or auto to detect it")
    vad: bool = option(True, "leave out pauses of 2 s and more, as the VAD of faster-whisper finds")

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

    def as_hypothesis(self, no_speech: float) -> Hypothesis:
        scores = {"am": self.am, "avg": self.avg, "nospeech": no_speech, "length": self.length}
        rounded = {name: round(score, DIGITS) for name, score in scores.items()}
        return Hypothesis(" ".join(self.text.split()), rounded)


@dataclass
class Whisper:
    """A model that CTranslate2 wrote: DIR with model.bin, config.json and tokenizer.json.

    The first hypothesis is what faster-whisper's `transcribe` answers with the same beam at
    temperature 0. `am` of a hypothesis is the sum of the log-probabilities of its tokens and the
    end among all tokens that may come, `avg` that a token, `length` their number, `nospeech` the
    probability that nobody speaks in the window. Where that is silence, the list is the empty text
    alone, as probable as it is that nobody speaks.
    """

    directory: str
    options: WhisperOptions = field(default_factory=WhisperOptions)
    device: str = "auto"
    rate = 16_000
    longest = LONGEST
    drawn = False

    def __post_init__(self):
        for name in FILES:
            if not Path(self.directory, name).is_file():
                raise UserError(
                    f"{self.directory}: no {name}; give a Whisper model of CTranslate2"
                    " (utils/install_asr.sh fetches one)"
                )

    def load(self) -> "Whisper":
        from faster_whisper import WhisperModel
        from tqdm import tqdm

        # its own lock has a semaphore, which a worker that is ended leaves behind with a warning
        tqdm.set_lock(threading.RLock())
        keep_memory()
        device, _, index = self.device.partition(":")
        self.model = None  # of an earlier call: before there are two
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

    def decode(self, samples: np.ndarray) -> list[Hypothesis]:
        """Return the hypotheses of at most LONGEST seconds, faster-whisper's answer first, others
        by `avg`.
        """
        blocks = [*SpokenSound([samples], self.options.vad)]
        samples = np.concatenate(blocks) if blocks else samples[:0]
        encoded, steps = self.encode(samples)
        if not steps:
            return [Candidate("", 0.0, 0).as_hypothesis(1.0)]
        tokenizer = self.make_tokenizer(self.options.language, encoded)
        prompt = self.model.get_prompt(tokenizer, [], without_timestamps=True)
        return self.search(prompt, encoded, tokenizer)

    def search(self, prompt: list[int], encoded, tokenizer) -> list[Hypothesis]:
        """Return the answer and the hypotheses of a search with `beam`, then of wider beams until
        `depth` differ in their words or none is new; without those that repeat themselves.
        """
        beam = self.options.beam
        result = self.generate([prompt], encoded, tokenizer, beam)[0]
        answer, marks = find_answer(self, result, encoded, prompt, tokenizer=tokenizer)
        no_speech, found = result.no_speech_prob, list_candidates(answer, tokenizer)[:1]
        if is_silent(marks) or not found[0].text.strip():
            silence = Candidate("", math.log(max(no_speech, LEAST)), 0)
            return [silence.as_hypothesis(no_speech)]
        known = 0
        while True:
            more = list_candidates(result, tokenizer)
            found = merge_equal([*found, *(one for one in more if compress(one.text) <= REPEATED)])
            if beam >= WIDEST or len(found) == known or len(found) >= self.options.depth:
                break
            known, beam = len(found), min(WIDER * beam, WIDEST)
            result = self.generate([prompt], encoded, tokenizer, beam)[0]
        ranked = rank_rest(found)[: self.options.depth]
        return [one.as_hypothesis(no_speech) for one in ranked]

    @cached_property
    def forced(self) -> Forced:
        """The decoder that scores given tokens."""
        tokenizer = self.make_tokenizer("en", None)
        blank = [*tokenizer.encode(" "), tokenizer.eot]
        return Forced(self.directory, find_suppressed(tokenizer), blank, tokenizer.eot)

    def encode(self, samples: np.ndarray):
        """Return what the encoder makes of up to LONGEST seconds, and how many steps of HOP samples
        they are.
        """
        features = self.find_features(samples)
        return self.encode_features(features), features.shape[1]

    def find_features(self, samples: np.ndarray, before: np.ndarray | Sequence = ()) -> np.ndarray:
        """Return features (bands, steps) of up to LONGEST seconds of `samples`; MARGIN `before`
        them and behind them make them those of a window of a longer recording.
        """
        first, steps = len(before) // HOP, min(len(samples) // HOP, LONGEST * self.rate // HOP)
        samples = np.concatenate([before, samples]) if first else samples
        return self.model.feature_extractor(samples)[:, first : first + steps]

    def encode_features(self, features: np.ndarray, loudest: float = -np.inf):
        """Return what the encoder makes of features of a recording of that greatest feature."""
        from faster_whisper.audio import pad_or_trim

        least = np.float32(loudest - RANGE)
        return self.model.encode(pad_or_trim(np.maximum(features, least)))

    def hear_languages(self, encoded) -> dict[str, float]:
        """Return the probability of each language that may be heard; none of a model of English."""
        if not self.model.model.is_multilingual:
            return {}
        (heard,) = self.model.model.detect_language(encoded)
        return {token.strip("<|>"): share for token, share in heard}

    def make_tokenizer(self, language: str, encoded):
        """Return faster-whisper's tokenizer of a language, `auto`: of the one that is heard."""
        from faster_whisper.tokenizer import Tokenizer

        if language == "auto":
            heard = self.hear_languages(encoded)
            language = max(heard, key=heard.get) if heard else "en"
        many = self.model.model.is_multilingual
        return Tokenizer(self.model.hf_tokenizer, many, task="transcribe", language=language)

    def generate(self, prompts: list[list[int]], encoded, tokenizer, beam: int, most: int = 0):
        """Return CTranslate2's results of searches from `prompts`, one a row of `encoded`, that
        keep all `beam` hypotheses, of `most` tokens.
        """
        return self.model.model.generate(
            encoded,
            prompts,
            beam_size=beam,
            num_hypotheses=beam,
            # it takes half of this, and this less the prompt, if that is fewer
            max_length=max(2 * most, len(prompts[0]) + most) if most else self.model.max_length,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_tokens=find_suppressed(tokenizer),
        )

    def draw(self, encoded, prompt: list[int], tokenizer, options, seed: int):
        """Return what faster-whisper draws at higher temperatures, the same for a seed, whatever
        was drawn before.
        """
        import ctranslate2

        if self.drawn:  # CTranslate2 seeds a thread once; a model that is loaded has new threads
            self.load()
        self.drawn = True
        ctranslate2.set_random_seed(seed)
        return self.model.generate_with_fallback(encoded, prompt, tokenizer, options)


def keep_memory() -> None:
    """Have the C library keep the memory that it got: CTranslate2 takes and leaves tens of MB for
    each matrix, and a third of the time went into pages that the system cleared again and again.
    """
    with contextlib.suppress(OSError, AttributeError):  # another library than glibc
        for option_, value in MALLOC:
            ctypes.CDLL(None).mallopt(option_, value)


def list_candidates(result, tokenizer) -> list[Candidate]:
    """Return the hypotheses of a search of CTranslate2's."""
    return [
        Candidate(tokenizer.decode(tokens), score * len(tokens), len(tokens))
        for tokens, score in zip(result.sequences_ids, result.scores, strict=True)
    ]


def merge_equal(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return those of different words, each as it is written first, in that order."""
    merged: dict[str, Candidate] = {}
    for candidate in candidates:
        merged.setdefault(WORDS(candidate.text), candidate)
    return list(merged.values())


def rank_rest(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the first, which is the recogniser's own answer, and the others by `avg`."""
    return [*candidates[:1], *sorted(candidates[1:], key=lambda other: -other.avg)]
