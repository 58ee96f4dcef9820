"""What systems and language models are called in print, in which order they stand, and how they are
drawn: by what they are made of (their weights and configurations) and by a Style.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from lmtools.report.style import OTHERS, Look, Printed, Style, load_style

# the decoder's own choice and the best of each list; no directory is called so
FIRST, ORACLE, FIRST_PASS = "@first", "@oracle", "first-pass"
CE = "softmax"  # the criterion to which others compare
PRINTED = "printed"  # a sum without the target (output.target_in_sum)
SUM = "sum"


class Part(NamedTuple):
    """A language model of a system: `score` is its log-probability (sum), or that by token or by
    word.
    """

    lm: str
    score: str = SUM
    normalised: bool = True


class Makeup(NamedTuple):
    """What a system is made of: its language models, rescored lattices in place of lists, and
    whether it is (1 - lambda) first pass + lambda LM.
    """

    parts: tuple[Part, ...] = ()
    lattices: bool = False
    interpolated: bool = False

    @property
    def normalised(self) -> bool:
        """Whether all scores were normalised over the vocabulary."""
        return all(part.normalised for part in self.parts)

    @property
    def summed(self) -> "Makeup":
        """The same by sums over tokens."""
        return self._replace(parts=tuple(part._replace(score=SUM) for part in self.parts))


NOTHING = Makeup()


@dataclass(frozen=True)
class Names:
    """The names of an experiment: what its systems are made of, and the config.yaml of its language
    models.

    A name that is no system is that of a language model.
    """

    style: Style = field(default_factory=load_style)
    systems: Mapping[str, Makeup] = field(default_factory=dict)
    configs: Mapping[str, Mapping] = field(default_factory=dict)

    @cached_property
    def lms(self) -> "Names":
        """The names of language models, whatever systems are called."""
        return replace(self, systems={})

    def makeup(self, name: str) -> Makeup:
        """What a system is made of."""
        return self.systems.get(name, Makeup((Part(name),)))

    def is_mean(self, name: str) -> bool:
        """Whether a system takes a language model by a mean."""
        return self.makeup(name).summed != self.makeup(name)

    def label(self, name: str) -> str:
        """The printed name of a system or language model; systems made of the same are told apart
        by their own names.
        """
        return self.labels.get(name) or self.describe(name)

    @cached_property
    def labels(self) -> dict[str, str]:
        """The printed name of each system."""
        plain = {name: self.describe(name) for name in self.systems}
        said = list(plain.values())
        return {
            name: f"{text} ({name})" if said.count(text) > 1 and text != name else text
            for name, text in plain.items()
        }

    def describe(self, name: str) -> str:
        """What a system is made of, in words."""
        if own := self.style.systems.get(name, Printed()).label:
            return own
        parts, lattices, interpolated = self.makeup(name)
        said = [self.describe_part(part) for part in parts]
        text = " + ".join(map(shorten, said)) if len(said) > 1 else "".join(said)
        text = text or self.describe(FIRST_PASS)
        text = f"{text}, interpolated" if interpolated else text
        return f"{shorten(text)}, lattice" if lattices else text

    def describe_part(self, part: Part) -> str:
        """How a language model enters, in words."""
        said = [self.describe_lm(part.lm), "" if part.normalised else "unnormalised"]
        return ", ".join(filter(None, [*said, part.score != SUM and f"mean over {part.score}s"]))

    def describe_lm(self, name: str) -> str:
        """The printed name of a language model: the Style's, or, where it is called after what it
        is, its criterion, model and noise, or its own.
        """
        if own := self.style.lms.get(name, Printed()).label:
            return own
        if not (found := self.trained(name)):
            return name
        words = [self.style.criteria[found.criterion].label, self.describe_lm(found.model)]
        return ", ".join(filter(None, (" ".join(filter(None, words)), found.noise)))

    def short(self, name: str) -> str:
        """The printed name without what it says in parentheses, and means in one word."""
        return shorten(self.label(name))

    def trained(self, name: str) -> "Trained | None":
        """What a language model is whose name is that: MODEL-CRITERION or MODEL-CRITERION-NOISE as
        its config.yaml has them; PRINTED stands for the paper's sum in place of a noise.
        """
        config = self.configs.get(name, {})
        criterion, model = config.get("criterion", CE), config.get("model", "")
        if criterion not in self.style.criteria:
            return None
        output = config.get("output") or {}
        drawings = ["", output.get("noise", ""), *([PRINTED] if is_printed(output) else [])]
        for called in (criterion, str(self.style.criteria[criterion].label).lower()):
            for trunk in (model, ""):
                for drawn in drawings:
                    if name == "-".join(filter(None, (trunk, called, drawn))):
                        return Trained(trunk, criterion, drawn)
        return None

    def ordered(self, names: Iterable[str]) -> list[str]:
        """Names in the Style's order: single language models, combinations, what stands behind
        OTHERS; lattices after lists.

        Models that differ by criterion alone stand after the model that they are called after, in
        the order of criteria; means after their sums, interpolations after both.
        """
        style, last = self.style, self.style.order.index(OTHERS)
        criteria = list(style.criteria)

        def place(name):
            parts, lattices, interpolated = self.makeup(name)
            summed = [part.lm for part in parts]
            first = self.trained(summed[0]) if summed and summed[0] not in style.lms else None
            trunks = [first.model, *summed[1:]] if first else summed
            if named := name in style.systems and name in style.order:
                rank, combined = style.place(name), 2 * (style.place(name) > last)
            else:
                combined = int(len(parts) > 1)
                rank = last if combined else style.place("".join(trunks))
            if not named and not parts:
                rank = style.place(FIRST_PASS)
            return (
                lattices,
                combined,
                rank,
                len(parts),
                "+".join(trunks),
                criteria.index(first.criterion) if first else -1,
                "+".join(summed),
                interpolated,
                [part[1:] for part in parts],
                name,
            )

        return sorted(names, key=place)

    def looks(self, names: Iterable[str]) -> dict[str, Look]:
        """The look of each name, and of FIRST and ORACLE; those that have none take the spare ones
        in alphabetical order.

        A mean and an interpolation have the colour of the sum, whether that is there or not; a mean
        has a hollow marker and another line, an interpolation a dotted one.
        """
        names = [*names, FIRST, ORACLE]
        keys = {name: self.key_of(name) for name in names}
        own = {key: look for key in keys.values() if (look := self.own_look(key))}
        spare = self.style.spare
        unknown = sorted(set(keys.values()) - own.keys())
        own |= {key: spare[i % len(spare)] for i, key in enumerate(unknown)}
        looks = {
            name: own[key].of_mean if self.is_mean(name) else own[key] for name, key in keys.items()
        }
        return {
            name: look.of_interpolation if self.makeup(name).interpolated else look
            for name, look in looks.items()
        }

    def key_of(self, name: str) -> tuple[str, str]:
        """What a look belongs to: a system of the Style, or what another is made of, by sums."""
        made = self.makeup(name)
        if name in self.style.systems or not made.parts:
            return "", name
        ends = [part.lm + " unnormalised" * (not part.normalised) for part in made.parts]
        return "lattice" * made.lattices, "+".join(ends)

    def own_look(self, key: tuple[str, str]) -> Look | None:
        """The look that the Style has for what `key_of` says."""
        kinds = (self.style.systems, self.style.combinations, self.style.lms)
        found = (kind[key[1]].look for kind in kinds if key[1] in kind and not key[0])
        return next(filter(None, found), None)


class Trained(NamedTuple):
    """What a language model that is called after its training is called after; '' is not named."""

    model: str
    criterion: str
    noise: str


def is_printed(output: Mapping) -> bool:
    """Whether a criterion's settings leave the target out of the sum, as the paper prints it."""
    return output.get("target_in_sum") is False


def shorten(text: str) -> str:
    """A printed name without what it says in parentheses, and means in one word."""
    return re.sub(r" \(.*?\)|(?<=, mean) over \w+s(?=$|,)", "", text)
