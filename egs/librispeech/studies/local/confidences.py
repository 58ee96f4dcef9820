#!/usr/bin/env python3
"""confidences.py DIR TEXT [DEV_DIR DEV_TEXT]: how calibrated words of transcripts are.

DIR is what `lmtools transcribe --to json` wrote, TEXT has a reference a recording. Printed are the
figures of `lmtools network measure` for Whisper's `probability`, for the `confidence` of the second
pass, and for the less of both; with DEV_DIR also after what `lmtools network calibrate` learns of
it.
"""

import json
import sys
from pathlib import Path

import numpy as np

from lmtools.evaluate.edits import align
from lmtools.formats import kaldi_text
from lmtools.networks.confidence import JudgedWords, learn_calibration
from lmtools.text.normaliser import NORMALISERS

WORDS = NORMALISERS["librispeech"]
NAMES = ("probability", "confidence")


def judge(directory: str, references: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the confidences (kinds, words) of recordings, and which words are right (words,)."""
    values: list[list[float]] = []
    correct = []
    for utt, ref in kaldi_text.read(references).items():
        tree = json.loads(Path(directory, f"{utt}.json").read_text())
        words = [word for segment in tree["segments"] for word in segment["words"]]
        spoken = [(part, word) for word in words for part in WORDS(word["word"]).split()]
        right = np.ones(len(spoken), dtype=bool)
        for tag, _, place in align(WORDS(ref).split(), [part for part, _ in spoken]).edits:
            if tag != "delete":
                right[place] = False
        correct.append(right)
        values += [[word.get(name, 1.0) for name in NAMES] for _, word in spoken]
    shares = np.array(values).T
    return np.vstack([shares, shares.min(0)]), np.concatenate(correct)


def main(directory: str, references: str, *dev: str) -> None:
    """Print a row a figure of words."""
    shares, right = judge(directory, references)
    kinds = (*NAMES, "the less")
    rows = list(zip(kinds, shares, strict=True))
    if dev:
        known, said = judge(*dev)
        for kind, some, other in zip(kinds, shares, known, strict=True):
            for method in ("temperature", "logistic"):
                learnt = learn_calibration(JudgedWords(other, said), method)
                rows.append((f"{kind}, {method}", learnt.apply(some)))
    print("| | words | right % | mean % | NCE | ECE % | ROC area |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, some in rows:
        count, share, cross, error, area = JudgedWords(some, right).figures.values()
        row = f"{count} | {share:.1f} | {100 * some.mean():.1f} | {cross:.2f} | {error:.1f}"
        print(f"| {name} | {row} | {area:.2f} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
