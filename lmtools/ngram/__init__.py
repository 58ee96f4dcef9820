"""n-gram models: estimated here, queried through KenLM. A query does not import the estimation."""

import importlib

HOMES = {"Description": "model", "NgramModel": "model", "build": "directory"}


def __getattr__(name: str):
    """Return the name, imported from its module (PEP 562)."""
    if name not in HOMES:
        raise AttributeError(f"module 'lmtools.ngram' has no attribute {name!r}")
    return getattr(importlib.import_module(f"lmtools.ngram.{HOMES[name]}"), name)
