"""Reads what an experiment left behind: lists, rescored texts, weights, perplexities, learning curves, speed, stages."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmtools.config import load_yaml
from lmtools.corpus import Header, read_header
from lmtools.errors import UserError
from lmtools.files import read_bytes, read_lines
from lmtools.formats import jsonl, kaldi_text, lists, scores
from lmtools.report.names import ordered
from lmtools.rescore import Weights, load, set_hash
from lmtools.types import NBest

SUFFIXES = ("", ".gz", ".xz")


@dataclass(frozen=True)
class Sample:
    """The N-best lists of one set, with references; `tuned`: the weights were chosen on it, so that its figures flatter."""

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
    """One way of choosing: what `lmtools tune` found (None if that is not there) and the texts chosen in each set."""

    weights: Weights | None
    texts: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Experiment:
    """All that the report speaks of; mappings are in printing order, and what is absent is named in `absent`."""

    home: Path
    title: str
    metric: str
    samples: tuple[Sample, ...]
    systems: Mapping[str, System]
    ppl: Mapping[tuple[str, str], Mapping]  # by (language model, set)
    learning: Mapping[str, Sequence[Mapping]]  # by language model: the lines of metrics.jsonl
    speed: Mapping | None
    stages: Sequence[Mapping]
    models: Mapping[str, str]  # language model -> hash, from the headers of its scores
    seeds: Mapping[str, int]  # of trainings, by language model
    training: Header | None
    absent: tuple[str, ...]

    @property
    def judged(self) -> tuple[Sample, ...]:
        """The sets that weights were not tuned on; all, if there are no others."""
        return tuple(sample for sample in self.samples if not sample.tuned) or self.samples

    def columns(self, sample: Sample) -> dict[str, list[np.ndarray]]:
        """Each language model's log-probabilities (hypotheses,) of the lists of `sample`."""
        paths = {path.parent.name: path for path in by_name(self.home.glob(f"score/*/{sample.name}.scores*"))}
        return {name: scores.columns(scores.read(path), sample.nbests, path) for name, path in paths.items()}


def collect(home: Path, nbests: Sequence[str] = (), title: str | None = None) -> Experiment:
    """The experiment in directory `home`, its lists from the files `nbests` (default: data/*/nbest.jsonl beside it)."""
    if not home.is_dir():
        raise UserError(f"{home}: no such directory; give the experiment's directory, which run.sh calls exp")
    systems = read_systems(home)
    samples, dropped = read_samples([Path(path) for path in nbests] or found(home), systems)
    stages = [read_json(path) for path in numbered(home / "stages")]
    speed = home / "bench/speed.json"
    parts = {
        "systems": {name: keep(system, samples) for name, system in systems.items()},
        "ppl": read_ppl(home),
        "learning": {path.parent.name: read_metrics(path) for path in by_name(home.glob("lm/*/metrics.jsonl"))},
        "speed": read_json(speed, "rows") if speed.exists() else None,
        "stages": stages,
        "models": read_models(home),
    }
    missing = [f"{home}/{ABSENT[name]}" for name, part in parts.items() if not part]
    training = home / "train.bin"
    return Experiment(
        home,
        title or default_title(home, stages),
        next((system.weights.metric for system in systems.values() if system.weights), "wer"),
        samples,
        **parts,
        seeds=read_seeds(home),
        training=read_header(training)[0] if training.exists() else None,
        absent=(*missing, *dropped),
    )


ABSENT = {
    "systems": "rescore/SYSTEM/SET.txt: absent, so there are no rescored systems (`lmtools rescore` writes them)",
    "ppl": "ppl/LM/SET.json: absent, so there is no table of perplexities (`lmtools ppl --out` writes them)",
    "learning": "lm/LM/metrics.jsonl: absent, so there are no learning curves (`lmtools train` writes them)",
    "speed": "bench/speed.json: absent, so there is no figure of run time (`lmtools bench score --out` writes it)",
    "stages": "stages/N.json: absent, so it is not known how the time divides (the recipe's run.sh writes them)",
    "models": "score/LM/SET.scores: absent, so no model hashes are given (`lmtools score` writes them)",
}


def default_title(home: Path, stages: Sequence[Mapping]) -> str:
    """The recipe's name, and its corpus where the manifests tell."""
    corpus = next((stage["options"]["corpus"] for stage in stages if stage.get("options", {}).get("corpus")), None)
    recipe = Path(os.path.abspath(home)).parent.name
    return f"{recipe} ({corpus})" if corpus else recipe


def found(home: Path) -> list[Path]:
    """The N-best files beside the experiment, by name of their sets."""
    data = home / ".." / "data" if home.is_symlink() else Path(os.path.normpath(home / "..")) / "data"
    paths = [path for suffix in SUFFIXES for path in data.glob(f"*/nbest.jsonl{suffix}")]
    if not paths:
        raise UserError(f"{data}/*/nbest.jsonl: no N-best lists (nor .gz, .xz); give them with --nbest")
    return sorted(paths)


def set_name(path: Path) -> str:
    """`dev` of data/dev/nbest.jsonl.gz and of dev.jsonl."""
    stem = path.name.partition(".")[0]
    return path.absolute().parent.name if stem == "nbest" else stem


