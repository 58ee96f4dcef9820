"""Specifications of language models: where a model is, and the options by which it scores, as
`--lm DIR,intact=true,oov_penalty=7` gives them.
"""

import contextlib
import re
from dataclasses import dataclass
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from typing import Any

from lmtools.base.doors import collect, load
from lmtools.base.errors import UserError
from lmtools.base.options import check_options, list_options, option, parse_option

NORMALISATIONS = ("full", "none")
MIX, HF = "mix:", "hf:"
GGUF = "gguf:"
LLMS = ("http://", "https://", GGUF)  # kinds of the door llms
WEIGHTS = "model.safetensors"  # in the directory of a neural model
MIXTURE = "mix:LM=WEIGHT,LM=WEIGHT"


@dataclass(frozen=True)
class LMSpec:
    """Specification of a language model: its place (a directory, a KenLM or ARPA file, `hf:DIR`,
    `mix:LM=W,LM=W`, or what a door brings, as `http://HOST:PORT/v1`) and how it scores. The name of
    an installed model becomes its place. `more`: the options that a door declares for its kind.

    The text `LM,option=value,..` has the declared options. `pairs`: texts are pairs of source and
    target, of a translation model.
    Without `head` it is asked for states alone, so that a Hugging Face model needs no layer that
    predicts.
    """

    lm: str
    intact: bool = option(False, "true lets a masked model score in one pass, without masks")
    normalise: str = option(
        "full",
        "none leaves out the softmax's sum, which takes most of a neural model's time",
        choices=NORMALISATIONS,
    )
    oov_penalty: float = option(
        0.0,
        "extra penalty for each unknown word, in nats; try the log of the number of words outside"
        " the vocabulary",
        least=0,
    )
    noise: str | None = option(
        None,
        "for the criteria MCS and CPS: KIND=F.bin replaces the noise of training by unigram,"
        " log-uniform or uniform noise over the counts of a corpus",
    )
    adapter: str | None = option(
        None, "directory of a LoRA adapter of hf:DIR, as peft saves it", path=True
    )
    pairs: bool = False
    head: bool = True
    more: Any = None

    def __post_init__(self):
        object.__setattr__(self, "lm", find_model(self.lm))
        check_options(self)

    @classmethod
    def parse(cls, text: str, **defaults) -> "LMSpec":
        """Parse `LM,option=value,..`; options that the text does not give are `defaults`. A path
        that exists is one as a whole. UserError for an option that is unknown, given twice, or has
        another kind of value.
        """
        lm, values = split_options(text)
        given = {n: parse_option(cls, n, value) for n, value in values.items() if n in OPTIONS}
        if kind := find_kind(lm):
            rest = {n: parse_option(kind, n, values[n]) for n in values if n not in OPTIONS}
            given["more"] = kind(**rest)
        return cls(lm, **defaults | given)

    def __str__(self) -> str:
        """Return the text that `parse` takes."""
        changed = {
            name: getattr(part, name)
            for part in (self, self.more)
            if part is not None
            for name, (_, default, _) in list_options(type(part)).items()
            if getattr(part, name) != default
        }
        words = [f"{name}={'true' if value is True else value}" for name, value in changed.items()]
        return ",".join([self.lm, *words])


OPTIONS = list_options(LMSpec)


def find_place(lm: str) -> tuple[str, str, str] | None:
    """Return what the doors' LMS say of the kind of `lm`, if it is a door's."""
    return next((place for prefix, place in collect("LMS").items() if lm.startswith(prefix)), None)


def find_kind(lm: str) -> type | None:
    """Return the dataclass of the options that only the kind of `lm` has, if a door brings it."""
    place = find_place(lm)
    return load(place[1]) if place else None


def split_options(text: str) -> tuple[str, dict[str, str]]:
    """Split `LM,option=value,..` into the place of the model and its options."""
    lm, values, kind = text, {}, find_kind(text)
    known = {**OPTIONS, **(list_options(kind) if kind else {})}
    while "," in lm and not Path(lm).exists():
        rest, _, last = lm.rpartition(",")
        name, sign, value = last.partition("=")
        name = name.replace("-", "_")
        if not sign or name not in known:
            if sign and not lm.startswith(MIX) and (kind or Path(rest.removeprefix(HF)).exists()):
                known = ", ".join(known)
                raise UserError(f"{text}: no option {name!r} of a language model; known: {known}")
            break
        if name in values:
            raise UserError(f"{text}: {name} is given twice; leave one out")
        lm, values[name] = rest, value
    return lm, values


def find_paths(lm: str) -> list[str]:
    """Return the files and directories that `lm`, an LMSpec's place, names."""
    if lm.startswith(MIX):
        return [path for part in parse_mixture(lm)[0] for path in find_paths(part)]
    return [] if "://" in lm else [lm.removeprefix(HF).removeprefix(GGUF)]


def parse_mixture(text: str) -> tuple[list[str], list[float]]:
    """Parse the models and weights of `mix:A=0.6,B=0.4`; the last weight may be left out."""
    lms, weights = [], []
    for part in text.removeprefix(MIX).split(","):
        lm, sign, weight = part.rpartition("=")
        try:
            weights += [float(weight)] if sign else []
        except ValueError:
            raise UserError(f"{text}: {weight!r} is no weight; write {MIXTURE}") from None
        lms.append(lm if sign else part)
        if not lms[-1] or len(lms) - len(weights) > 1 or (sign and len(lms) > len(weights)):
            raise UserError(f"{text}: {part!r} is no model with its weight; write {MIXTURE}")
    if len(lms) < 2:
        raise UserError(f"{text}: one model is no mixture; write {MIXTURE}")
    return list(map(find_model, lms)), weights


GROUP = "lmtools.models"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def find_model(lm: str) -> str:
    """Return the folder of the installed model of the name `lm`; `lm` itself where there is a file
    or folder of this name, or no such model. UserError where two packages have one.
    """
    if not NAME.fullmatch(lm) or Path(lm).exists():
        return lm
    folders = {str(find_folder(point)) for point in list_points() if point.name == lm}
    if len(folders) > 1:
        raise UserError(
            f"{lm}: is in {' and in '.join(sorted(folders))}; give one of these, or uninstall one"
        )
    return folders.pop() if folders else lm


def list_points() -> list[EntryPoint]:
    """Return the models of all packages; a package that is broken has none."""
    found: dict[str, list[EntryPoint]] = {}  # the first of a name is the one that is imported
    for package in distributions():
        with contextlib.suppress(Exception):  # whatever the parser says of a file that is none
            if points := [point for point in package.entry_points if point.group == GROUP]:
                found.setdefault(package.name, points)
    return [point for points in found.values() for point in points]


def find_folder(point: EntryPoint) -> Path:
    """Return the folder that `package.folder` names, beside the metadata of the package."""
    assert point.dist is not None  # of every entry point that importlib finds
    return Path(str(point.dist.locate_file(point.value.replace(".", "/"))))


def list_models() -> str:
    """Return what installed models there are, or how they come, to end an error message."""
    names = ", ".join(sorted({point.name for point in list_points()}))
    return f"installed: {names or 'none; docs/models.md says how to get one'}"
