"""The class that ESPnet knows, and ESPnet's programs with it among their choices; imported only
where ESPnet is installed.
"""

import importlib.util
import runpy
import sys

from espnet2.lm.abs_model import AbsLM
from espnet2.tasks.lm import lm_choices

from lmtools.base.errors import UserError
from lmtools.bridges.espnet.export import NAME
from lmtools.bridges.espnet.model import TokenLM


class LmtoolsLM(TokenLM, AbsLM):
    """A model of `lmtools train` as one of ESPnet's language models."""


def register_class() -> None:
    lm_choices.classes[NAME] = LmtoolsLM


def run_program(program: str, arguments: list[str]) -> None:
    """Run espnet2.bin.`program` with the class registered, as `python -m` would."""
    module = f"espnet2.bin.{program}"
    if importlib.util.find_spec(module) is None:
        raise UserError(f"{module}: ESPnet has no such program; give one such as asr_inference")
    register_class()
    sys.argv = [program, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
