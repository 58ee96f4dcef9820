"""How well confidences of words agree with what is right: normalised cross entropy (NIST), expected
calibration error, the ROC.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from lmtools.base.errors import UserError
from lmtools.evaluate.edits import align
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
        """Normalised cross entropy: the share of the entropy of right and wrong that confidences
        take away, 1 at best; below 0 they are worse than the same number for all. NaN where all
        words are right, or all wrong.
        """
        right = self.correct.mean()
        if right in (0, 1):
            return math.nan
        values = np.clip(self.confidence, CLIP, 1 - CLIP)
        most = -len(self.correct) * (right * np.log(right) + (1 - right) * np.log1p(-right))
        gained = np.log(values[self.correct]).sum() + np.log1p(-values[~self.correct]).sum()
        return float((most + gained) / most)

    def reliability(self, bins: int = BINS) -> np.ndarray:
        """Return (bins, 3): mean confidence, share right and number of words of each bin of equal
        width; NaN, NaN and 0 where none falls into it.
        """
        place = np.minimum((self.confidence * bins).astype(int), bins - 1)
        counts = np.bincount(place, minlength=bins)
        with np.errstate(invalid="ignore"):
            sums = [np.bincount(place, v, bins) / counts for v in (self.confidence, self.correct)]
        return np.stack([*sums, counts], axis=1)

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: the mean distance of confidence and share right, over words
        in BINS bins (Guo, Pleiss, Sun and Weinberger 2017).
        """
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
        """Return (points, 2): shares of wrong and of right words whose confidence reaches a
        threshold, from none to all; NaN where there are no wrong words, or no right ones.
        """
        order = np.argsort(-self.confidence, kind="stable")
        ends = np.append(np.diff(self.confidence[order]) != 0, True)
        hits = np.stack([np.cumsum(~self.correct[order]), np.cumsum(self.correct[order])], axis=1)
        points = np.concatenate([[[0, 0]], hits[ends]]).astype(float)
        return points / np.where(points[-1] > 0, points[-1], np.nan)

    @property
    def area(self) -> float:
        """Area under the ROC: how often a right word has more confidence than a wrong one; NaN
        where all words are right, or all wrong.
        """
        points = self.roc()
        widths, heights = np.diff(points[:, 0]), points[1:, 1] + points[:-1, 1]
        return float((widths * heights).sum() / 2)


def judge_words(networks: Iterable[ConfusionNetwork], refs: Mapping[str, str]) -> JudgedWords:
    """Judge the chosen words of networks against references by utterance, by the alignment of the
    fewest errors; UserError where there are no words.
    """
    confidences, correct = [], []
    for network in networks:
        slots = network.spoken
        right = np.ones(len(slots), dtype=bool)
        words = [slot.chosen for slot in slots]
        for tag, _, place in align(refs[network.utt].split(), words).edits:
            if tag != "delete":
                right[place] = False
        confidences += [slot.confidence for slot in slots]
        correct.append(right)
    if not confidences:
        raise UserError("no words in the networks; give those of recognised speech")
    return JudgedWords(np.array(confidences), np.concatenate(correct))
