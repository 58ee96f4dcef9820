"""Packages beyond the base install, by the extra that brings each (`lmtools[neural]`)."""

from lmtools.base.errors import UserError

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


def explain_missing(error: ImportError, purpose: str = "", otherwise: str = "") -> UserError:
    """Return what the user does about a module that cannot be imported: the extra to install, or
    what to do `otherwise`. `purpose` says what needs it. Whatever no extra brings is a fault of
    ours, and is raised again.
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        raise error
    remedy = f"pip install 'lmtools[{EXTRAS[module]}]'"
    remedy += f", or {otherwise}" if otherwise else ""
    where = f"{purpose} needs" if purpose else "this needs"
    return UserError(f"{where} the package {module}; {remedy}")
