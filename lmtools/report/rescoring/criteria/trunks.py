"""Which language models of an experiment differ by their training criterion alone, with what each
one's training took.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lmtools.report.experiment import pace
from lmtools.report.names import CE, PRINTED, Names, is_printed
from lmtools.report.page.columns import NONE
from lmtools.report.rescoring.experiment import RescoringExperiment
from lmtools.report.style import Printed


@dataclass(frozen=True)
class Entry:
    """One language model: its criterion and how that is printed and drawn, noise and number of
    samples (None where it has no noise), milliseconds a training step.
    """

    name: str
    criterion: str
    noise: str | None
    samples: int | None
    milliseconds: float | None
    shown: Printed


@dataclass(frozen=True)
class CriteriaTrunk:
    """Language models of one model, objective, architecture and vocabulary, in the order of
    criteria.
    """

    key: str  # in names of files
    title: str
    facts: str
    entries: tuple[Entry, ...]

    @property
    def full(self) -> Entry | None:
        """The model that was trained with the full softmax, to which the others compare."""
        return next((entry for entry in self.entries if entry.criterion == CE), None)

    def titles(self) -> list[str]:
        """Return the criterion of each entry; where several have it, with the noise, the number of
        samples or the model's name.
        """
        forms = (
            lambda one: one.shown.label,
            lambda one: ", ".join(filter(None, (one.shown.label, one.noise))),
            lambda one: ", ".join(
                filter(None, (one.shown.label, one.noise, one.samples and f"K {one.samples:,}"))
            ),
        )
        printed = [[form(one) for one in self.entries] for form in forms]
        unique = [
            next((form[i] for form in printed if form.count(form[i]) == 1), None)
            for i in range(len(self.entries))
        ]
        return [
            title or f"{one.shown.label} ({one.name})"
            for title, one in zip(unique, self.entries, strict=True)
        ]


def trunks(experiment: RescoringExperiment) -> list[CriteriaTrunk]:
    """Return the trunks that were trained with other criteria than the softmax."""
    groups: dict[tuple, list[Entry]] = {}
    for name, tree in experiment.configs.items():
        if tree.get("model") and tree.get("criterion", CE) in experiment.names.style.criteria:
            lines = experiment.learning.get(name, ())
            groups.setdefault(identity(tree), []).append(entry(experiment.names, name, tree, lines))
    groups = {
        key: entries
        for key, entries in groups.items()
        if any(one.criterion != CE for one in entries)
    }
    return [
        trunk(experiment.names, key, list(groups), arranged(experiment.names, entries))
        for key, entries in groups.items()
    ]


def trunk(
    names: Names, key: tuple, keys: Sequence[tuple], entries: tuple[Entry, ...]
) -> CriteriaTrunk:
    """Return a trunk by what `identity` says of it and of the others; those of one model are told
    apart by the settings that differ.
    """
    model, objective, arch, vocabulary = key
    alike = [other for other in keys if other[0] == model]
    own = [
        f"{name} {value}"
        for name, value in arch
        if any((name, value) not in other[2] for other in alike)
    ]
    title, number = names.lms.short(model), alike.index(key) + 1
    facts = ", ".join(
        [f"Model {model}", f"objective {objective}", *(f"{name} {value}" for name, value in arch)]
    )
    if len(alike) == 1:
        return CriteriaTrunk(model, title, f"{facts}; {size(vocabulary)}.", entries)
    return CriteriaTrunk(
        f"{model}-{number}",
        f"{title} ({', '.join(own) or number})",
        f"{facts}; {size(vocabulary)}.",
        entries,
    )


def identity(tree: Mapping) -> tuple:
    """Model, objective, architecture and vocabulary of a config.yaml."""
    arch = tuple(sorted((name, str(value)) for name, value in (tree.get("arch") or {}).items()))
    return (
        tree["model"],
        tree.get("objective", NONE),
        arch,
        tuple((tree.get("vocabulary") or {}).items()),
    )


def size(vocabulary: Sequence) -> str:
    """Return the number of ids to predict, in words."""
    count = dict(vocabulary).get("size")
    return f"vocabulary of {count:,} ids" if count else "vocabulary unknown"


def entry(names: Names, name: str, tree: Mapping, lines: Sequence[Mapping]) -> Entry:
    """Return a language model by its config.yaml and metrics.jsonl; of noise those further settings
    are printed that were given.
    """
    criterion, given = tree.get("criterion", CE), tree.get("output") or {}
    known = {**given, **(tree.get("facts") or {}).get("criterion", {})}
    noise = known.get("noise")
    power = noise == "unigram" and "power" in given and f"power {given['power']}"
    printed = is_printed(given) and f"{PRINTED} sum"
    said = ", ".join(map(str, filter(None, (noise, power, given.get("drawing"), printed))))
    shown = names.style.criteria[criterion]
    return Entry(name, criterion, said or None, known.get("samples"), pace(lines), shown)


def arranged(names: Names, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Entries in the order of criteria, then of noise and samples."""
    order = list(names.style.criteria)
    return tuple(
        sorted(
            entries,
            key=lambda one: (
                order.index(one.criterion),
                one.noise or "",
                one.samples or 0,
                one.name,
            ),
        )
    )


def perplexity(experiment: RescoringExperiment, one: Entry | None, name: str) -> float | None:
    """Word perplexity of a model on a set."""
    return experiment.ppl.get((one.name, name), {}).get("word_ppl") if one else None


def kind(experiment: RescoringExperiment, trunk: CriteriaTrunk, name: str) -> str:
    """Return the kind of a trunk's perplexities: `perplexity` or `pseudo-perplexity`."""
    kinds = {experiment.ppl.get((one.name, name), {}).get("kind") for one in trunk.entries}
    return "pseudo-perplexity" if "pseudo-perplexity" in kinds else "perplexity"


def ratio(value: float | None, reference: float | None) -> float | None:
    """Return `value` by `reference`, where both are there."""
    return value / reference if value is not None and reference else None
