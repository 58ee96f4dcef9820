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
    papers: papers.yaml                   # whose tables utils/papers/paper_tables.py adds
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lmtools.base.config import Place, build, load_yaml, merge
from lmtools.base.errors import UserError
from lmtools.rescoring.experiment import ExperimentPlan

DEFAULTS = Path(__file__).with_name("defaults.yaml")
OTHERS = "*"  # in `order`
DASHED = {"-": "--", "--": "-", "-.": ":", ":": "-."}  # the line of a mean, by that of the sum


@dataclass(frozen=True)
class Look:
    """Look of a line or marker; colour, on light or dark paper, never stands alone."""

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
    papers: Path | None = None
    plan: ExperimentPlan = field(default_factory=ExperimentPlan)

    def place(self, name: str) -> int:
        """Return the place of a language model in `order`."""
        return self.order.index(name if name in self.order else OTHERS)


PARTS = {"systems": Printed, "lms": Printed, "families": Printed, "views": View}
LISTS = {"order": str, "spare": Look, "runs": Look}


def load_style(path: Path | None = None, plan: ExperimentPlan | None = None) -> Style:
    """Load the defaults, refined by the file at `path`, then by an experiment's labels, looks and
    order; UserError with the wrong line.
    """
    style = parse_style((DEFAULTS, path)) if path else load_defaults()
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
    return parse_style((DEFAULTS,))


def parse_style(files: tuple[Path, ...]) -> Style:
    """Parse the style in YAML files, each of which refines those before it."""
    tree, place = functools.reduce(merge, map(load_yaml, files)), Place(files)
    papers = tree.pop("papers", None)
    parts: dict[str, list | dict] = {}
    for name in tree:
        if name not in PARTS | LISTS:
            known = ", ".join(PARTS | LISTS)
            raise UserError(f"{place / name}: unknown key {name!r}; known: {known}")
    for name, kind in PARTS.items():
        if not isinstance(part := tree.get(name) or {}, Mapping):
            raise UserError(f"{place / name}: {name}: expected `name: value` lines")
        parts[name] = {
            str(key): build(kind, entry or {}, place / name / key, f"{name}.{key}.")
            for key, entry in part.items()
        }
    for name, kind in LISTS.items():
        if not isinstance(part := tree.get(name) or [], list):
            raise UserError(f"{place / name}: {name}: expected a list")
        parts[name] = [kind(x) if kind is str else build(kind, x, place / name) for x in part]
    order = parts["order"]
    if order.count(OTHERS) != 1 or len(set(order)) < len(order):
        raise UserError(f"{place / 'order'}: a name stands there twice, or {OTHERS!r} not once")
    return Style(**parts, papers=papers and files[-1].parent / str(papers))
