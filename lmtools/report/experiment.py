"""An experiment as its report sees it: what lies in its directory, parted into lists, language
models and pairs, and the lines that name it.
"""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lmtools.base.doors import open_door
from lmtools.base.errors import UserError
from lmtools.report.artifacts import ARTIFACTS
from lmtools.report.lists import RescoredLists, arrange, collect_lists
from lmtools.report.measure import lists_beside
from lmtools.report.models import Model, list_absent, list_sizes, models_of
from lmtools.report.rows import FigureRows, rows_of
from lmtools.report.style import Names, Style, load_style
from lmtools.text.corpus import Header
from lmtools.version import __version__

RESCORING, LM, STS = "rescoring", "lm", "sts"  # kinds of experiments
HASH = 8  # letters of a hash that are printed
# by kind: the artifacts that are read; of those with ? nobody misses any
READ = {
    RESCORING: "systems ppl learning lattices? networks? scored? stages hashes configs? training?",
    LM: "configs ppl learning grids? stages training?",
    STS: "judged learning stages configs? ppl? training?",
}
MACHINE = "{processor} ({capability}), threads {threads}, torch {torch}, {device}"


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """All that a report speaks of, in printing order; `absent` names what is not there."""

    kind: str
    home: Path
    command: str
    names: Names
    given_title: str | None
    stages: Sequence[Mapping]
    configs: Mapping[str, Mapping]  # config.yaml, by language model
    learning: Mapping[str, Sequence[Mapping]]  # the lines of metrics.jsonl, by language model
    ppl: Mapping[tuple[str, str], Mapping]  # by (language model, set)
    training: Header | None  # what the training corpus says of itself
    absent: tuple[str, ...]
    lists: RescoredLists | None = None
    pairs: Any = None  # a vectors.judged.JudgedPairs
    models: Mapping[str, Model]
    grids: Collection[str] = ()  # language models that recipes compare apart

    @cached_property
    def rows(self) -> FigureRows:
        return FigureRows(rows_of(self))

    @property
    def main(self) -> list[Model]:
        """The models that stand for themselves: all but those that were trained for a grid."""
        return [model for name, model in self.models.items() if name not in self.grids]

    @property
    def corpus(self) -> str | None:
        """The recipe's option: a name, or the last part of a directory."""
        return (self.option("corpus") or "").rstrip("/").rpartition("/")[2] or None

    def option(self, name: str) -> str | None:
        """Return one of the recipe's options, as the last stage that has it had it."""
        options = [stage.get("options") or {} for stage in reversed(self.stages)]
        return next((values[name] for values in options if values.get(name)), None)

    @property
    def title(self) -> str:
        """The title given, or the recipe's name, and its corpus where the manifests tell."""
        recipe = Path(os.path.abspath(self.home)).parent.name
        return self.given_title or (f"{recipe} ({self.corpus})" if self.corpus else recipe)

    @property
    def browsed(self) -> RescoredLists | None:
        """The lists of which the page shows every utterance."""
        return None if self.kind == STS else self.lists

    def label(self, name: str) -> str:
        """Return the printed name of a system or language model."""
        return (self.pairs and self.pairs.labels.get(name)) or self.names.label(name)

    def models_in(self, name: str) -> list[str]:
        """Return the language models that a system, or a language model, is made of."""
        if self.pairs and name in self.pairs.ways:
            return [self.pairs.ways[name].lm]
        return [part.lm for part in self.names.makeup(name).parts]

    @property
    def extent(self) -> str:
        """The corpus, and the sizes of sets and of the training text."""
        sizes = list(list_sizes(self.models.values())) if self.kind == LM else []
        sizes += (self.pairs or self.lists).sizes if self.pairs or self.lists else []
        if text := self.training:
            unknown = f", {text.unknown:,} unknown" if text.unknown else ""
            sizes.append(
                f"LM text: {text.sentences:,} sentences, {text.tokens:,} {text.scheme}"
                f" tokens{unknown}"
            )
        return "; ".join([f"Corpus {self.title}", *sizes])

    @property
    def hashes(self) -> Mapping[str, str]:
        if self.kind != LM:
            return (self.pairs or self.lists).hashes
        return {model.name: model.hash for model in self.models.values() if model.hash}

    @property
    def seeds(self) -> str:
        """The seeds of the trainings: one for all, or each model's."""
        seeds = {name: tree["seed"] for name, tree in self.configs.items() if "seed" in tree}
        if len(set(seeds.values())) < 2:
            return f"training seed {next(iter(seeds.values()))}" if seeds else ""
        return "training seeds " + ", ".join(f"{name} {seed}" for name, seed in seeds.items())

    def provenance(self) -> Iterator[str]:
        """Yield corpus and sizes, how to read figures, then commands, model hashes and seeds."""
        part = self.pairs or self.lists
        yield f"{self.extent}."
        yield from part.remarks if part else ()
        every = (stage["command"] for stage in self.stages if stage.get("command"))
        commands = {command.split()[0]: command for command in every}.values()  # one a script
        hashes = ", ".join(f"{name} {value[:HASH]}" for name, value in self.hashes.items())
        facts = (
            hashes and f"model hashes {hashes}",
            self.seeds,
            trained_on(self.configs.values()),
            *getattr(part, "draws", ()),
            f"lmtools {__version__}",
        )
        calls = ", then ".join(f"`{command}`" for command in (*commands, self.command))
        yield f"Made by {calls}; {'; '.join(filter(None, facts))}."


