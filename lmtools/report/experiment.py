"""Base of every report: an experiment's directory, the command that reports on it, and the lines
that name both.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from lmtools.corpus import Header
from lmtools.errors import UserError
from lmtools.report.artifacts import (
    read_configs,
    read_learning,
    read_ppl,
    read_speed,
    read_stages,
    read_training,
    trained_on,
)
from lmtools.report.names import Names
from lmtools.version import __version__

HASH = 8  # letters of a hash that are printed
PERPLEXITIES = {  # of QUANTITIES, by what `lmtools ppl` calls them
    "ppl": "word_ppl",
    "sentence-mean": "sentence_ppl_mean",
    "sentence-median": "sentence_ppl_median",
}


class Artifact(NamedTuple):
    """An artifact of experiments: its reader, which takes the directory, and what to say where it
    finds none; nothing of what nobody needs to have.
    """

    read: Callable[[Path], object]
    absent: str = ""


CONFIGS = Artifact(read_configs)
TRAINING = Artifact(read_training)
PPL = Artifact(
    read_ppl,
    "ppl/LM/SET.json: absent, so there is no table of perplexities (`lmtools ppl --out` writes"
    " them)",
)
LEARNING = Artifact(
    read_learning,
    "lm/LM/metrics.jsonl: absent, so there is nothing to say of trainings (`lmtools train` writes"
    " them)",
)
SPEED = Artifact(
    read_speed,
    "bench/speed.json: absent, so there is no figure of run time (`lmtools bench score --out`"
    " writes it)",
)
STAGES = Artifact(
    read_stages,
    "stages/N.json: absent, so it is not known how the time divides (the recipe's run.sh writes"
    " them)",
)


def read_artifacts(home: Path, parts: Mapping[str, Artifact]) -> tuple[dict, list[str]]:
    """Read each part of the experiment in directory `home`; return them with a line for each that
    is absent.
    """
    if not home.is_dir():
        raise UserError(
            f"{home}: no such directory; give the experiment's directory, which run.sh calls exp"
        )
    found = {name: part.read(home) for name, part in parts.items()}
    lost = [part.absent for name, part in parts.items() if part.absent and not found[name]]
    return found, [f"{home}/{line}" for line in lost]


def refuse_lists(nbests: Sequence[str], subject: str, what: str) -> None:
    """Raise UserError where an experiment that has no N-best lists is given some."""
    if nbests:
        raise UserError(
            f"{nbests[0]}: a report of {subject} has no N-best lists; leave out --nbest, or --what"
            f" {what}"
        )


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """All that a report speaks of; mappings are in printing order, and what is absent is named in
    `absent`. `command` is the call that reports.
    """

    home: Path
    command: str
    names: Names
    given_title: str | None
    stages: Sequence[Mapping]
    configs: Mapping[str, Mapping]  # config.yaml, by language model
    learning: Mapping[str, Sequence[Mapping]]  # the lines of metrics.jsonl, by language model
    ppl: Mapping[tuple[str, str], Mapping]  # by (language model, set)
    speed: Mapping | None = None  # what `lmtools bench score` wrote
    training: Header | None  # what the training corpus says of itself
    absent: tuple[str, ...]

    contents: ClassVar[str] = "these tables and figures"

    @property
    def corpus(self) -> str | None:
        """The recipe's option: a name, or the last part of a directory."""
        return (self.option("corpus") or "").rstrip("/").rpartition("/")[2] or None

    def option(self, name: str) -> str | None:
        """Return one of the recipe's options, as the last stage had it; None where it has none, or
        where no recipe ran.
        """
        options = [stage.get("options") or {} for stage in reversed(self.stages)]
        return next((one[name] for one in options if one.get(name)), None)

    @property
    def options(self) -> set[str]:
        """Return the values of the recipe's options that identify the experiment: --corpus, and
        --pair.
        """
        return {one for one in (self.corpus, self.option("pair")) if one}

    @property
    def title(self) -> str:
        """The title given, or the recipe's name, and its corpus where the manifests tell."""
        recipe = Path(os.path.abspath(self.home)).parent.name
        return self.given_title or (f"{recipe} ({self.corpus})" if self.corpus else recipe)

    @property
    def sizes(self) -> list[str]:
        """Return a line on each set and its size."""
        return []

    @property
    def remarks(self) -> list[str]:
        """Sentences on how figures are to be read."""
        return []

    @property
    def hashes(self) -> Mapping[str, str]:
        """The hash of each language model that figures are of."""
        return {}

    @property
    def draws(self) -> list[str]:
        """Return a line on each further random draw, with its seed."""
        return []

    def label(self, name: str) -> str:
        """Return the printed name of a system or language model."""
        return self.names.label(name)

    def models_in(self, name: str) -> list[str]:
        """Return the language models that a system, or a language model, is made of."""
        return [part.lm for part in self.names.makeup(name).parts]

    def quantity(self, kind: str, name: str, place: str) -> float | None:
        """Return a figure of a system or language model: one of QUANTITIES, on a set or device;
        None where it was not measured.
        """
        if kind in PERPLEXITIES:
            return self.ppl.get((name, place), {}).get(PERPLEXITIES[kind])
        if kind == "time":
            return pace(self.learning.get(name, ()))
        return count_parameters(self.configs.get(name, {})) if kind == "parameters" else None

    @property
    def extent(self) -> str:
        """The corpus, and the sizes of sets and of the training text."""
        sizes = list(self.sizes)
        if text := self.training:
            unknown = f", {text.unknown:,} unknown" if text.unknown else ""
            sizes.append(
                f"LM text: {text.sentences:,} sentences, {text.tokens:,} {text.scheme}"
                f" tokens{unknown}"
            )
        return "; ".join([f"Corpus {self.title}", *sizes])

    def provenance(self) -> Iterator[str]:
        """Corpus and sizes, how to read figures, then the commands, model hashes and seeds."""
        yield f"{self.extent}."
        yield from self.remarks
        every = (stage["command"] for stage in self.stages if stage.get("command"))
        commands = {command.split()[0]: command for command in every}.values()  # one a script
        hashes = ", ".join(f"{name} {value[:HASH]}" for name, value in self.hashes.items())
        facts = (
            hashes and f"model hashes {hashes}",
            training_seeds(self.configs),
            trained_on(self.configs.values()),
            *self.draws,
            f"lmtools {__version__}",
        )
        made = ", then ".join(f"`{command}`" for command in (*commands, self.command))
        yield f"Made by {made}; {'; '.join(filter(None, facts))}."

    def browsed(self) -> dict | None:
        """Return the content of the page's utterance browser; None without utterances."""
        return None


def training_seeds(configs: Mapping[str, Mapping]) -> str:
    """Return the seeds of the trainings: one for all, or each model's own."""
    seeds = {name: tree["seed"] for name, tree in configs.items() if "seed" in tree}
    if len(set(seeds.values())) < 2:
        return f"training seed {next(iter(seeds.values()))}" if seeds else ""
    return "training seeds " + ", ".join(f"{name} {seed}" for name, seed in seeds.items())


def pace(lines: Sequence[Mapping]) -> float | None:
    """Milliseconds a training step between the first and the last line of a training."""
    seen = [line for line in lines if "train_loss" in line and "seconds" in line]
    if not seen or seen[-1]["step"] == seen[0]["step"]:
        return None
    return 1000 * (seen[-1]["seconds"] - seen[0]["seconds"]) / (seen[-1]["step"] - seen[0]["step"])


def count_parameters(config: Mapping) -> int | None:
    """Return the numbers that a language model learnt, of n-grams the n-grams; None where its
    config.yaml does not say.
    """
    facts = config.get("facts") or {}
    return facts.get("parameters") or sum(config.get("counts", ())) or None
