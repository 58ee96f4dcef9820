"""weights.json: what was tuned, on which set, and how well it did there."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lmtools.arguments import check_among, check_path
from lmtools.assignments import parse_pairs
from lmtools.config import build
from lmtools.errors import UserError
from lmtools.evaluate.metrics import find_metric
from lmtools.formats import checks
from lmtools.rescoring.features import MEANS, ScoreColumns, summed
from lmtools.rescoring.folds import RANDOM, SPEAKER, Fold, Folds
from lmtools.rescoring.marks import read_marks
from lmtools.seal import read_json, write_json
from lmtools.types import NBest
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
    """The set that the weights were tuned on: `sha256` is its `set_hash`; `first_pass` and `score`
    are the metric before and after.
    """

    path: str
    sha256: str
    utterances: int
    first_pass: float
    score: float


@dataclass(frozen=True)
class SystemLM:
    """Use of a language model called `name` in a system, as which `feature`.

    `score` is its log-probability of a hypothesis (`sum`), or that by `token` or by `word`;
    `source` SCORES for a score file, LISTS for a score that the lists have. `signature` says which
    model it is; a first pass says nothing of its own.
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

    `search` says how they were found: form, objective, `lambda` of the interpolated form, and per
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

    def save(self, path) -> None:
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
    def load(cls, path) -> "Weights":
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
    own = {name: one for name, one in {**marks, "lm": marks.get("lm", {})}.items() if name in given}
    lms = [
        *(describe_lm(name, signature, SCORES) for name, signature in columns.signatures.items()),
        *(describe_lm(name, signature, LISTS) for name, signature in own.items()),
    ]
    return SystemFacts(tuple(lms), LATTICES if marks else FIRST_PASS)


def describe_lm(feature: str, signature: Mapping[str, str], source: str) -> SystemLM:
    """Describe a language model that enters as `feature`, by the signature of its scores."""
    name = summed(feature) if source == SCORES else feature
    score = feature.removeprefix(name).removeprefix("/") or SUM
    normalised = signature.get("normalise", "full") == "full"
    return SystemLM(name, feature, score, normalised, source, dict(signature))


def read_weights(path) -> Weights:
    """See `Weights.load`."""
    remedy = "write it again with lmtools tune"
    tree = read_json(path, remedy)
    signatures, system, folds = (
        tree.pop(SIGNATURES, {}),
        tree.pop(SYSTEM, None),
        tree.pop(FOLDS, None),
    )
    shaped(tree, KEYS, path, "the file", remedy)
    if not (
        isinstance(signatures, dict) and all(isinstance(one, dict) for one in signatures.values())
    ):
        raise UserError(f"{path}: {SIGNATURES!r} is {signatures!r:.40}; {remedy}")
    metric = tree["metric"]
    try:
        find_metric(metric)
    except UserError as error:
        raise UserError(f"{path}: {error}; {remedy}") from None
    shaped(tree["dev"], DEV | {metric: float}, path, "'dev'", remedy)
    features = {
        name: number(value, f"{path}: weight of {name!r}", remedy)
        for name, value in tree["features"].items()
    }
    if tree["reference"] not in features:
        raise UserError(
            f"{path}: the reference {tree['reference']!r} is not among the features; {remedy}"
        )
    dev = Dev(*(tree["dev"][name] for name in DEV), tree["dev"][metric])
    return Weights(
        metric,
        features,
        tree["reference"],
        dev,
        tree["search"],
        tree["version"],
        signatures,
        None if system is None else read_system(system, path, remedy),
        None if folds is None else read_folds(folds, features, path, remedy),
    )


def read_system(tree, path, remedy: str) -> SystemFacts:
    """Read the facts in the part `system` of the file `path`."""
    shaped(tree, {"lists": str, "lms": list}, path, f"{SYSTEM!r}", remedy)
    lms = tuple(build(SystemLM, one, path, f"{SYSTEM}.lms.") for one in tree["lms"])
    try:
        return SystemFacts(lms, tree["lists"])
    except UserError as error:
        raise UserError(f"{path}: {error}; {remedy}") from None


def read_folds(tree, features: Mapping[str, float], path, remedy: str) -> Folds:
    """Read the folds in the part `folds` of the file `path`, whose weights are of `features`;
    UserError also for an utterance in two of them.
    """
    where, seen = f"{path}: {FOLDS!r}", set()
    shaped(tree, {"by": str, "score": float, "parts": list}, path, f"{FOLDS!r}", remedy)
    for part in tree["parts"]:
        shaped(part, {"name": str, "utterances": list, "features": dict}, path, "a fold", remedy)
        if [*part["features"]] != [*features]:
            raise UserError(f"{where}: fold {part['name']!r} has other features; {remedy}")
        for value in part["features"].values():
            number(value, f"{where}: a weight of fold {part['name']!r}", remedy)
        for utt in part["utterances"]:
            if not isinstance(utt, str) or utt in seen:
                raise UserError(
                    f"{where}: utterance {utt!r:.40} is of two folds or no id; {remedy}"
                )
            seen.add(utt)
    if tree["by"] not in (RANDOM, SPEAKER):
        raise UserError(f"{where}: by is {tree['by']!r:.40}, not {RANDOM} or {SPEAKER}; {remedy}")
    parts = (
        Fold(part["name"], tuple(part["utterances"]), part["features"]) for part in tree["parts"]
    )
    return Folds(tree["by"], tree["score"], tuple(parts))


def shaped(tree, keys: Mapping[str, type], path, what: str, remedy: str) -> None:
    """Raise UserError unless `tree` is an object with exactly these keys and types."""
    if not isinstance(tree, dict):
        raise UserError(f"{path}: {what} is no object; {remedy}")
    for name in sorted(keys.keys() ^ tree.keys(), key=str):
        raise UserError(
            f"{path}: key {name!r} of {what} is {'missing' if name in keys else 'unknown'};"
            f" {remedy}"
        )
    for name, kind in keys.items():
        value = tree[name]
        if kind is float:
            number(value, f"{path}: {name!r} of {what}", remedy)
        elif type(value) is not kind:
            raise UserError(f"{path}: {name!r} of {what} is {value!r:.40}; {remedy}")


def number(value, where: str, remedy: str) -> float:
    """Return `value` as a finite float; UserError otherwise."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise UserError(f"{where} is {value!r:.40}, not a finite number; {remedy}")
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
