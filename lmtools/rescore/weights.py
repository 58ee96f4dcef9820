"""weights.json: what was tuned, on which set, and how well it did there."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from lmtools import __version__
from lmtools.errors import UserError
from lmtools.evaluate import METRICS
from lmtools.seal import read_json, write_json

KEYS = {
    "metric": str,
    "features": dict,
    "reference": str,
    "dev": dict,
    "search": dict,
    "version": str,
}
SIGNATURES = "signatures"  # which weights of older versions lack
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
class Weights:
    """The weight of every feature, in order; `reference` is the one that has weight 1 (or 1 -
    lambda in the interpolated form).

    `search` says how they were found: form, seed, and per LM feature the metric over its scale,
    {"points": [[scale, metric], ...], "flat": [low, high], "chosen": scale}; the metric of a point
    holds from its scale to the next point's. `signatures` are those of the score files that the
    columns came from, by column.
    """

    metric: str
    features: Mapping[str, float]
    reference: str
    dev: Dev
    search: Mapping = field(default_factory=dict)
    version: str = __version__
    signatures: Mapping[str, Mapping] = field(default_factory=dict)


def save(weights: Weights, path) -> None:
    """Write `weights` as JSON."""
    dev = {name: getattr(weights.dev, name) for name in DEV} | {weights.metric: weights.dev.score}
    tree = {name: getattr(weights, name) for name in KEYS}
    tree |= {"features": dict(weights.features), "dev": dev, "search": dict(weights.search)}
    tree[SIGNATURES] = {name: dict(signature) for name, signature in weights.signatures.items()}
    write_json(tree, path, allow_nan=False)


def load(path) -> Weights:
    """The weights in `path`; UserError for keys that are missing, unknown or of another type."""
    remedy = "write it again with lmtools tune"
    tree = read_json(path, remedy)
    signatures = tree.pop(SIGNATURES, {}) if isinstance(tree, dict) else {}
    shaped(tree, KEYS, path, "the file", remedy)
    if not (
        isinstance(signatures, dict) and all(isinstance(one, dict) for one in signatures.values())
    ):
        raise UserError(f"{path}: {SIGNATURES!r} is {signatures!r:.40}; {remedy}")
    metric = tree["metric"]
    if metric not in METRICS:
        raise UserError(
            f"{path}: 'metric' is {metric!r}, not one of {', '.join(METRICS)}; {remedy}"
        )
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
        metric, features, tree["reference"], dev, tree["search"], tree["version"], signatures
    )


def shaped(tree, keys: Mapping[str, type], path, what: str, remedy: str) -> None:
    """UserError unless `tree` is an object with exactly these keys and types."""
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
    """`value` as a finite float."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise UserError(f"{where} is {value!r:.40}, not a finite number; {remedy}")
    return float(value)
