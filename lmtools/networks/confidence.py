"""Confidences of words: judged by the references' words that they are aligned with, and calibrated
into probabilities of being right, learnt on a development set.

    temperature  logit(p) / T (Guo, Pleiss, Sun and Weinberger 2017)
    logistic     a logit(p) + b (Platt 1999)
    isotonic     steps that rise with p (Zadrozny and Elkan 2002), by scipy

Those with parameters minimise the cross entropy.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import msgspec
import numpy as np
from scipy.optimize import isotonic_regression, minimize
from scipy.special import expit, logit

from lmtools.base.errors import UserError
from lmtools.base.grammar import Finite, fit
from lmtools.base.seal import read_json, write_json
from lmtools.evaluate.edits import align
from lmtools.text.scripts import split_units
from lmtools.types import ConfusionNetwork

CLIP = 1e-4  # nearer to 0 and 1 a single word could outweigh a thousand in the cross entropy
BINS = 10
SURE = 3.0  # standard errors of the ROC area of confidences that say nothing (Mann and Whitney)


@dataclass(frozen=True)
class JudgedWords:
    """Confidences (words,) of the words of hypotheses, and whether each is right (words,) bool."""

    confidence: np.ndarray
    correct: np.ndarray

    @property
    def cross_entropy(self) -> float:
        """Normalised cross entropy: the share of entropy that confidences take away, at best 1; NaN
        where all words are right, or all wrong.
        """
        right = self.correct.mean()
        if right in (0, 1):
            return math.nan
        values = np.clip(self.confidence, CLIP, 1 - CLIP)
        most = -len(self.correct) * (right * np.log(right) + (1 - right) * np.log1p(-right))
        gained = np.log(values[self.correct]).sum() + np.log1p(-values[~self.correct]).sum()
        return float((most + gained) / most)

    def reliability(self, bins: int = BINS) -> np.ndarray:
        """Return (bins, 3): mean confidence, share right, number of words; NaN without."""
        place = np.minimum((self.confidence * bins).astype(int), bins - 1)
        counts = np.bincount(place, minlength=bins)
        with np.errstate(invalid="ignore"):
            sums = [np.bincount(place, v, bins) / counts for v in (self.confidence, self.correct)]
        return np.stack([*sums, counts], axis=1)

    @property
    def calibration_error(self) -> float:
        """Expected calibration error over BINS bins (Guo, Pleiss, Sun, Weinberger 2017)."""
        rows = self.reliability()
        filled = rows[rows[:, 2] > 0]
        return float((np.abs(filled[:, 0] - filled[:, 1]) * filled[:, 2]).sum() / len(self.correct))

    def doubts(self) -> Iterator[str]:
        """Yield why no calibration can tell right words from wrong ones by these confidences."""
        right, count = int(self.correct.sum()), len(self.correct)
        wrong = count - right
        if not right or not wrong:
            which = "wrong" if wrong else "right"
            yield f"all {count} words are {which}: NCE and ROC area need right and wrong ones"
        elif not np.ptp(self.confidence):
            yield f"all {count} confidences are {self.confidence[0]:.4g}: they tell nothing"
        elif 0.5 - self.area > SURE * math.sqrt((count + 1) / (12 * right * wrong)):
            yield (
                f"wrong words have more confidence than right ones (ROC area {self.area:.3f}): are"
                " they probabilities of errors, or costs? 1 - confidence may be what is meant"
            )

    @property
    def figures(self) -> dict[str, float]:
        """The figures by name: words, % right, NCE, ECE %, area under the ROC."""
        return {
            "words": len(self.correct),
            "right %": 100 * float(self.correct.mean()),
            "NCE": self.cross_entropy,
            "ECE %": 100 * self.calibration_error,
            "ROC area": self.area,
        }

    def roc(self) -> np.ndarray:
        """Return (points, 2): shares of wrong and right words that reach a threshold."""
        order = np.argsort(-self.confidence, kind="stable")
        ends = np.append(np.diff(self.confidence[order]) != 0, True)
        hits = np.stack([np.cumsum(~self.correct[order]), np.cumsum(self.correct[order])], axis=1)
        points = np.concatenate([[[0, 0]], hits[ends]]).astype(float)
        return points / np.where(points[-1] > 0, points[-1], np.nan)

    @property
    def area(self) -> float:
        """Area under the ROC; NaN where all words are right, or all wrong."""
        points = self.roc()
        widths, heights = np.diff(points[:, 0]), points[1:, 1] + points[:-1, 1]
        return float((widths * heights).sum() / 2)


def judge_words(networks: Iterable[ConfusionNetwork], refs: Mapping[str, str]) -> JudgedWords:
    """Judge the chosen words of networks against references, aligned with fewest errors."""
    confidences, correct = [], []
    for network in networks:
        slots = network.spoken
        right = np.ones(len(slots), dtype=bool)
        words = [slot.chosen for slot in slots]
        letters = split_units(network.text) == words
        ref = split_units(refs[network.utt]) if letters else refs[network.utt].split()
        for tag, _, place in align(ref, words).edits:
            if tag != "delete":
                right[place] = False
        confidences += [slot.confidence for slot in slots]
        correct.append(right)
    if not confidences:
        raise UserError("no words in the networks; give those of recognised speech")
    return JudgedWords(np.array(confidences), np.concatenate(correct))


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
METHODS = ("temperature", "logistic", "isotonic")
EDGE = 1e-6  # of the logit
RIDGE = 1e-3  # holds parameters where all words are right, or all wrong
FEWEST = 20  # words to learn from


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A rising map of posteriors: points for isotonic, else of the logit by slope and shift."""

    method: Literal[METHODS]
    slope: Finite = 1.0
    shift: Finite = 0.0
    inputs: tuple[Finite, ...] = ()
    outputs: tuple[Share, ...] = ()

    def apply(self, confidence: np.ndarray) -> np.ndarray:
        """Return the calibrated confidences (words,)."""
        if self.method == "isotonic":
            return np.interp(confidence, self.inputs, self.outputs)
        return expit(self.slope * logit(np.clip(confidence, EDGE, 1 - EDGE)) + self.shift)


