"""Train language models and use them to rescore the N-best lists and lattices of recognisers and
translators.

The names in `__all__` are the Python interface (docs/python.md); they change only as CHANGES.md
says, by semantic versions. Everything else is how the house is built. A name is imported when it is
first asked for: `import lmtools` loads neither torch nor numpy.
"""

import importlib
from typing import TYPE_CHECKING

from lmtools.version import __version__ as __version__

if TYPE_CHECKING:
    from lmtools import lattice
    from lmtools.api.files import read, stream, write
    from lmtools.api.lm import LM, TokenScores, listen, load
    from lmtools.api.measures import bleu, cer, measure, wer
    from lmtools.api.weights import rescore, tune
    from lmtools.base.context import using
    from lmtools.base.errors import UserError
    from lmtools.evaluate.corpus import Evaluation
    from lmtools.phrases.clean import Harm, measure_harm
    from lmtools.rescoring.weights import Weights
    from lmtools.transcribe.transcriber import Transcriber
    from lmtools.transcribe.transcript import Transcript
    from lmtools.types import Arc, Final, Hypothesis, Lattice, NBest, ScoreTable

__all__ = [
    "LM",
    "Arc",
    "Evaluation",
    "Final",
    "Harm",
    "Hypothesis",
    "Lattice",
    "NBest",
    "ScoreTable",
    "TokenScores",
    "Transcriber",
    "Transcript",
    "UserError",
    "Weights",
    "bleu",
    "cer",
    "lattice",
    "listen",
    "load",
    "measure",
    "measure_harm",
    "read",
    "rescore",
    "stream",
    "tune",
    "using",
    "wer",
    "write",
]

HOMES = {
    "lmtools.api.files": ("read", "stream", "write"),
    "lmtools.api.lm": ("LM", "TokenScores", "listen", "load"),
    "lmtools.api.measures": ("bleu", "cer", "measure", "wer"),
    "lmtools.api.weights": ("rescore", "tune"),
    "lmtools.base.context": ("using",),
    "lmtools.base.errors": ("UserError",),
    "lmtools.evaluate.corpus": ("Evaluation",),
    "lmtools.phrases.clean": ("Harm", "measure_harm"),
    "lmtools.rescoring.weights": ("Weights",),
    "lmtools.transcribe.transcriber": ("Transcriber",),
    "lmtools.transcribe.transcript": ("Transcript",),
    "lmtools.types": ("Arc", "Final", "Hypothesis", "Lattice", "NBest", "ScoreTable"),
}
HOME_OF = {name: home for home, names in HOMES.items() for name in names}


def __getattr__(name: str):
    """Return the public name, imported from its module (PEP 562)."""
    if name == "lattice":
        return importlib.import_module("lmtools.lattice")
    if name not in HOME_OF:
        raise AttributeError(f"module 'lmtools' has no attribute {name!r}")
    from lmtools.base import doors

    door = HOME_OF[name].split(".")[1]
    if door in doors.DOORS and door not in doors.find_doors():
        raise AttributeError(str(doors.lacks(door, f"lmtools.{name}")))
    value = getattr(importlib.import_module(HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
