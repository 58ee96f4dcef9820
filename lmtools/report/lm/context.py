"""What tables, figures and the page of a language-modelling experiment are made from, and the lines
that say so.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lmtools import __version__
from lmtools.report.artifacts import trained_on
from lmtools.report.lm.experiment import LmExperiment, sets
from lmtools.report.lm.models import Model

HASH = 8  # letters of a hash that are printed
NAMED = 12  # models whose hashes a line can hold
# Test perplexities that papers report, by corpus and by the name of the YAML in conf/: Tables 2 and
# 3 of the GCNN paper (Dauphin et al. 2017); that of the n-gram model is Chelba et al.'s (2013), as
# there.
PAPERS = {
    "gbw": {"kn5": 67.6, "lstm-2048": 43.9, "lstm-2048-2": 39.8, "gcnn-13": 38.1, "gcnn-14b": 31.9},
    "wikitext103": {"lstm-1024": 48.7, "gcnn-8": 44.9, "gcnn-14": 37.2},
}


@dataclass(frozen=True)
class LmReport:
    """What the tables, figures and the page are made of; `command` is the call that makes them."""

    experiment: LmExperiment
    command: str

    sets = ()  # no lists, so that the page has no utterances to browse
    contents = "these tables and figures"

    @property
    def papers(self) -> dict[str, float]:
        """Test perplexities that papers report for this corpus, by the model's name."""
        return PAPERS.get(self.experiment.corpus, {})


def provenance(report: LmReport, models: Iterable[Model]) -> Iterator[str]:
    """Corpus and sizes, then the commands, model hashes and seeds."""
    experiment, models = report.experiment, list(models)
    parts = [f"{name}: {size(name, models)}" for name in sets(models)]
    if training := experiment.training:
        unknown = f", {training.unknown:,} unknown" if training.unknown else ""
        parts.insert(
            0,
            f"train: {training.sentences:,} sentences, {training.tokens:,} {training.scheme}"
            f" tokens{unknown}",
        )
    yield "; ".join([f"Corpus {experiment.title}", *parts]) + "."
    hashes = {model.name: value for model in models if (value := signature(model))}
    yield made_by(experiment.stages, report.command, hashes, models)


def made_by(
    stages: Iterable[Mapping], command: str, hashes: Mapping[str, str], models: Iterable[Model]
) -> str:
    """The line of the recipe's call and the report's `command`, the hash of each model where they
    are few, and the seeds of `models`.
    """
    commands = [*[stage["command"] for stage in stages if stage.get("command")][-1:], command]
    known = (
        ", ".join(f"{name} {value[:HASH]}" for name, value in hashes.items())
        if len(hashes) <= NAMED
        else ""
    )
    models = list(models)
    trained = trained_on(model.config for model in models)
    facts = filter(
        None, [known and f"model hashes {known}", seeds(models), trained, f"lmtools {__version__}"]
    )
    return f"Made by {', then '.join(f'`{command}`' for command in commands)}; {'; '.join(facts)}."


def size(name: str, models: Iterable[Model]) -> str:
    """The sentences and words of a set, as the models' perplexities count them; those that differ
    stand side by side.
    """
    counts = dict.fromkeys(
        (tree.get("sentences"), tree.get("words"))
        for model in models
        if (tree := model.figures.get(name))
    )
    return (
        " or ".join(
            f"{sentences:,} sentences, {words:,} words"
            for sentences, words in counts
            if sentences and words
        )
        or "size unknown"
    )


def signature(model: Model) -> str:
    """The model's hash, as its perplexities say; nothing where they do not."""
    return next(
        (
            str(value)
            for tree in model.figures.values()
            if (value := (tree.get("signature") or {}).get("model"))
        ),
        "",
    )


def seeds(models: Iterable[Model]) -> str:
    """The seeds of the trainings: one for all, or each model's own."""
    known = {model.name: model.config["seed"] for model in models if "seed" in model.config}
    if len(set(known.values())) < 2:
        return f"training seed {next(iter(known.values()))}" if known else ""
    return "training seeds " + ", ".join(f"{name} {seed}" for name, seed in known.items())


def rules(models: Iterable[Model]) -> Iterator[str]:
    """By what rules the perplexities were taken, with the models of each where there are
    several.
    """
    found: dict[str, list[str]] = {}
    for model in models:
        for rule in dict.fromkeys(
            tree["rules"] for tree in model.figures.values() if tree.get("rules")
        ):
            found.setdefault(rule, []).append(model.name)
    for rule, names in found.items():
        yield f"{', '.join(names)}: {rule}." if len(found) > 1 else f"{rule[:1].upper()}{rule[1:]}."
