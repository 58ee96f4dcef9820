"""Style of reports, from a YAML file: names of systems and language models in print, their order,
their looks.

The package's own is defaults.yaml; a recipe's refines it entry by entry, and an experiment's file
(lmtools/rescoring/experiment.py) gives systems their order, labels and looks:

    order: [tta, "*", ngram]              # of language models; "*": whatever is not named
    systems: {all: {label: all LMs}}      # by name of a system, instead of what it is made of
    lms: {tta: {label: T-TA, look: {light: "#00876a", dark: "#2fcaa0", marker: "*", line: "-"}}}
    families: {lstm: {label: LSTM, look: {}}}
    views: {eos: {label: "[EOS]", marker: ">", line: ":"}} # of sentence vectors
    spare: [], runs: []                   # looks of what has none; of models of one family
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lmtools.base.config import build, find_lines, load_yaml, merge
from lmtools.base.errors import UserError
from lmtools.rescoring.experiment import ExperimentPlan

DEFAULTS = Path(__file__).with_name("defaults.yaml")
OTHERS = "*"  # in `order`
DASHED = {"-": "--", "--": "-", "-.": ":", ":": "-."}  # the line of a mean, by that of the sum


@dataclass(frozen=True)
class Look:
    """Look of a line or marker: colour on light and on dark paper, marker (matplotlib's) and line,
    so that colour never stands alone.
    """

    light: str
    dark: str
    marker: str | tuple[int, ...] = "o"
    line: str = "-"
    hollow: bool = False

    def __post_init__(self):
        for name in ("light", "dark"):
            if not re.fullmatch("#[0-9a-fA-F]{6}", getattr(self, name)):
                raise UserError(f"{name}: {getattr(self, name)!r} is no colour; write '#rrggbb'")
        check_marks(self.marker, self.line)


@dataclass(frozen=True)
class View:
    """Label and look of a way of making sentence vectors."""

    label: str
    marker: str = "o"
    line: str = "--"

    def __post_init__(self):
        check_marks(self.marker, self.line)


def check_marks(marker: str | tuple[int, ...], line: str) -> None:
    """Raise UserError for what matplotlib cannot draw."""
    if line not in DASHED:
        raise UserError(f"line: {line!r} is unknown; known: {' '.join(DASHED)}")
    if len(marker) != (1 if isinstance(marker, str) else 3):
        raise UserError(f"marker: {marker!r} is no marker; give a character that matplotlib knows")


@dataclass(frozen=True)
class Printed:
    """Label and look of something; None where they follow from its parts."""

    label: str | None = None
    look: Look | None = None


@dataclass(frozen=True)
class Style:
    """All that the files say; mappings by name, in printing order. `plan` is the experiment's."""

    order: list[str]
    systems: Mapping[str, Printed]
    lms: Mapping[str, Printed]
    families: Mapping[str, Printed]
    views: Mapping[str, View]
    spare: list[Look]
    runs: list[Look]
    plan: ExperimentPlan = field(default_factory=ExperimentPlan)

    def place(self, name: str) -> int:
        """Return the place of a language model in `order`."""
        return self.order.index(name if name in self.order else OTHERS)


ENTRIES = ("systems", "lms", "families")


def load_style(path: Path | None = None, plan: ExperimentPlan | None = None) -> Style:
    """Load the defaults, refined by what the file at `path` says, then by an experiment's: its
    labels and looks of systems, and its language models and systems in their order; UserError with
    the line for what a file should not say.
    """
    if path:
        check_style(path)
        style = parse_style(merge(load_yaml(DEFAULTS), load_yaml(path)), lambda *_: path)
    else:
        style = load_defaults()
    if plan is None:
        return style
    systems = dict(style.systems)
    for name, entry in plan.systems.items():
        old, place = systems.get(name, Printed()), plan.place / "systems" / name / "look"
        look = build(Look, entry.look, place) if entry.look else old.look
        systems[name] = replace(old, label=entry.label or old.label, look=look)
    order = dict.fromkeys([*plan.names, *style.order])
    return replace(style, order=list(order), systems=systems, plan=plan)


@functools.cache
def load_defaults() -> Style:
    """Return the package's own style."""
    return parse_style(load_yaml(DEFAULTS), lambda *_: DEFAULTS)


def check_style(path: Path) -> None:
    """Raise UserError with the line for what a YAML file should not say."""
    tree = load_yaml(path)
    lines = find_lines(path)

    def where(*place: str) -> str:
        while place and place not in lines:
            place = place[:-1]
        return f"{path}:{lines.get(place, 1)}"

    known = [*ENTRIES, "order", "views", "spare", "runs"]
    for name in tree:
        if name not in known:
            raise UserError(f"{where(str(name))}: unknown key {name!r}; known: {', '.join(known)}")
    parse_style({"order": [OTHERS], **tree}, where)


def parse_style(tree: Mapping, where) -> Style:
    """Parse the style in parsed YAML; `where(section, name)` says of what a UserError speaks."""
    sections = {
        name: {
            str(key): parse_entry(entry, where(name, str(key)), f"{name}.{key}")
            for key, entry in read_part(tree, name, dict, where).items()
        }
        for name in ENTRIES
    }
    views = {
        str(key): build(View, entry or {}, where("views", str(key)), f"views.{key}.")
        for key, entry in read_part(tree, "views", dict, where).items()
    }
    looks = {
        name: [
            build(Look, look, where(name), f"{name}.")
            for look in read_part(tree, name, list, where)
        ]
        for name in ("spare", "runs")
    }
    order = [str(name) for name in read_part(tree, "order", list, where)]
    if order.count(OTHERS) != 1 or len(set(order)) < len(order):
        raise UserError(f"{where('order')}: a name stands there twice, or {OTHERS!r} not once")
    return Style(order, **sections, views=views, **looks)


def parse_entry(tree, where, prefix: str) -> Printed:
    """Parse one entry of ENTRIES."""
    if not isinstance(tree, Mapping) or not tree.keys() <= {"label", "look"}:
        raise UserError(f"{where}: {prefix}: not `label: TEXT` and `look: {{light: ..}}`")
    look = tree.get("look")
    rest = {name: value for name, value in tree.items() if name != "look"}
    entry = build(Printed, rest, where, f"{prefix}.")
    return replace(entry, look=build(Look, look, where, f"{prefix}.look.")) if look else entry


def read_part(tree: Mapping, name: str, kind: type, where):
    """Read the part `name`, a mapping or a list; empty where it is not there."""
    if not isinstance(part := tree.get(name) or kind(), kind):
        expected = "a list" if kind is list else "`name: value` lines"
        raise UserError(f"{where(name)}: {name}: expected {expected}")
    return part
