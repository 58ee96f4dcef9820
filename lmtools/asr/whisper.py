"""Whisper by faster-whisper and CTranslate2: N-best lists of a beam search, scored by the sum of
log-probabilities.

Radford et al. 2023, Robust Speech Recognition via Large-Scale Weak Supervision.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lmtools.asr.audio import split_at_silence
from lmtools.asr.options import option
from lmtools.errors import UserError
from lmtools.types import Hypothesis

LONGEST = 30  # seconds that the encoder takes
DIGITS = 4  # of scores
FILES = ("model.bin", "config.json", "tokenizer.json")


@dataclass(frozen=True)
class WhisperOptions:
    """What `--opts` sets."""

    beam: int = option(20, "hypotheses that the search keeps")
    depth: int = option(20, "hypotheses of a list, at most `beam`")
    language: str = option("en", "code of the language that is spoken")
    tokens: str = option(
        " ?[a-z]+|'[a-z]+",
        "regular expression of the tokens of text that may come, all others are suppressed; .* for"
        " all",
    )
    compute: str = option("int8", "CTranslate2's type of computation, as float32 or float16")


@dataclass
class Whisper:
    """A model that CTranslate2 wrote: DIR with model.bin, config.json and tokenizer.json.

    `am` of a hypothesis is the sum of the log-probabilities of its tokens and the end. Tokens
    that are no text stay possible, but for the end at once: with them `am` is a probability among
    all that the model might do. The same words may come by several tokens, and then are several
    hypotheses.
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
        if self.options.depth > self.options.beam:
            raise UserError(
                f"--opts depth={self.options.depth}: more than the beam of {self.options.beam}"
                " holds; raise beam too"
            )
        try:
            self.wanted = re.compile(self.options.tokens)
        except (re.error, RecursionError, OverflowError) as error:
            raise UserError(f"--opts tokens: no regular expression ({error}); mend it") from None

    def load(self) -> "Whisper":
        """Itself, able to decode; UserError for a damaged model."""
        from faster_whisper import WhisperModel

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
            raise UserError(f"{self.directory}: cannot load the model ({cause})") from None
        tokenizer = self.model.hf_tokenizer
        names = ["<|startoftranscript|>", "<|notimestamps|>"]
        if self.model.model.is_multilingual:
            names[1:1] = [f"<|{self.options.language}|>", "<|transcribe|>"]
        elif self.options.language != "en":
            raise UserError(f"{self.directory}: knows English alone; leave language out")
        self.prompt = [tokenizer.token_to_id(name) for name in names]
        if None in self.prompt:
            missing = names[self.prompt.index(None)]
            raise UserError(
                f"{self.directory}: has no token {missing}; give a language that it knows"
            )
        self.end = tokenizer.token_to_id("<|endoftext|>")
        self.suppressed = [
            token
            for token in range(self.end)
            if not self.wanted.fullmatch(tokenizer.decode([token]))
        ]
        if len(self.suppressed) == self.end:
            raise UserError(f"--opts tokens={self.options.tokens}: no token is so; correct it")
        return self

    def decode(self, samples: np.ndarray) -> list[Hypothesis]:
        """The best hypotheses of samples (N,), best first.

        What is longer than LONGEST is cut in silence, and the lists of its parts become one of
        their best combinations.
        """
        lists = [self.decode_part(part) for part in split_at_silence(samples, self.rate, LONGEST)]
        hyps = lists[0]
        for following in lists[1:]:
            pairs = [(a + c, f"{b} {d}") for a, b in hyps for c, d in following]
            hyps = sorted(pairs, key=lambda pair: -pair[0])[: self.options.depth]
        return [
            Hypothesis(" ".join(text.split()), {"am": round(score, DIGITS)}) for score, text in hyps
        ]

    def decode_part(self, samples: np.ndarray) -> list[tuple[float, str]]:
        """Pairs (score, text) of what the encoder can take at once."""
        from faster_whisper.audio import pad_or_trim

        features = pad_or_trim(self.model.feature_extractor(samples))
        result = self.model.model.generate(
            self.model.encode(features),
            [self.prompt],
            beam_size=self.options.beam,
            num_hypotheses=self.options.depth,
            length_penalty=0,
            return_scores=True,
            suppress_tokens=self.suppressed,
        )[0]
        texts = (
            self.model.hf_tokenizer.decode([token for token in tokens if token < self.end])
            for tokens in result.sequences_ids
        )
        return list(zip(result.scores, texts, strict=True))