def read_samples(paths: Sequence[Path], systems: Mapping[str, System]) -> tuple[tuple[Sample, ...], list[str]]:
    """The sets in `paths`, those first that weights were tuned on, and a line for each set without references."""
    samples, dropped = [], []
    for path in paths:
        name = set_name(path)
        if any(name == sample.name for sample in samples):
            raise UserError(f"{path}: a second N-best list of set {name!r}; keep one, or choose with --nbest")
        nbests = with_references(path)
        if nbests:
            samples.append(Sample(name, path, tuple(nbests), is_tuned(name, nbests, systems)))
        else:
            dropped.append(f"{path}: no references in it or in {path.parent}/text, so set {name!r} is left out")
    if not samples:
        raise UserError(f"{paths[0]}: no references in the lists or in {paths[0].parent}/text; attach them with lmtools convert --ref")
    return tuple(sorted(samples, key=lambda sample: not sample.tuned)), dropped


def with_references(path: Path) -> list[NBest]:
    """The lists in `path`, with the references of the `text` beside it if they hold none; empty if neither does."""
    nbests = jsonl.read(path)
    if not nbests:
        raise UserError(f"{path}: no utterances; write the lists again")
    if any(nbest.ref is None for nbest in nbests):
        text = path.parent / "text"
        return lists.attach(nbests, kaldi_text.read(text), path, text) if text.exists() else []
    return nbests


def is_tuned(name: str, nbests: Sequence[NBest], systems: Mapping[str, System]) -> bool:
    """Whether weights say that they were tuned on these lists or on a set so called; without weights, whether it is called dev or valid."""
    sets = [system.weights.dev for system in systems.values() if system.weights]
    if not sets:
        return name.startswith(("dev", "valid"))
    return name in {set_name(Path(dev.path)) for dev in sets} or set_hash(nbests) in {dev.sha256 for dev in sets}


def read_systems(home: Path) -> dict[str, System]:
    """The systems with rescored texts in `home`, in printing order."""
    systems = {}
    for name in ordered({path.parent.name for path in home.glob("rescore/*/*.txt")}):
        weights = home / "tune" / name / "weights.json"
        texts = {path.stem: kaldi_text.read(path) for path in sorted((home / "rescore" / name).glob("*.txt"))}
        systems[name] = System(load(weights) if weights.exists() else None, texts)
    return systems


def keep(system: System, samples: Sequence[Sample]) -> System:
    """`system` with the texts of `samples` only."""
    return System(system.weights, {sample.name: system.texts[sample.name] for sample in samples if sample.name in system.texts})


def read_ppl(home: Path) -> dict[tuple[str, str], Mapping]:
    """What `lmtools ppl` wrote, by (language model, set)."""
    paths = {(path.parent.name, path.stem): path for path in sorted(home.glob("ppl/*/*.json"))}
    names = ordered({name for name, _ in paths})
    return {key: read_json(paths[key], "word_ppl") for key in sorted(paths, key=lambda key: (names.index(key[0]), key[1]))}


def read_models(home: Path) -> dict[str, str]:
    """The model hash of each language model's scores, several joined by `/`."""
    hashes: dict[str, list[str]] = {}
    for path in by_name(home.glob("score/*/*.scores*")):
        signature = scores.header(path, next(read_lines(path), (1, ""))[1])
        value = str(signature.get("model", "unknown"))
        if value not in hashes.setdefault(path.parent.name, []):
            hashes[path.parent.name].append(value)
    return {name: "/".join(values) for name, values in hashes.items()}


def read_seeds(home: Path) -> dict[str, int]:
    """The seed of each neural model's training."""
    trees = {path.parent.name: load_yaml(path) for path in by_name(home.glob("lm/*/config.yaml"))}
    return {name: tree["seed"] for name, tree in trees.items() if "seed" in tree}


def read_metrics(path: Path) -> list[dict]:
    """The lines of a training's metrics.jsonl; a last line that a crash cut short is dropped."""
    lines = [(number, line) for number, line in read_lines(path) if line.strip()]
    if lines and not lines[-1][1].endswith("}"):
        lines.pop()
    return [parse(line, f"{path}:{number}", "train the model again") for number, line in lines]


def read_json(path: Path, key: str | None = None) -> dict:
    """The JSON object in `path`; UserError if it is none or lacks `key`."""
    tree = parse(read_bytes(path), path, "write it again")
    if key and key not in tree:
        raise UserError(f"{path}: has no {key!r}; write it again")
    return tree


def parse(content, where, remedy: str) -> dict:
    """The JSON object that `content` spells; UserError otherwise."""
    try:
        tree = json.loads(content)
    except ValueError as error:
        raise UserError(f"{where}: not JSON ({error}); {remedy}") from None
    if not isinstance(tree, dict):
        raise UserError(f"{where}: expected a JSON object; {remedy}")
    return tree


def numbered(folder: Path) -> list[Path]:
    """The files N.json of `folder`, by number."""
    return sorted((path for path in folder.glob("*.json") if path.stem.isdecimal()), key=lambda path: int(path.stem))


def by_name(paths) -> list[Path]:
    """Paths like lm/NAME/file in the printing order of NAME."""
    paths = sorted(paths)
    names = ordered({path.parent.name for path in paths})
    return sorted(paths, key=lambda path: names.index(path.parent.name))
