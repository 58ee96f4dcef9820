"""Names of systems and language models in print, their order and their looks: by their parts (of
weights and configurations) and by a Style.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from lmtools.report.style import DASHED, Look, Printed, Style, load_style

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