def learn_calibration(judged: JudgedWords, method: str) -> Calibration:
    """Learn a calibration from judged words; UserError where they are too few."""
    count = len(judged.correct)
    if count < FEWEST:
        raise UserError(
            f"{count} words to calibrate on; give a development set of {FEWEST} or more"
        )
    if method == "isotonic":
        return learn_steps(judged)
    scores = logit(np.clip(judged.confidence, EDGE, 1 - EDGE))
    sign = np.where(judged.correct, 1.0, -1.0)

    def loss(parameters: np.ndarray) -> float:
        slope, shift = np.exp(parameters[0]), parameters[1] if method == "logistic" else 0.0
        errors = np.logaddexp(0, -sign * (slope * scores + shift)).mean()
        return float(errors + RIDGE * (parameters**2).sum() / count)

    slope, shift = minimize(loss, np.zeros(2), method="Nelder-Mead").x
    shift = float(shift) if method == "logistic" else 0.0
    return Calibration(method, float(np.exp(slope)), shift)


def learn_steps(judged: JudgedWords) -> Calibration:
    """Learn rising steps that never reach 0 or 1: as if a word more were half right in each."""
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
    write_json(msgspec.to_builtins(calibration), path, allow_nan=False)


def load_calibration(path) -> Calibration:
    """Read a calibration; UserError for what `save_calibration` cannot have written."""
    remedy = "write it again with lmtools network calibrate"
    calibration = fit(read_json(path, remedy), Calibration, path, remedy=remedy)
    inputs, steps = calibration.inputs, calibration.method == "isotonic"
    rising = len(inputs) == len(calibration.outputs) and (np.diff(inputs) > 0).all()
    if steps != bool(inputs) or not rising:
        raise UserError(f"{path}: no calibration; {remedy}")
    return calibration
