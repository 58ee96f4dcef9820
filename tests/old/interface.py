"""What lmtools promises by name: `python tests/old/interface.py` prints a line for each command
with its options, each Python name with its arguments, and each registry with its names.
"""

import argparse
import importlib
import inspect
from collections.abc import Iterator

import lmtools
from lmtools.base.specs import OPTIONS
from lmtools.cli import VERBS
from lmtools.verbs.commands import find_module
from lmtools.verbs.parser import Parser, add_common

REGISTRIES = (
    *("lmtools.formats FORMATS", "lmtools.formats.lattices LATTICES"),
    *("lmtools.networks.files NETWORKS", "lmtools.vectors.pairs PAIRS"),
    *("lmtools.evaluate.metrics METRICS", "lmtools.decode.recognisers RECOGNISERS"),
    *("lmtools.models MODELS", "lmtools.models.objectives OBJECTIVES"),
    *("lmtools.models.outputs CRITERIA", "lmtools.train.optim OPTIMISERS"),
    *("lmtools.text.normaliser NORMALISERS", "lmtools.text.unify UNIFIERS"),
    *("lmtools.text.subword.directory SUBWORDS", "lmtools.bridges.export FORMS"),
    "lmtools.vectors.pooling POOLS",
)


def list_commands(parser: argparse.ArgumentParser, command: str) -> Iterator[tuple[str, set]]:
    """Each command and action, its options, and what its --set takes."""
    flags = {flag for flag in parser._option_string_actions if flag.startswith("--")}
    yield command, flags | {*(parser.get_default("known_settings") or ())}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from list_commands(inner, f"{command} {name}")


def list_names(name: str, value: object) -> Iterator[tuple[str, set]]:
    """A Python name and its arguments; of a class the same of its public methods."""
    inspected = callable(value) and value is not lmtools.UserError
    yield name, {*(inspect.signature(value).parameters if inspected else ())} - {"self"}
    for method in vars(value) if isinstance(value, type) else ():
        if not method.startswith("_"):
            yield from list_names(f"{name}.{method}", getattr(value, method))


def list_interface() -> dict[str, set[str]]:
    """Every line: what it is of, and the names."""
    found = {"--lm LM,": {*OPTIONS}}
    for verb in VERBS:
        parser = Parser()
        add_common(parser)
        find_module(verb).arguments(parser)
        found |= dict(list_commands(parser, f"lmtools {verb}"))
    for module in (lmtools, lmtools.lattice):
        for name in module.__all__:
            found |= dict(list_names(f"{module.__name__}.{name}", getattr(module, name)))
    for home, name in map(str.split, REGISTRIES):
        found[name] = {*getattr(importlib.import_module(home), name)}
    return found


if __name__ == "__main__":
    for name, words in sorted(list_interface().items()):
        print(f"{name}:", *sorted(words))
