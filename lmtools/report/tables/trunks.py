"""Language models that differ by their training criterion alone, with what each training took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lmtools.report.experiment import Experiment
from lmtools.report.names import CE, Names
from lmtools.report.page.table import NONE
from lmtools.report.parts.models import step_time
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

    @property
    def labels(self) -> list[str]:
        """Return the criterion of each entry, with the model's name where several are alike."""
        kinds = [(entry.criterion, entry.noise, entry.samples) for entry in self.entries]
        return [
            entry.shown.label + (f" ({entry.name})" if kinds.count(kind) > 1 else "")
            for kind, entry in zip(kinds, self.entries, strict=True)
        ]

    @property
    def titles(self) -> dict[Entry, str]:
        """Return the criterion of each entry; where several have it, with the noise, the number of
        samples or the model's name.
        """
        parts = [
            (entry.shown.label, entry.noise, entry.samples and f"K {entry.samples:,}")
            for entry in self.entries
        ]
        forms = [[", ".join(filter(None, part[:size])) for part in parts] for size in (1, 2, 3)]
        unique = [
            next((form[i] for form in forms if form.count(form[i]) == 1), None)
            for i in range(len(parts))
        ]
        return {
            entry: title or f"{entry.shown.label} ({entry.name})"
            for title, entry in zip(unique, self.entries, strict=True)
        }


def list_trunks(experiment: Experiment) -> list[CriteriaTrunk]:
    """Return the trunks that were trained with other criteria than the softmax."""
    names, groups = experiment.names, {}
    for name, tree in experiment.configs.items():
        if tree.get("model") and tree.get("criterion", CE) in names.style.criteria:
            entry = make_entry(names, name, tree, experiment.learning.get(name, ()))
            groups.setdefault(identity(tree), []).append(entry)
    groups = {
        key: entries
        for key, entries in groups.items()
        if any(entry.criterion != CE for entry in entries)
    }
    return [make_trunk(names, key, list(groups), entries) for key, entries in groups.items()]


def make_trunk(
    names: Names, key: tuple, keys: Sequence[tuple], entries: Sequence[Entry]
) -> CriteriaTrunk:
    """Return a trunk by what `identity` says of it and of the others; those of one model are told
    apart by the settings that differ.
    """
    model, objective, arch, vocabulary = key
    alike = [other for other in keys if other[0] == model]
    settings = [f"{name} {value}" for name, value in arch]
    apart = [
        text
        for text, setting in zip(settings, arch, strict=True)
        if any(setting not in other[2] for other in alike)
    ]
    count = dict(vocabulary).get("size")
    size = f"vocabulary of {count:,} ids" if count else "vocabulary unknown"
    facts = ", ".join([f"Model {model}", f"objective {objective}", *settings])
    title, number, order = names.lms.short(model), alike.index(key) + 1, list(names.style.criteria)
    arranged = sorted(
        entries, key=lambda e: (order.index(e.criterion), e.noise or "", e.samples or 0, e.name)
    )
    several = len(alike) > 1
    return CriteriaTrunk(
        f"{model}-{number}" if several else model,
        f"{title} ({', '.join(apart) or number})" if several else title,
        f"{facts}; {size}.",
        tuple(arranged),
    )


def identity(tree: Mapping) -> tuple:
    """Return model, objective, architecture and vocabulary of a config.yaml."""
    arch = tuple(sorted((name, str(value)) for name, value in (tree.get("arch") or {}).items()))
    vocabulary = tuple((tree.get("vocabulary") or {}).items())
    return tree["model"], tree.get("objective", NONE), arch, vocabulary


def make_entry(names: Names, name: str, tree: Mapping, lines: Sequence[Mapping]) -> Entry:
    """Return a language model by its config.yaml and metrics.jsonl; of noise those further settings
    are printed that were given.
    """
    criterion, given = tree.get("criterion", CE), tree.get("output") or {}
    known = {**given, **(tree.get("facts") or {}).get("criterion", {})}
    noise = known.get("noise")
    power = noise == "unigram" and "power" in given and f"power {given['power']}"
    # as the sampling paper prints it
    printed = given.get("target_in_sum") is False and "printed sum"
    settings = ", ".join(map(str, filter(None, (noise, power, given.get("drawing"), printed))))
    return Entry(
        name,
        criterion,
        settings or None,
        known.get("samples"),
        milliseconds=step_time(lines),
        shown=names.style.criteria[criterion],
    )


def kind_of(experiment: Experiment, trunk: CriteriaTrunk, name: str) -> str:
    """Return the kind of a trunk's perplexities: `perplexity` or `pseudo-perplexity`."""
    kinds = {experiment.ppl.get((entry.name, name), {}).get("kind") for entry in trunk.entries}
    return "pseudo-perplexity" if "pseudo-perplexity" in kinds else "perplexity"
