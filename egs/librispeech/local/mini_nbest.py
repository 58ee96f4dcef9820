#!/usr/bin/env python3
"""Writes N-best lists of distinct word strings and pruned lattices for the utterances of a plan, from the decoder's own lattices.

`am` is the natural-log acoustic score of the best path of the string, fillers and their penalties included; `lm` the natural-log
probability that the decoder's language model gives to the string, with <s> and </s>. Both are unscaled. The order is by what the
decoder's last pass maximises, am + 9.5 lm - 0.63 words: it weights the LM with `bestpathlw`, and scales the word insertion penalty
`wip`, which is inside its weighted LM score, by bestpathlw / lw.
"""

import argparse
import functools
import itertools
import math
import multiprocessing
from pathlib import Path

from mini_lattice import Context, Scored, read_slf
from pocketsphinx import Decoder

from lmtools.files import read_lines
from lmtools.formats import jsonl
from lmtools.types import Hypothesis, NBest

DEPTH = 50


class Rescorer:
    """The decoder's language model and weights."""

    def __init__(self) -> None:
        decoder = Decoder(loglevel="FATAL")
        self.model = decoder.get_lm()
        self.unit = math.log(decoder.config["logbase"])
        self.scale = decoder.config["bestpathlw"]
        self.penalty = self.scale / decoder.config["lw"] * math.log(decoder.config["wip"])
        self.probability = functools.cache(self.compute)

    def compute(self, word: str, context: Context) -> float:
        """ln p(word | context): pocketsphinx wants the word first, then its history, most recent first, and answers in its own base."""
        return self.model.prob([word.lower(), *(w.lower() for w in context)]) * self.unit
