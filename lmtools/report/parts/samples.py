"""The sets of an experiment that rescores, and the systems that chose texts for them."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmtools.base.errors import UserError
from lmtools.formats import jsonl, kaldi_text, lists
from lmtools.formats.scores import hash_lists
from lmtools.report.names import NOTHING, SystemParts
from lmtools.rescoring import ScoreColumns, Weights, read_columns
from lmtools.rescoring.features import summed
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

    @property
    def size(self) -> str:
        """Name and sizes in words."""
        depths = [len(nbest.hyps) for nbest in self.nbests]
        words = sum(len(ref.split()) for ref in self.refs.values())
        lists = f"lists of up to {max(depths)} (mean {np.mean(depths):.1f})"
        return f"{self.name}: {len(depths):,} utterances, {words:,} reference words, {lists}"


@dataclass(frozen=True)
class System:
    """One way of choosing: what `lmtools tune` found (None if that is not there), the texts chosen
    in each set, and what it is made of.
    """

    weights: Weights | None
    texts: Mapping[str, Mapping[str, str]]
    makeup: SystemParts = NOTHING


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
    paths: Sequence[Path], weights: Mapping[str, Weights | None]
) -> tuple[tuple[Sample, ...], list[str]]:
    """Read the sets in `paths`, those first that weights were tuned on, and a line for each set
    without references.
    """
    sets, dropped = {}, []
    for path in paths:
        name = set_name(path)
        if name in sets:
            raise UserError(
                f"{path}: a second N-best list of set {name!r}; keep one, or choose with --nbest"
            )
        if nbests := read_with_references(path):
            sets[name] = path, tuple(nbests)
        else:
            dropped.append(
                f"{path}: no references in it or in {path.parent}/text, so set {name!r} is left out"
            )
    if not sets:
        raise UserError(
            f"{paths[0]}: no references in the lists or in {paths[0].parent}/text; attach them with"
            " lmtools convert --ref"
        )
    tuned = {name for name, (_, nbests) in sets.items() if is_tuned(name, nbests, weights)}
    seen = {key for name in tuned for key in map(list_key, sets[name][1])}
    samples = [
        Sample(name, path, nbests, name in tuned or not seen.isdisjoint(map(list_key, nbests)))
        for name, (path, nbests) in sets.items()
    ]
    return tuple(sorted(samples, key=lambda sample: not sample.tuned)), dropped


def list_key(nbest: NBest) -> tuple:
    """Return the key by which two lists are equal; a set that shares lists with the tuning set is
    partly tuned on.
    """
    return nbest.utt, *(hyp.text for hyp in nbest.hyps)


def read_with_references(path: Path) -> list[NBest]:
    """Read the lists in `path`, with the references of the `text` beside it if they hold none;
    empty if neither does.
    """
    nbests = list(jsonl.read(path))
    if not nbests:
        raise UserError(f"{path}: no utterances; write the lists again")
    if any(nbest.ref is None for nbest in nbests):
        text = path.parent / "text"
        return lists.attach_refs(nbests, kaldi_text.read(text), path, text) if text.exists() else []
    return nbests


def is_tuned(name: str, nbests: Sequence[NBest], weights: Mapping[str, Weights | None]) -> bool:
    """Return whether weights were tuned on these lists or on a set of this name, and not by folds;
    without weights, whether the name begins with dev or valid.
    """
    known = [tuned for tuned in weights.values() if tuned]
    if not known:
        return name.startswith(("dev", "valid"))
    sets = [tuned.dev for tuned in known if not tuned.folds]
    return name in {set_name(Path(dev.path)) for dev in sets} or hash_lists(nbests) in {
        dev.sha256 for dev in sets
    }


def judged(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Return the sets that weights were not tuned on; all, if there are no others."""
    return tuple(sample for sample in samples if not sample.tuned) or tuple(samples)


def features_of(systems: Iterable[System]) -> list[str]:
    """Return the features that any of `systems` has a weight for, in their order."""
    weights = [system.weights.features for system in systems if system.weights]
    return list(dict.fromkeys(name for features in weights for name in features))


def read_score_columns(home: Path, sample: Sample, features: Sequence[str]) -> ScoreColumns:
    """Read the columns of `sample` that are among `features`, of language models whose scores are
    there: sums and means.
    """
    paths = {path.parent.name: path for path in sorted(home.glob(f"score/*/{sample.name}.scores*"))}
    specs = [f"{name}={paths[summed(name)]}" for name in features if summed(name) in paths]
    return read_columns(specs, sample.nbests, sample.path)
