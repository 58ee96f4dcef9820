"""weights.json: what was tuned, on which set, and how well it did there."""

import contextlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path

from lmtools.base.config import build
from lmtools.base.errors import UserError
from lmtools.base.grammar import check_among, check_path, parse_pairs
from lmtools.base.seal import read_json, write_json
from lmtools.evaluate.metrics import find_metric
from lmtools.formats import checks
from lmtools.rescoring.features import MEANS, ScoreColumns, summed
from lmtools.rescoring.folds import RANDOM, SPEAKER, Fold, Folds
from lmtools.types import PHRASES, NBest
from lmtools.version import __version__

KEYS = {
    "metric": str,
    "features": dict,
    "reference": str,
    "dev": dict,
    "search": dict,
    "version": str,
}
SIGNATURES, SYSTEM = "signatures", "system"  # which weights of older versions lack
FOLDS = "folds"  # which only cross-validated weights have
FIRST_PASS, LATTICES = "first pass", "lattices"  # what lists may be of
SCORES, LISTS = "scores", "lists"  # where the score of a language model may come from
SUM = "sum"
DEV = {"path": str, "sha256": str, "utterances": int, "first_pass": float}


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


@dataclass(frozen=True)
class SystemLM:
    """Use of a language model called `name` in a system, as `feature`.

    `score` is its log-probability of a hypothesis (`sum`), or that by `token` or by `word`;
    `source` SCORES for a score file, LISTS for a score that the lists have. `signature` identifies
    the model; it is empty for a first pass.
    """

    name: str
    feature: str
    score: str = SUM
    normalised: bool = True
    source: str = SCORES
    signature: dict = field(default_factory=dict)

    def __post_init__(self):
        check_among(self.score, "score", [SUM, *(end.removeprefix("/") for end in MEANS)])
        check_among(self.source, "source", [SCORES, LISTS])


@dataclass(frozen=True)
class SystemFacts:
    """Facts of a system: its language models in their order, and lists of the FIRST_PASS or of
    rescored LATTICES.
    """

    lms: tuple[SystemLM, ...] = ()
    lists: str = FIRST_PASS

    def __post_init__(self):
        check_among(self.lists, "lists", [FIRST_PASS, LATTICES])


