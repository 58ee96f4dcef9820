"""Reads what an experiment left behind: lists, rescored texts, weights, perplexities, learning
curves, speed, stages.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmtools.corpus import Header, read_header
from lmtools.errors import UserError
from lmtools.formats import jsonl, kaldi_text, lists
from lmtools.report.artifacts import (
    by_name,
    numbered,
    read_configs,
    read_json,
    read_lattices,
    read_manifest,
    read_metrics,
    read_models,
    read_ppl,
)
from lmtools.report.names import ordered
from lmtools.report.shapes import fitting
from lmtools.rescore import ScoreColumns, Weights, load, read_columns, set_hash
from lmtools.rescore.features import summed
from lmtools.types import NBest

SUFFIXES = ("", ".gz", ".xz")


@dataclass(frozen=True)
class Sample:
    """The N-best lists of one set, with references; `tuned`: the weights were chosen on it, so that
    its figures flatter.
    """

    name: str
    path: Path
    nbests: tuple[NBest, ...]
    tuned: bool

    @property
    def refs(self) -> dict[str, str]:
        """Reference by utterance."""
        return {nbest.utt: nbest.ref for nbest in self.nbests}


@dataclass(frozen=True)
class System:
    """One way of choosing: what `lmtools tune` found (None if that is not there) and the texts
    chosen in each set.
    """

    weights: Weights | None
    texts: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Experiment:
    """All that the report speaks of; mappings are in printing order, and what is absent is named in
    `absent`.
    """

    home: Path
    title: str
    metric: str
    samples: tuple[Sample, ...]
    systems: Mapping[str, System]
    ppl: Mapping[tuple[str, str], Mapping]  # by (language model, set)
    learning: Mapping[str, Sequence[Mapping]]  # by language model: the lines of metrics.jsonl
    speed: Mapping | None
    # by (system, set): what rescoring lattices took and gave
    lattices: Mapping[tuple[str, str], Mapping]
    stages: Sequence[Mapping]
    models: Mapping[str, str]  # language model -> hash, from the headers of its scores
    configs: Mapping[str, Mapping]  # config.yaml, by language model
    training: Header | None
    absent: tuple[str, ...]

    @property
    def judged(self) -> tuple[Sample, ...]:
        """The sets that weights were not tuned on; all, if there are no others."""
        return tuple(sample for sample in self.samples if not sample.tuned) or self.samples

    @property
    def seeds(self) -> dict[str, int]:
        """The seed of each neural model's training."""
        return {name: tree["seed"] for name, tree in self.configs.items() if "seed" in tree}

    @property
    def features(self) -> list[str]:
        """The features that any system has a weight for, in the order of the systems."""
        weights = [system.weights for system in self.systems.values() if system.weights]
        return list(dict.fromkeys(name for one in weights for name in one.features))

    def columns(self, sample: Sample) -> ScoreColumns:
        """The columns of `sample` that weights name, of language models whose scores are there:
        sums and means.
        """
        paths = {
            path.parent.name: path
            for path in by_name(self.home.glob(f"score/*/{sample.name}.scores*"))
        }
        specs = [f"{name}={paths[summed(name)]}" for name in self.features if summed(name) in paths]
        return read_columns(specs, sample.nbests, sample.path)


def collect(home: Path, nbests: Sequence[str] = (), title: str | None = None) -> Experiment:
    """The experiment in directory `home`, its lists from the files `nbests` (default:
    data/*/nbest.jsonl beside it).
    """
    if not home.is_dir():
        raise UserError(
            f"{home}: no such directory; give the experiment's directory, which run.sh calls exp"
        )
    systems = read_systems(home)
    samples, dropped = read_samples([Path(path) for path in nbests] or found(home), systems)
    stages = [read_manifest(path) for path in numbered(home / "stages")]
    speed = home / "bench/speed.json"
    parts = {
        "systems": {name: keep(system, samples) for name, system in systems.items()},
        "ppl": read_ppl(home),
        "learning": {
            path.parent.name: read_metrics(path)
            for path in by_name(home.glob("lm/*/metrics.jsonl"))
        },
        "speed": read_json(speed, "speed") if speed.exists() else None,
        "lattices": read_lattices(home),
        "stages": stages,
        "models": read_models(home),
    }
    missing = [
        f"{home}/{ABSENT[name]}" for name, part in parts.items() if not part and name in ABSENT
    ]
    training = home / "train.bin"
    return Experiment(
        home,
        title or default_title(home, stages),
        next((system.weights.metric for system in systems.values() if system.weights), "wer"),
        samples,
        **parts,
        configs=read_configs(home),
        training=read_header(training)[0] if training.exists() else None,
        absent=(*missing, *dropped),
    )


ABSENT = {
    "systems": (
        "rescore/SYSTEM/SET.txt: absent, so there are no rescored systems (`lmtools rescore` writes"
        " them)"
    ),
    "ppl": (
        "ppl/LM/SET.json: absent, so there is no table of perplexities (`lmtools ppl --out` writes"
        " them)"
    ),
    "learning": (
        "lm/LM/metrics.jsonl: absent, so there are no learning curves (`lmtools train` writes them)"
    ),
    "speed": (
        "bench/speed.json: absent, so there is no figure of run time (`lmtools bench score --out`"
        " writes it)"
    ),
    "stages": (
        "stages/N.json: absent, so it is not known how the time divides (the recipe's run.sh writes"
        " them)"
    ),
    "models": (
        "score/LM/SET.scores: absent, so no model hashes are given (`lmtools score` writes them)"
    ),
}