def trained_on(configs: Iterable[Mapping]) -> str:
    """Return on what processors the models were trained; nothing where no config.yaml says it."""
    facts = [config["machine"] for config in configs if isinstance(config.get("machine"), Mapping)]
    known = (defaultdict(lambda: "unknown", fact) for fact in facts)
    machines = dict.fromkeys(map(MACHINE.format_map, known))
    return f"trained on {' and '.join(machines)}" if machines else ""


def recognise(home: Path, nbests: Sequence[str]) -> str:
    """Return the kind of the experiment in directory `home`, by what there is."""
    if any(home.glob("sts/*/*.json")):
        return STS
    if nbests or any(home.glob("rescore/*/*.txt")) or lists_beside(home):
        return RESCORING
    models = any(home.glob("lm/*/config.yaml")) or any(home.glob("ppl/*/*.json"))
    return LM if models else RESCORING


def read_artifacts(home: Path, kinds: Iterable[str]) -> dict:
    """Read what reports of these kinds speak of in directory `home`, by name."""
    if not home.is_dir():
        raise UserError(
            f"{home}: no such directory; give the experiment's directory, which run.sh calls exp"
        )
    names = dict.fromkeys(name.rstrip("?") for kind in kinds for name in READ[kind].split())
    return {name: ARTIFACTS[name][0](home) for name in names}


def list_missing(home: Path, kind: str, parts: Mapping) -> list[str]:
    names = [name for name in READ[kind].split() if not parts.get(name, True)]
    return [f"{home}/{ARTIFACTS[name][1]}" for name in names]


def has_lists(home: Path, kind: str, nbests: Sequence[str]) -> bool:
    """Return whether a report of that kind speaks of lists; UserError for unread ones."""
    rescored = any(home.glob("rescore/*/*.txt"))
    if kind != STS:
        return kind == RESCORING or bool(nbests or (rescored and lists_beside(home)))
    if nbests and not rescored:
        raise UserError(
            f"{nbests[0]}: a report of semantic textual similarity without rescored texts has no"
            f" N-best lists; leave out --nbest, or --what {kind}"
        )
    return rescored


def collect(
    home: Path,
    kind: str,
    nbests: Sequence[str] = (),
    title: str | None = None,
    command: str = "lmtools report",
    style: Style | None = None,
    words: Any = None,
) -> Experiment:
    """Collect the experiment of that kind in directory `home`, its lists from the files `nbests`
    (default: data/*/nbest.jsonl beside it). `command` is what the tables say made them, `style` has
    names, order and looks, `words` is the glossary whose words are judged and marked.
    """
    names, with_lists = Names(style or load_style()), has_lists(home, kind, nbests)
    if words:
        check_words(words, kind, with_lists)
    trees = read_artifacts(home, [*[RESCORING] * with_lists, kind])
    parts, absent = {}, list_missing(home, kind, trees)
    if with_lists:
        parts["lists"], dropped = collect_lists(home, nbests, trees, names.style)
    if words:
        parts["lists"] = replace(parts["lists"], glossary=words.load())
    if kind == RESCORING:
        names, absent = parts["lists"].names, [*absent, *dropped]
        arranged = ("ppl", "learning", "configs")
        trees |= {name: arrange(trees[name], names.lms) for name in arranged}
    if kind == STS:
        collect_pairs = open_door("vectors", "judged:collect_pairs", f"{home}/sts")
        parts["pairs"], dropped = collect_pairs(home, trees["judged"], names)
        absent += dropped
    apart = {sample.name for sample in parts["lists"].samples} if kind == LM and with_lists else ()
    ppl = {key: tree for key, tree in trees["ppl"].items() if key[1] not in apart}
    models = models_of(names.lms, trees | {"ppl": ppl})
    if kind == LM:
        absent += list_absent(home, models)
        absent += [*list_missing(home, RESCORING, trees), *dropped] if with_lists else []
    kept = ("stages", "configs", "learning", "ppl", "grids", "training")
    parts |= {name: trees[name] for name in kept if name in trees}
    parts |= {"models": models, "names": names, "absent": tuple(dict.fromkeys(absent))}
    return Experiment(kind=kind, home=home, command=command, given_title=title, **parts)


def check_words(words, kind: str, with_lists: bool) -> None:
    """UserError for a glossary where no page shows utterances."""
    if kind == STS or not with_lists:
        raise UserError(
            f"{words.path}: a report of kind {kind} has no rescored utterances whose words could be"
            f" marked; leave out --words, or --what {kind}"
        )