@dataclass(frozen=True)
class Weights:
    """The weight of every feature, in order; `reference` is the one that has weight 1 or the
    one given, in the interpolated form times 1 - lambda.

    `search` has notes on the search: form, objective, `lambda` of the interpolated form, and per
    LM feature the metric over its scale, {"points": [[scale, metric], ...], "flat": [low, high],
    "chosen": scale}; the metric of a point holds from its scale to the next point's. `signatures`
    are those of the score files that the columns came from, by column. `system` is None in files of
    older versions. `folds` are there after cross-validation; all else is of the whole set.
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
        dev = {name: getattr(self.dev, name) for name in DEV} | {self.metric: self.dev.score}
        tree = {name: getattr(self, name) for name in KEYS}
        tree |= {"features": dict(self.features), "dev": dev, "search": dict(self.search)}
        tree[SIGNATURES] = {name: dict(signature) for name, signature in self.signatures.items()}
        if self.system:
            tree[SYSTEM] = asdict(self.system)
        if self.folds:
            tree[FOLDS] = asdict(self.folds)
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


def read_weights(path) -> Weights:
    """See `Weights.load`."""
    file = CheckedJson(path, "write it again with lmtools tune")
    tree = read_json(path, file.remedy)
    signatures = tree.pop(SIGNATURES, {})
    system, folds = tree.pop(SYSTEM, None), tree.pop(FOLDS, None)
    file.check_keys(tree, KEYS, "the file")
    if not (
        isinstance(signatures, dict)
        and all(isinstance(signature, dict) for signature in signatures.values())
    ):
        raise file.error(f": {SIGNATURES!r} is {signatures!r:.40}")
    metric, dev, features = tree["metric"], tree["dev"], tree["features"]
    with file.named():
        find_metric(metric)
    file.check_keys(dev, DEV | {metric: float}, "'dev'")
    features = {name: file.number(v, f": weight of {name!r}") for name, v in features.items()}
    if tree["reference"] not in features:
        raise file.error(f": the reference {tree['reference']!r} is not among the features")
    return Weights(
        **tree
        | {
            "features": features,
            "dev": Dev(score=dev[metric], **{name: dev[name] for name in DEV}),
            "signatures": signatures,
            "system": None if system is None else read_system(system, file),
            "folds": None if folds is None else read_folds(folds, features, file),
        }
    )


def read_system(tree, file: "CheckedJson") -> SystemFacts:
    """Read the facts in the part `system` of a file."""
    file.check_keys(tree, {"lists": str, "lms": list}, f"{SYSTEM!r}")
    lms = tuple(build(SystemLM, lm, file.path, f"{SYSTEM}.lms.") for lm in tree["lms"])
    with file.named():
        return SystemFacts(lms, tree["lists"])


def read_folds(tree, features: Mapping[str, float], file: "CheckedJson") -> Folds:
    """Read the folds in the part `folds` of a file, whose weights are of `features`; UserError also
    for an utterance in two of them.
    """
    where, seen = f": {FOLDS!r}", set()
    file.check_keys(tree, {"by": str, "score": float, "parts": list}, f"{FOLDS!r}")
    for part in tree["parts"]:
        file.check_keys(part, {"name": str, "utterances": list, "features": dict}, "a fold")
        if [*part["features"]] != [*features]:
            raise file.error(f"{where}: fold {part['name']!r} has other features")
        for value in part["features"].values():
            file.number(value, f"{where}: a weight of fold {part['name']!r}")
        for utt in part["utterances"]:
            if not isinstance(utt, str) or utt in seen:
                raise file.error(f"{where}: utterance {utt!r:.40} is of two folds or no id")
            seen.add(utt)
    if tree["by"] not in (RANDOM, SPEAKER):
        raise file.error(f"{where}: by is {tree['by']!r:.40}, not {RANDOM} or {SPEAKER}")
    parts = (Fold(**{**part, "utterances": tuple(part["utterances"])}) for part in tree["parts"])
    return Folds(tree["by"], tree["score"], tuple(parts))


@dataclass(frozen=True)
class CheckedJson:
    """Checks of the content of a JSON file, whose errors name its `path` and the `remedy`."""

    path: object
    remedy: str

    def error(self, cause: str) -> UserError:
        """Return the error of a cause, which begins with its place in the file."""
        return UserError(f"{self.path}{cause}; {self.remedy}")

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Name the file in any UserError inside the block."""
        try:
            yield
        except UserError as error:
            raise self.error(f": {error}") from None

    def check_keys(self, tree, keys: Mapping[str, type], part: str) -> None:
        """Raise UserError unless `tree` is an object with exactly these keys and types."""
        if not isinstance(tree, dict):
            raise self.error(f": {part} is no object")
        for name in sorted(keys.keys() ^ tree.keys(), key=str):
            state = "missing" if name in keys else "unknown"
            raise self.error(f": key {name!r} of {part} is {state}")
        for name, kind in keys.items():
            if kind is float:
                self.number(tree[name], f": {name!r} of {part}")
            elif type(tree[name]) is not kind:
                raise self.error(f": {name!r} of {part} is {tree[name]!r:.40}")

    def number(self, value, where: str) -> float:
        """Return `value` as a finite float; UserError otherwise."""
        if type(value) not in (int, float) or not math.isfinite(value):
            raise self.error(f"{where} is {value!r:.40}, not a finite number")
        return float(value)


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
    for text, utt in {
        nbest.extra[MARK]: nbest.utt for nbest in nbests if MARK in nbest.extra
    }.items():
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError):
            tree = None
        if not (
            isinstance(tree, dict)
            and all(isinstance(signature, dict) for signature in tree.values())
        ):
            raise UserError(
                f"{source}: extra {MARK!r} of utterance {utt!r} is not what lmtools lattice rescore"
                " writes; rescore the lattices again"
            )
        signatures |= tree
    return signatures