def default_title(home: Path, stages: Sequence[Mapping]) -> str:
    """The recipe's name, and its corpus where the manifests tell."""
    corpus = next(
        (stage["options"]["corpus"] for stage in stages if stage.get("options", {}).get("corpus")),
        None,
    )
    recipe = Path(os.path.abspath(home)).parent.name
    return f"{recipe} ({corpus})" if corpus else recipe


def found(home: Path) -> list[Path]:
    """The N-best files beside the experiment, by name of their sets; UserError if there are
    none.
    """
    if not (paths := lists_beside(home)):
        raise UserError(
            f"{data_beside(home)}/*/nbest.jsonl: no N-best lists (nor .gz, .xz); give them with"
            " --nbest"
        )
    return paths


def lists_beside(home: Path) -> list[Path]:
    """The N-best files beside the experiment, by name of their sets."""
    data = data_beside(home)
    return sorted(path for suffix in SUFFIXES for path in data.glob(f"*/nbest.jsonl{suffix}"))


def data_beside(home: Path) -> Path:
    """Where a recipe has its data."""
    return (
        home / ".." / "data" if home.is_symlink() else Path(os.path.normpath(home / "..")) / "data"
    )


def set_name(path: Path) -> str:
    """`dev` of data/dev/nbest.jsonl.gz and of dev.jsonl."""
    stem = path.name.partition(".")[0]
    return path.absolute().parent.name if stem == "nbest" else stem


def read_samples(
    paths: Sequence[Path], systems: Mapping[str, System]
) -> tuple[tuple[Sample, ...], list[str]]:
    """The sets in `paths`, those first that weights were tuned on, and a line for each set without
    references.
    """
    found, dropped = {}, []
    for path in paths:
        name = set_name(path)
        if name in found:
            raise UserError(
                f"{path}: a second N-best list of set {name!r}; keep one, or choose with --nbest"
            )
        if nbests := with_references(path):
            found[name] = path, tuple(nbests)
        else:
            dropped.append(
                f"{path}: no references in it or in {path.parent}/text, so set {name!r} is left out"
            )
    if not found:
        raise UserError(
            f"{paths[0]}: no references in the lists or in {paths[0].parent}/text; attach them with"
            " lmtools convert --ref"
        )
    named = {name for name, (_, nbests) in found.items() if is_tuned(name, nbests, systems)}
    seen = {key for name in named for key in map(content, found[name][1])}
    samples = [
        Sample(name, path, nbests, name in named or not seen.isdisjoint(map(content, nbests)))
        for name, (path, nbests) in found.items()
    ]
    return tuple(sorted(samples, key=lambda sample: not sample.tuned)), dropped


def content(nbest: NBest) -> tuple:
    """What makes two lists the same: a set that shares lists with the tuning set was tuned on, in
    part.
    """
    return nbest.utt, *(hyp.text for hyp in nbest.hyps)


def with_references(path: Path) -> list[NBest]:
    """The lists in `path`, with the references of the `text` beside it if they hold none; empty if
    neither does.
    """
    nbests = list(jsonl.read(path))
    if not nbests:
        raise UserError(f"{path}: no utterances; write the lists again")
    if any(nbest.ref is None for nbest in nbests):
        text = path.parent / "text"
        return lists.attach_refs(nbests, kaldi_text.read(text), path, text) if text.exists() else []
    return nbests


def is_tuned(name: str, nbests: Sequence[NBest], systems: Mapping[str, System]) -> bool:
    """Whether weights say that they were tuned on these lists or on a set so called; without
    weights, whether it is called dev or valid.
    """
    sets = [system.weights.dev for system in systems.values() if system.weights]
    if not sets:
        return name.startswith(("dev", "valid"))
    return name in {set_name(Path(dev.path)) for dev in sets} or set_hash(nbests) in {
        dev.sha256 for dev in sets
    }


def read_systems(home: Path) -> dict[str, System]:
    """The systems with rescored texts in `home`, in printing order."""
    systems = {}
    for name in ordered({path.parent.name for path in home.glob("rescore/*/*.txt")}):
        weights = home / "tune" / name / "weights.json"
        texts = {
            path.stem: kaldi_text.read(path)
            for path in sorted((home / "rescore" / name).glob("*.txt"))
        }
        tuned = load(weights) if weights.exists() else None
        if tuned:
            fitting(
                tuned.search, "curves", f"{weights}: search", "write it again with lmtools tune"
            )
        systems[name] = System(tuned, texts)
    return systems


def keep(system: System, samples: Sequence[Sample]) -> System:
    """`system` with the texts of `samples` only."""
    return System(
        system.weights,
        {
            sample.name: system.texts[sample.name]
            for sample in samples
            if sample.name in system.texts
        },
    )
