"""What the files of a checkout say: settings, options of recipes, names in Python, texts, figures
that reports quote; of utils/papers/check.py.
"""

import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from quoted import PaperTable, Reading, read_papers

from lmtools.base.config import build, read_layers
from lmtools.models.settings import Settings


class Stale(Exception):
    """What is declared does not hold; the message says what does."""


class Checkout:
    """The files of this repository, and what they say."""

    def __init__(self, root: Path):
        self.root = root

    def text(self, name: str) -> str:
        """Return a file's; Stale where it is not there."""
        if not (self.root / name).is_file():
            raise Stale(f"{name} is not there")
        return (self.root / name).read_text()

    def values(self, spec: str) -> list:
        """Return what `FILE:KEY` names; {a,b} in FILE names several files. Stale where there is
        none.
        """
        names, _, key = spec.partition(":")
        braces = re.fullmatch(r"(.*)\{(.*)\}(.*)", names)
        files = [f"{braces[1]}{x}{braces[3]}" for x in braces[2].split(",")] if braces else [names]
        return [self.value(name, key) for name in files]

    def value(self, name: str, key: str):
        """Return One value: a setting as training takes it, a key of another YAML file, an option's
        default in a recipe, a name in Python.
        """
        text = self.text(name)
        try:
            if name.endswith(".py"):
                return follow(self.module(name), key) if key else self.module(name)
            return read_option(text, key) if name.endswith(".sh") else self.setting(name, key)
        except (AttributeError, KeyError, TypeError):
            raise Stale(f"{name} has no {key}") from None

    def setting(self, name: str, key: str):
        """Return a key of a YAML file; of a training's, with the defaults of what it does not
        say.
        """
        tree = read_layers(self.root / name)
        if not {"model", "objective"} <= tree.keys():
            return follow(tree, key)
        key = re.sub(r"^output\b", "output_layer", re.sub(r"^arch\b", "architecture", key))
        return follow(build(Settings, tree, name), key)

    def module(self, name: str):
        """Return a module of the package, or a script."""
        if name.startswith("lmtools/"):
            return importlib.import_module(name.removesuffix(".py").replace("/", "."))
        spec = importlib.util.spec_from_file_location("script", self.root / name)
        sys.path.insert(0, str(self.root / "benchmarks"))  # whose modules import each other
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    @cached_property
    def cited(self) -> dict[str, tuple[Sequence[PaperTable], Sequence[Reading]]]:
        """Return the tables of papers, and the readings of figures, that recipes' reports quote, by
        the path of papers.yaml.
        """
        paths = sorted(self.root.glob("egs/*/conf/papers.yaml"))
        return {str(path.relative_to(self.root)): read_papers(path) for path in paths}

    @cached_property
    def claims(self) -> dict[str, str]:
        """Return the pages of recipes by the claims that they have a row of: `| NAME NUMBER |
        ..`.
        """
        return {
            claim: str(page.relative_to(self.root))
            for page in sorted(self.root.glob("egs/*/*.md"))
            for claim in re.findall(r"^\| ([\w-]+ \d+) \|", page.read_text(), re.MULTILINE)
        }


def follow(value, key: str):
    """Return what `a.b.c` names in a value, by key or by attribute."""
    for name in key.split("."):
        if isinstance(value, Mapping):
            value = {str(k): v for k, v in value.items()}[name]
        else:
            value = getattr(value, name)
    return value


def read_option(script: str, key: str) -> str:
    """Return the default of a recipe's option; where it is empty, the last that the recipe gives
    it, which is that of published corpora. `NAME@TEXT`: what the line with TEXT gives it.
    """
    name, _, place = key.partition("@")
    lines = [line for line in script.splitlines() if place in line]
    lines = [line for line in lines if re.match(rf"{name}=[^\s#]", line)][:1] or lines
    given = rf"(?:^|[ {{])\W?{name}:?=(?:\${{{name}:-)?([^\s#}}]+)"
    values = re.findall(given, "\n".join(lines), re.MULTILINE)
    if not values:
        raise KeyError(key)
    return values[-1].strip("\"'")
