"""The sets of an experiment that rescores, and the systems that chose texts for them."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lmtools.errors import UserError
from lmtools.formats import jsonl, kaldi_text, lists
from lmtools.report.names import NOTHING, SystemParts
from lmtools.report.shapes import ANY, NUMBER, PLAIN, TEXT, fitting
from lmtools.rescoring import ScoreColumns, Weights, read_columns, set_hash
from lmtools.rescoring.features import summed
from lmtools.types import NBest

SUFFIXES = ("", ".gz", ".xz")
CURVE = {"points": ((NUMBER, NUMBER),), "flat": (NUMBER, NUMBER), "chosen": NUMBER}
SEARCH_SHAPE = {"seed?": PLAIN, "form?": TEXT, "lambda?": NUMBER, "curves?": {ANY: CURVE}}


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
    """One way of choosing: what `lmtools tune` found (None if that is not there), the texts chosen
    in each set, and what it is made of.
    """

    weights: Weights | None
    texts: Mapping[str, Mapping[str, str]]
    makeup: SystemParts = NOTHING


def find_lists(home: Path) -> list[Path]:
    """Find the N-best files beside the experiment, by name of their sets; UserError if there are
    none.
    """
    if not (paths := lists_beside(home)):
        raise UserError(
            f"{data_beside(home)}/*/nbest.jsonl: no N-best lists (nor .gz, .xz); give them with"
            " --nbest"
        )
    return paths


def lists_beside(home: Path) -> list[Path]:
    """Return the N-best files beside the experiment, by name of their sets."""
    data = data_beside(home)
    return sorted(path for suffix in SUFFIXES for path in data.glob(f"*/nbest.jsonl{suffix}"))


def data_beside(home: Path) -> Path:
    """Return the directory of a recipe's data."""
    return (
        home / ".." / "data" if home.is_symlink() else Path(os.path.normpath(home / "..")) / "data"
    )


def set_name(path: Path) -> str:
    """Return the name of a set: `dev` of data/dev/nbest.jsonl.gz and of dev.jsonl."""
    stem = path.name.partition(".")[0]
    return path.absolute().parent.name if stem == "nbest" else stem


def read_samples(
    paths: Sequence[Path], systems: Mapping[str, System]
) -> tuple[tuple[Sample, ...], list[str]]:
    """Read the sets in `paths`, those first that weights were tuned on, and a line for each set
    without references.
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
    """Return the key by which two lists are equal; a set that shares lists with the tuning set is
    partly tuned on.
    """
    return nbest.utt, *(hyp.text for hyp in nbest.hyps)


def with_references(path: Path) -> list[NBest]:
    """Return the lists in `path`, with the references of the `text` beside it if they hold none;
    empty if neither does.
    """
    nbests = list(jsonl.read(path))
    if not nbests:
        raise UserError(f"{path}: no utterances; write the lists again")
    if any(nbest.ref is None for nbest in nbests):
        text = path.parent / "text"
        return lists.attach_refs(nbests, kaldi_text.read(text), path, text) if text.exists() else []
    return nbests


def is_tuned(name: str, nbests: Sequence[NBest], systems: Mapping[str, System]) -> bool:
    """Return whether weights were tuned on these lists or on a set of this name, and not by folds;
    without weights, whether the name begins with dev or valid.
    """
    every = [system.weights for system in systems.values() if system.weights]
    if not every:
        return name.startswith(("dev", "valid"))
    sets = [weights.dev for weights in every if not weights.folds]
    return name in {set_name(Path(dev.path)) for dev in sets} or set_hash(nbests) in {
        dev.sha256 for dev in sets
    }


def read_systems(home: Path) -> dict[str, System]:
    """Read the systems with rescored texts in `home`, by name."""
    systems = {}
    for name in sorted({path.parent.name for path in home.glob("rescore/*/*.txt")}):
        weights = home / "tune" / name / "weights.json"
        texts = {
            path.stem: kaldi_text.read(path)
            for path in sorted((home / "rescore" / name).glob("*.txt"))
        }
        tuned = Weights.load(weights) if weights.exists() else None
        if tuned:
            fitting(
                tuned.search, SEARCH_SHAPE, f"{weights}: search", "write it again with lmtools tune"
            )
        systems[name] = System(tuned, texts)
    return systems


def keep(system: System, samples: Sequence[Sample]) -> System:
    """Return `system` with the texts of `samples` only."""
    names = [sample.name for sample in samples if sample.name in system.texts]
    return replace(system, texts={name: system.texts[name] for name in names})


def judged(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Return the sets that weights were not tuned on; all, if there are no others."""
    return tuple(sample for sample in samples if not sample.tuned) or tuple(samples)


def features_of(systems: Iterable[System]) -> list[str]:
    """Return the features that any of `systems` has a weight for, in their order."""
    weights = [system.weights for system in systems if system.weights]
    return list(dict.fromkeys(name for one in weights for name in one.features))


def read_score_columns(home: Path, sample: Sample, features: Sequence[str]) -> ScoreColumns:
    """Read the columns of `sample` that are among `features`, of language models whose scores are
    there: sums and means.
    """
    paths = {path.parent.name: path for path in sorted(home.glob(f"score/*/{sample.name}.scores*"))}
    specs = [f"{name}={paths[summed(name)]}" for name in features if summed(name) in paths]
    return read_columns(specs, sample.nbests, sample.path)
