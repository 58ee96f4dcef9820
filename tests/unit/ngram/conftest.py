"""A text with words that recur, for the tests of n-gram models."""

import random

import pytest

from lmtools.ngram import build
from lmtools.text import Normaliser


@pytest.fixture(scope="session")
def lines():
    """300 sentences of 0 to 12 of 60 words, frequent ones first, some not ASCII."""
    draw = random.Random(7)
    words = [f"wört{i}" if i % 9 == 4 else f"w{i}" for i in range(60)]
    return [
        " ".join(words[int(60 * draw.random() ** 3)] for _ in range(draw.randrange(13)))
        for _ in range(300)
    ]


@pytest.fixture(scope="session")
def text(lines, tmp_path_factory):
    """The file of `lines`."""
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def directory(text, tmp_path_factory):
    """A trigram model of `text`."""
    out = tmp_path_factory.mktemp("lm") / "lm"
    build([text], 3, out, Normaliser(case="lower"), kenlm="none")
    return out
