"""Kaldi's chain models by Vosk: N-best lists out of the lattice, each hypothesis with one total
score.
"""

import ctypes
import json
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lmtools.asr.options import option
from lmtools.errors import UserError
from lmtools.files import read_lines
from lmtools.types import Hypothesis

DIGITS = 4  # of scores
SEED = 1  # of the dither that Kaldi adds to the samples


@dataclass(frozen=True)
class VoskOptions:
    """What `--opts` sets."""

    beam: float = option(13.0, "of the search, in nats")
    max_active: int = option(7000, "states of the search")
    lattice_beam: float = option(8.0, "of the lattice, in nats")
    depth: int = option(50, "hypotheses of a list")


@dataclass
class Vosk:
    """A model as Vosk's site has them: DIR with am/final.mdl, conf/ and a graph.

    `am` of a hypothesis is what Vosk calls confidence: the acoustic model's and the graph's scores
    in one. The dither starts anew with every utterance, so that its list does not depend on those
    before it.
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
        """Itself, able to decode; UserError for a damaged model."""
        import vosk

        vosk.SetLogLevel(-1)
        self.library = vosk
        with tempfile.TemporaryDirectory() as place:
            try:
                self.model = vosk.Model(self.with_options(Path(place)))
            # all that it raises
            except Exception as error:
                raise UserError(f"{self.directory}: cannot load the model ({error})") from None
        return self

    def with_options(self, place: Path) -> str:
        """A directory that is the model's but for the options of the search, which Vosk takes from
        conf/model.conf alone.
        """
        model = Path(self.directory).resolve()
        for child in model.iterdir():
            if child.name != "conf":
                (place / child.name).symlink_to(child)
        shutil.copytree(model / "conf", place / "conf")
        own = {
            "--beam": self.options.beam,
            "--max-active": self.options.max_active,
            "--lattice-beam": self.options.lattice_beam,
        }
        lines = [line.strip() for _, line in read_lines(model / "conf/model.conf")]
        lines = [line for line in lines if line.partition("=")[0] not in own]
        lines += [f"{name}={value}" for name, value in own.items()]
        (place / "conf/model.conf").write_text("\n".join(lines) + "\n")
        return str(place)

    def decode(self, samples: np.ndarray) -> list[Hypothesis]:
        """The best hypotheses of samples (N,), best first."""
        ctypes.CDLL(None).srand(SEED)
        recogniser = self.library.KaldiRecognizer(self.model, self.rate)
        recogniser.SetMaxAlternatives(self.options.depth)
        # all at once: a pause is no end
        pcm = np.clip(np.rint(samples * 32768.0), -32768, 32767).astype("<i2")
        recogniser.AcceptWaveform(pcm.tobytes())
        found = json.loads(recogniser.FinalResult())["alternatives"]
        return [
            Hypothesis(" ".join(one["text"].split()), {"am": round(one["confidence"], DIGITS)})
            for one in found
        ]
