"""Packages beyond the base install, by the extra of ours that brings each."""

import shlex
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.version import __version__

# module -> extra of pyproject.toml
EXTRAS = {
    "torch": "neural",
    "safetensors": "neural",
    "kenlm": "ngram",
    "transformers": "hf",
    "ctranslate2": "ct2",
    "onnx": "onnx",
    "h5py": "hdf5",
    "sacremoses": "mt",
    "soundfile": "asr",
    "av": "asr",
    "tensorboard": "tensorboard",
}


def install_extra(*extras: str) -> str:
    """Return the command that installs extras of this very lmtools: of its checkout, or of its
    wheel's file. The name alone is nobody's on PyPI: whoever takes it there would be installed.
    """
    home = Path(__file__).parents[2]
    if not (home / "pyproject.toml").exists():
        return f"pip install 'lmtools-{__version__}-py3-none-any.whl[{','.join(extras)}]'"
    place = "." if home == Path.cwd() else home
    return f"pip install -e {shlex.quote(f'{place}[' + ','.join(extras) + ']')}"


def explain_missing(error: ImportError, purpose: str = "", otherwise: str = "") -> UserError:
    """Return what the user does about a module that cannot be imported: the extra to install, or
    what to do `otherwise`. `purpose` says what needs it. Whatever no extra brings is a fault of
    ours, and is raised again.
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        raise error
    remedy = install_extra(EXTRAS[module])
    remedy += f", or {otherwise}" if otherwise else ""
    where = f"{purpose} needs" if purpose else "this needs"
    return UserError(f"{where} the package {module}; {remedy}")
