"""weights.json: what was tuned, on which set, and how well it did there."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Literal

import msgspec

from lmtools.base.errors import UserError
from lmtools.base.grammar import Finite, check_path, fit, parse_pairs
from lmtools.base.seal import read_json, write_json
from lmtools.evaluate.metrics import find_metric
from lmtools.formats import checks
from lmtools.rescoring.features import ScoreColumns, summed
from lmtools.rescoring.folds import Folds
from lmtools.types import PHRASES, NBest
from lmtools.version import __version__

FIRST_PASS, LATTICES = "first pass", "lattices"  # what lists may be of
SCORES, LISTS = "scores", "lists"  # where the score of a language model may come from
SUM = "sum"
REMEDY = "write it again with lmtools tune"


@dataclass(frozen=True)
class Dev:
    """The set that the weights were tuned on: `sha256` is that of `hash_lists`; `first_pass` and
    `score` are the metric before and after.
    """

    path: str
    sha256: str
    utterances: int
    first_pass: float
    score: float


class SystemLM(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Use of a language model called `name` in a system, as `feature`.

    `score` is its log-probability of a hypothesis (`sum`), or that by `token` or by `word`;
    `source` SCORES for a score file, LISTS for a score that the lists have. `signature` identifies
    the model; it is empty for a first pass.
    """

    name: str
    feature: str
    score: Literal["sum", "token", "word"] = SUM
    normalised: bool = True
    source: Literal["scores", "lists"] = SCORES
    signature: dict = {}


class SystemFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Facts of a system: its language models in their order, and lists of the FIRST_PASS or of
    rescored LATTICES.
    """

    lms: tuple[SystemLM, ...] = ()
    lists: Literal["first pass", "lattices"] = FIRST_PASS


class Stored(msgspec.Struct, forbid_unknown_fields=True):
    """Weights as the file has them; `dev` has the name of the metric in place of `score`. Older
    versions wrote no signatures and no system.
    """

    metric: str
    features: dict[str, Finite]
    reference: str
    dev: dict
    search: dict
    version: str
    signatures: dict[str, dict] = {}
    system: SystemFacts | None = None
    folds: Folds | None = None


@dataclass(frozen=True)
class Weights:
    """The weight of every feature, in order; `reference` is the one that has weight 1 or the
    one given, in the interpolated form times 1 - lambda. Where it counts for next to nothing, the
    feature that counts most has weight 1 or -1: `unit` of `search`.

    `search` has notes on the search: form, objective, `lambda` of the interpolated form, and per
    LM feature the metric over its scale, {"points": [[scale, metric], ...], "flat": [low, high],
    "chosen": scale, "part": the feature's spread by that of all else}; the metric of a point holds
    from its scale to the next point's. `signatures` are those of the score files that the columns
    came from, by column. `system` is None in files of older versions. `folds` are there after
    cross-validation; all else is of the whole set.
    """

    metric: str
    features: Mapping[str, float]
    reference: str
    dev: Dev
    search: Mapping = field(default_factory=dict)
    version: str = __version__
    signatures: Mapping[str, Mapping] = field(default_factory=dict)
    system: SystemFacts | None = None
    folds: Folds | None = None

    @property
    def tuned(self) -> bool:
        """Return whether the weights were tuned on a set; default weights were not."""
        return self.dev.utterances > 0

    def save(self, path: "str | PathLike[str]") -> None:
        """Write them as JSON."""
        check_path(path, "path")
        dev = asdict(self.dev)
        dev[self.metric] = dev.pop("score")
        tree = {
            "metric": self.metric, "features": dict(self.features), "reference": self.reference,
            "dev": dev, "search": dict(self.search), "version": self.version,
            "signatures": {name: dict(said) for name, said in self.signatures.items()},
        }  # fmt: skip
        parts = {"system": self.system, "folds": self.folds}
        tree |= {name: msgspec.to_builtins(part) for name, part in parts.items() if part}
        write_json(tree, path, allow_nan=False)

    @classmethod
    def load(cls, path: "str | PathLike[str]") -> "Weights":
        """Load the weights in `path`; UserError for keys that are missing, unknown or of another
        type.
        """
        return read_weights(check_path(path, "path"))


def describe_system(nbests: Sequence[NBest], columns: ScoreColumns, source) -> SystemFacts:
    """Describe the system that takes `columns` and the scores of the lists read from `source`.

    Of the lists' scores those are language models that marks of rescored lattices name, and `lm`.
    """
    marks = read_marks(nbests, source)
    given = {name for nbest in nbests for hyp in nbest.hyps for name in hyp.scores}
    in_lists = {name: marks.get(name, {}) for name in [*marks, "lm"] if name in given}
    lms = [
        describe_lm(name, signature, kind)
        for kind, signatures in ((SCORES, columns.signatures), (LISTS, in_lists))
        for name, signature in signatures.items()
        if PHRASES not in signature
    ]
    return SystemFacts(tuple(lms), LATTICES if marks else FIRST_PASS)


def describe_lm(feature: str, signature: Mapping[str, str], source: str) -> SystemLM:
    """Describe a language model that enters as `feature`, by the signature of its scores."""
    name = summed(feature) if source == SCORES else feature
    score = feature.removeprefix(name).removeprefix("/") or SUM
    normalised = signature.get("normalise", "full") == "full"
    facts = {"score": score, "normalised": normalised, "source": source}
    return SystemLM(name, feature, **facts, signature=dict(signature))


def find_useless(weights: Weights, mark: str = "warning: ") -> Iterator[str]:
    """Yield a line on each language model that tuning gave the weight 0."""
    for name in weights.signatures:
        if weights.features.get(name) == 0 and name not in weights.search.get("fixed", {}):
            yield f"{mark}{name} has the weight 0: it is of no use on {weights.dev.path}"


def describe_doubts(weights: Weights, system: str | None = None) -> Iterator[str]:
    """Yield warnings about weights, with what to do; that a score of no use has no weight is
    a finding of an experiment's `system`.
    """
    yield from find_useless(weights, "warning: " if system is None else "")
    for name in weights.search.get("costs", ()):
        remedy = f"--fix {name}=-1" if name == weights.reference else f"--set negative={name}"
        yield (
            f"warning: {name!r} has the sign of costs: its values are positive, and the lowest are"
            f" the best; {remedy} turns it round"
        )
    for name, times in weights.search.get("runaway", {}).items():
        yield (
            f"warning: the weights ran away: {name} {weights.features[name]:.4g} outweighs"
            f" {weights.reference} {times:.0f} to 1; see whether the references fit (lmtools"
            f" doctor), or leave it out: --fix {name}=0"
        )


def read_weights(path) -> Weights:
    stored = fit(read_json(path, REMEDY), Stored, path, whole="the file", remedy=REMEDY)
    try:
        find_metric(stored.metric)
    except UserError as error:
        raise UserError(f"{path}: {error}; {REMEDY}") from None
    known = ("path", str), ("sha256", str), ("utterances", int), ("first_pass", Finite)
    fields = [*known, ("score", Finite)]
    kind = msgspec.defstruct(
        "StoredDev", fields, rename={"score": stored.metric}, forbid_unknown_fields=True
    )
    dev = Dev(*msgspec.structs.astuple(fit(stored.dev, kind, f"{path}: 'dev'", remedy=REMEDY)))
    if stored.reference not in stored.features:
        cause = f"the reference {stored.reference!r} is not among the features"
        raise UserError(f"{path}: {cause}; {REMEDY}")
    seen: set[str] = set()
    for part in stored.folds.parts if stored.folds else ():
        if [*part.features] != [*stored.features]:
            raise UserError(f"{path}: fold {part.name!r} has other features; {REMEDY}")
        if twice := [utt for utt in part.utterances if utt in seen]:
            raise UserError(f"{path}: utterance {twice[0]!r:.40} is of two folds; {REMEDY}")
        seen.update(part.utterances)
    tree = {name: getattr(stored, name) for name in stored.__struct_fields__}
    return Weights(**tree | {"dev": dev})


def parse_weights(text: str | None) -> dict[str, float] | None:
    """Parse the weights of `NAME=W,...`, or read those of the file of that name; None for None."""
    if text is None:
        return None
    if "=" not in text or Path(text).exists():
        return dict(Weights.load(text).features)
    pairs = parse_pairs(text.split(","), "--weights", "NAME=NUMBER", "write NAME=NUMBER,...")
    return {
        name: checks.number(value, f"--weights {text}", f"the weight of {name!r}")
        for name, value in pairs.items()
    }


MARK = "rescored"  # name of the extra; its value is JSON: a signature by name of the score


def mark(nbest: NBest, signatures: Mapping[str, Mapping[str, str]]) -> NBest:
    """Mark each score in `signatures` as being of the model that it names; return the list."""
    content = json.dumps(
        {name: dict(signature) for name, signature in signatures.items()}, ensure_ascii=False
    )
    return replace(nbest, extra={**nbest.extra, MARK: content})


def read_marks(nbests: Iterable[NBest], source) -> dict[str, dict]:
    """Read the signature of each score that marks of lists name; empty where no list has a mark.

    UserError about `source` for a mark that is damaged.
    """
    signatures: dict[str, dict] = {}
    marks = {nbest.extra[MARK]: nbest.utt for nbest in nbests if MARK in nbest.extra}
    for text, utt in marks.items():
        try:
            signatures |= msgspec.json.decode(text, type=dict[str, dict])
        except (msgspec.DecodeError, RecursionError):
            raise UserError(
                f"{source}: extra {MARK!r} of utterance {utt!r} is not what lmtools lattice rescore"
                " writes; rescore the lattices again"
            ) from None
    return signatures
