"""Style of reports, from a YAML file: names of systems and language models in print, their order,
their looks; and the names that follow from what systems are made of (weights and configurations).

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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

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


# the decoder's own choice and the best of each list; no directory is called so
FIRST, ORACLE, FIRST_PASS = "@first", "@oracle", "first-pass"
CE = "softmax"  # the criterion to which others compare
SUM = "sum"


class LmPart(NamedTuple):
    """A language model of a system: `score` is its sum, or the mean by token or by word."""

    lm: str
    score: str = SUM
    normalised: bool = True


class SystemParts(NamedTuple):
    """Parts of a system: its LMs, whether of lattices, whether interpolated."""

    parts: tuple[LmPart, ...] = ()
    lattices: bool = False
    interpolated: bool = False

    @property
    def normalised(self) -> bool:
        return all(part.normalised for part in self.parts)

    @property
    def normal(self) -> "SystemParts":
        return self._replace(parts=tuple(part._replace(normalised=True) for part in self.parts))

    @property
    def summed(self) -> "SystemParts":
        """The same by sums over tokens."""
        return self._replace(parts=tuple(part._replace(score=SUM) for part in self.parts))


NOTHING = SystemParts()


@dataclass(frozen=True)
class Names:
    """What systems are made of; a name that is no system is that of a language model."""

    style: Style = field(default_factory=load_style)
    systems: Mapping[str, SystemParts] = field(default_factory=dict)

    @cached_property
    def lms(self) -> "Names":
        """The names of language models, whatever systems are called."""
        return replace(self, systems={})

    def makeup(self, name: str) -> SystemParts:
        return self.systems.get(name, SystemParts((LmPart(name),)))

    def is_mean(self, name: str) -> bool:
        """Return whether a system takes a language model's mean score."""
        return self.makeup(name).summed != self.makeup(name)

    def label(self, name: str) -> str:
        """Return the printed name; systems made of the same are told apart by their own names."""
        return self.labels.get(name) or self.describe(name)

    @cached_property
    def labels(self) -> dict[str, str]:
        plain = {name: self.describe(name) for name in self.systems}
        texts = list(plain.values())
        return {
            name: f"{text} ({name})" if texts.count(text) > 1 and text != name else text
            for name, text in plain.items()
        }

    def describe(self, name: str) -> str:
        if given := self.style.systems.get(name, Printed()).label:
            return given
        parts, lattices, interpolated = self.makeup(name)
        labels = [self.describe_part(part) for part in parts]
        text = " + ".join(map(shorten, labels)) if len(labels) > 1 else "".join(labels)
        text = text or self.describe(FIRST_PASS)
        text = f"{text}, interpolated" if interpolated else text
        return f"{shorten(text)}, lattice" if lattices else text

    def describe_part(self, part: LmPart) -> str:
        """Return the name of a language model and the form of its score, in words."""
        labels = [self.describe_lm(part.lm), "" if part.normalised else "unnormalised"]
        return ", ".join(filter(None, [*labels, part.score != SUM and f"mean over {part.score}s"]))

    def describe_lm(self, name: str) -> str:
        """Return the printed name of a language model: the Style's, or its own."""
        return self.style.lms.get(name, Printed()).label or name

    def short(self, name: str) -> str:
        """Return the printed name without what it says in parentheses, and means in one word."""
        return shorten(self.label(name))

    def ordered(self, names: Iterable[str]) -> list[str]:
        """Return names in printing order: systems as the experiment's file lists them; others by
        the number of their language models, then by the Style's order of the first of these.
        """
        known = [FIRST, ORACLE, *(self.style.plan.systems if self.systems else ())]

        def place(name):
            parts, lattices, _ = self.makeup(name)
            rank = known.index(name) if name in known else len(known)
            first = parts[0].lm if parts else name
            return lattices, rank, len(parts), self.style.place(first), first, name

        return sorted(names, key=place)

    def looks(self, names: Iterable[str]) -> dict[str, Look]:
        """Return the look of each name, and of FIRST and ORACLE; others take spare ones in order. A
        mean and an interpolation have the sum's colour, hollow or dotted.
        """
        keys = {name: self.key_of(name) for name in (*names, FIRST, ORACLE)}
        known = {}
        for kind in (self.style.lms, self.style.systems):
            known |= {("", name): entry.look for name, entry in kind.items() if entry.look}
        unknown = sorted(set(keys.values()) - known.keys())
        known |= {key: self.style.spare[i % len(self.style.spare)] for i, key in enumerate(unknown)}
        looks = {name: known[key] for name, key in keys.items()}
        for name, look in looks.items():
            if self.is_mean(name):
                looks[name] = look = replace(look, line=DASHED[look.line], hollow=True)
            if self.makeup(name).interpolated:
                looks[name] = replace(look, line=":")
        return looks

    def key_of(self, name: str) -> tuple[str, str]:
        """Return the key of a look: a system of the Style, or the parts of another, by sums."""
        system = self.makeup(name)
        if self.style.systems.get(name, Printed()).look or not system.parts:
            return "", name
        ends = [part.lm + " unnormalised" * (not part.normalised) for part in system.parts]
        return "lattice" * system.lattices, "+".join(ends)


def shorten(text: str) -> str:
    """Return a printed name without what it says in parentheses, and means in one word."""
    return re.sub(r" \(.*?\)|(?<=, mean) over \w+s(?=$|,)", "", text)
