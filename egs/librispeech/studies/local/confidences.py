#!/usr/bin/env python3
"""confidences.py DIR TEXT: how calibrated words of `lmtools transcribe --to json --out DIR` are.

TEXT has a reference a recording. Printed are the figures of `lmtools network measure` for Whisper's
`probability`, for the `confidence` of the second pass, and for the less of both.
"""

import json
import sys
from pathlib import Path

import numpy as np

from lmtools.evaluate.edits import align
from lmtools.formats import kaldi_text
from lmtools.networks.confidence import JudgedWords
from lmtools.text.normaliser import NORMALISERS

WORDS = NORMALISERS["librispeech"]
NAMES = ("probability", "confidence")


def main(directory: str, references: str) -> None:
    """Print a row a figure of words."""
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
    shares, right = np.array(values), np.concatenate(correct)
    print("| | words | right % | mean % | NCE | ECE % | ROC area |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, some in zip((*NAMES, "the less"), (*shares.T, shares.min(1)), strict=True):
        judged = JudgedWords(some, right)
        count, share, cross, error, area = judged.figures.values()
        row = f"{count} | {share:.1f} | {100 * some.mean():.1f} | {cross:.2f} | {error:.1f}"
        print(f"| {name} | {row} | {area:.2f} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
