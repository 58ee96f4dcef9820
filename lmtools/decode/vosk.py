"""Kaldi's chain models by Vosk: its own answer first, and behind it the best of a wider lattice,
each hypothesis with one total score.
"""

import contextlib
import ctypes
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.options import check_options, option
from lmtools.types import Hypothesis

DIGITS = 4  # of scores
SEED = 1  # of the dither that Kaldi adds to the samples: with which every process begins
MORE = 10  # times as many alternatives as a list has are looked through for Vosk's own answer
ERROR = re.compile(r"(?:ERROR|ASSERTION_FAILED)(?: \([^)]*\(\):[^)]*\))?:? *(.+)")
SHOWN = 200  # characters of what C++ says


@dataclass(frozen=True)
class VoskOptions:
    """Options of Vosk, which `--opts` sets: the search for the hypotheses behind the first."""

    beam: float = option(13.0, "beam of the search, in nats", least=0)
    lattice_beam: float = option(8.0, "beam of the lattice, in nats", least=0)
    depth: int = option(50, "most hypotheses of a list", least=1)

    def __post_init__(self):
        check_options(self)


@dataclass
class Vosk:
    """A model as Vosk's site has them: DIR with am/final.mdl, conf/ and a graph.

    The first hypothesis is what a KaldiRecognizer without alternatives answers: of least Bayes risk
    in the lattice of the model's own options. `am` of a hypothesis is what Vosk calls confidence:
    the acoustic model's and the graph's scores in one; of a first one that is no path of the wider
    lattice, the least in the list. The dither starts anew with every utterance, so that its list
    does not depend on those before it.
    """

    directory: str
    options: VoskOptions = field(default_factory=VoskOptions)
    device: str = "auto"  # it has the CPU alone
    longest = 0

    def __post_init__(self):
        model = Path(self.directory)
        for name in ("am/final.mdl", "conf/mfcc.conf", "conf/model.conf"):
            if not (model / name).is_file():
                raise UserError(
                    f"{self.directory}: no {name}; give a directory with a model of Vosk"
                    " (utils/install_asr.sh fetches one)"
                )
        lines = (line.strip() for _, line in read_lines(model / "conf/mfcc.conf"))
        rates = [re.fullmatch(r"--sample-frequency=(\d{4,6})(\.0*)?", line) for line in lines]
        self.rate = next((int(rate[1]) for rate in rates if rate), 16_000)

    def load(self) -> "Vosk":
        import vosk

        vosk.SetLogLevel(-1)
        self.library = vosk
        with tempfile.TemporaryDirectory() as place, catch_log() as log:
            try:
                self.own = vosk.Model(self.directory)
                self.wide = vosk.Model(self.with_options(Path(place)))
                # some of the damage shows in use alone
                self.decode(np.zeros(self.rate, dtype=np.float32))
            # all that it raises
            except Exception as error:
                cause = find_cause(log(), str(error)).replace(place, self.directory)
                raise UserError(
                    f"{self.directory}: cannot load the model ({cause}); fetch it again"
                    " (utils/install_asr.sh does, once the directory is gone)"
                ) from None
        return self

    def with_options(self, place: Path) -> str:
        """Return the model's directory with our options, which Vosk takes from conf/ alone."""
        model = Path(self.directory).resolve()
        for child in model.iterdir():
            if child.name != "conf":
                (place / child.name).symlink_to(child)
        shutil.copytree(model / "conf", place / "conf")
        settings = {
            "--beam": self.options.beam,
            "--max-active": 7000,  # states of the search
            "--lattice-beam": self.options.lattice_beam,
        }
        lines = [line.strip() for _, line in read_lines(model / "conf/model.conf")]
        lines = [line for line in lines if line.partition("=")[0] not in settings]
        lines += [f"{name}={value}" for name, value in settings.items()]
        (place / "conf/model.conf").write_text("\n".join(lines) + "\n")
        return str(place)

    def decode(self, samples: np.ndarray) -> list[Hypothesis]:
        """Return the hypotheses of samples (N,), Vosk's answer first, the others by `am`."""
        pcm = np.clip(np.rint(samples * 32768.0), -32768, 32767).astype("<i2").tobytes()
        answer = " ".join(self.recognise(self.own, pcm)["text"].split())
        depth = self.options.depth
        scores: dict[str, float] = {}
        for hypothesis in self.recognise(self.wide, pcm, MORE * depth)["alternatives"]:
            text = " ".join(hypothesis["text"].split())
            scores.setdefault(text, hypothesis["confidence"])
        others = [text for text in scores if text != answer][: depth - 1]
        least = min((scores[text] for text in others), default=0.0)
        return [
            Hypothesis(text, {"am": round(scores.get(text, least), DIGITS)})
            for text in (answer, *others)
        ]

    def recognise(self, model, pcm: bytes, alternatives: int = 0) -> dict:
        """Return what Vosk says of 16-bit samples, all at once: a pause is no end."""
        ctypes.CDLL(None).srand(SEED)
        recogniser = self.library.KaldiRecognizer(model, self.rate)
        recogniser.SetMaxAlternatives(alternatives)
        recogniser.AcceptWaveform(pcm)
        return json.loads(recogniser.FinalResult())


@contextlib.contextmanager
def catch_log() -> Iterator:
    """Have C++ write to a file in place of standard error inside the block; yield a function that
    returns what it wrote. It is this process's descriptor, so no other thread may write then.
    """
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield lambda: os.pread(log.fileno(), 1 << 20, 0).decode("utf-8", "replace")
        finally:
            os.dup2(before, 2)
            os.close(before)


def find_cause(log: str, error: str) -> str:
    """Return the first error in what C++ wrote, or else the exception's message."""
    causes = [match[1] for match in map(ERROR.match, log.splitlines()) if match]
    return " ".join((causes or [error])[0].split())[:SHOWN].rstrip(" .")
