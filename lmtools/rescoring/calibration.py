"""Calibration: posteriors of words turned into probabilities that they are right, learnt on a
development set.

    temperature  logit(p) / T (Guo, Pleiss, Sun and Weinberger 2017)
    logistic     a logit(p) + b (Platt 1999)
    isotonic     steps that rise with p (Zadrozny and Elkan 2002), by scipy

Those with parameters minimise the cross entropy.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import isotonic_regression, minimize
from scipy.special import expit, logit

from lmtools.base.errors import UserError
from lmtools.base.seal import read_json, write_json
from lmtools.evaluate.word_confidence import JudgedWords
from lmtools.types import ConfusionNetwork

METHODS = ("temperature", "logistic", "isotonic")
CLIP = 1e-6
RIDGE = 1e-3  # holds parameters where all words are right, or all wrong
FEWEST = 20  # words to learn from


@dataclass(frozen=True)
class Calibration:
    """A rising map of posteriors: through the points (`inputs`, `outputs`) for isotonic, of the
    logit for the others, whose `slope` and `shift` are a and b, 1 / T and 0.
    """

    method: str
    slope: float = 1.0
    shift: float = 0.0
    inputs: tuple[float, ...] = ()
    outputs: tuple[float, ...] = ()

    def apply(self, confidence: np.ndarray) -> np.ndarray:
        """Return the calibrated confidences (words,)."""
        if self.method == "isotonic":
            return np.interp(confidence, self.inputs, self.outputs)
        return expit(self.slope * logit(np.clip(confidence, CLIP, 1 - CLIP)) + self.shift)


def learn_calibration(judged: JudgedWords, method: str) -> Calibration:
    """Learn a calibration from judged words; UserError where they are too few."""
    count = len(judged.correct)
    if count < FEWEST:
        raise UserError(
            f"{count} words to calibrate on; give a development set of {FEWEST} or more"
        )
    if method == "isotonic":
        return learn_steps(judged)
    scores = logit(np.clip(judged.confidence, CLIP, 1 - CLIP))
    sign = np.where(judged.correct, 1.0, -1.0)

    def loss(parameters: np.ndarray) -> float:
        slope, shift = np.exp(parameters[0]), parameters[1] if method == "logistic" else 0.0
        errors = np.logaddexp(0, -sign * (slope * scores + shift)).mean()
        return float(errors + RIDGE * (parameters**2).sum() / count)

    slope, shift = minimize(loss, np.zeros(2), method="Nelder-Mead").x
    shift = float(shift) if method == "logistic" else 0.0
    return Calibration(method, float(np.exp(slope)), shift)


def learn_steps(judged: JudgedWords) -> Calibration:
    """Learn rising steps; equal confidences count together, and no step reaches 0 or 1: as if a
    word more were half right in each.
    """
    values, place = np.unique(judged.confidence, return_inverse=True)
    weights = np.bincount(place).astype(float)
    shares = np.bincount(place, judged.correct) / weights
    fitted = isotonic_regression(shares, weights=weights)
    steps = np.searchsorted(fitted.blocks, np.arange(len(values)), side="right") - 1
    sizes = np.bincount(steps, weights)[steps]
    outputs = (fitted.x * sizes + 0.5) / (sizes + 1)
    outputs = np.maximum.accumulate(outputs)
    return Calibration("isotonic", inputs=tuple(values.tolist()), outputs=tuple(outputs.tolist()))


def calibrate(
    networks: Iterable[ConfusionNetwork], calibration: Calibration | None
) -> Iterator[ConfusionNetwork]:
    """Yield networks with calibrated confidences; posteriors stay."""
    for network in networks:
        if calibration is None or not network.slots:
            yield network
            continue
        values = calibration.apply(np.array([slot.confidence for slot in network.slots]))
        pairs = zip(network.slots, values.tolist(), strict=True)
        slots = tuple(replace(slot, confidence=value) for slot, value in pairs)
        yield replace(network, slots=slots)


def save_calibration(calibration: Calibration, path) -> None:
    """Write a calibration as JSON."""
    tree = {"method": calibration.method}
    if calibration.method == "isotonic":
        tree |= {"inputs": list(calibration.inputs), "outputs": list(calibration.outputs)}
    else:
        tree |= {"slope": calibration.slope, "shift": calibration.shift}
    write_json(tree, path, allow_nan=False)


def load_calibration(path) -> Calibration:
    """Read a calibration; UserError for what `save_calibration` cannot have written."""
    remedy = "write it again with lmtools network calibrate"
    tree = read_json(path, remedy)
    wrong = UserError(f"{path}: no calibration; {remedy}")
    if tree.get("method") not in METHODS:
        raise wrong
    steps = tree["method"] == "isotonic"
    names = ("inputs", "outputs") if steps else ("slope", "shift")
    if tree.keys() != {"method", *names}:
        raise wrong
    try:
        values = [np.atleast_1d(np.array(tree[name], dtype=float)) for name in names]
    except (TypeError, ValueError):
        raise wrong from None
    if any(value.ndim != 1 or not np.isfinite(value).all() or not len(value) for value in values):
        raise wrong
    if not steps:
        return Calibration(tree["method"], *(float(value[0]) for value in values))
    inputs, outputs = values
    rising = len(inputs) == len(outputs) and (np.diff(inputs) > 0).all()
    if not rising or outputs.min() < 0 or outputs.max() > 1:
        raise wrong
    return Calibration("isotonic", inputs=tuple(inputs.tolist()), outputs=tuple(outputs.tolist()))
