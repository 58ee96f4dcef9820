"""The embedded mini corpus of egs/stsb is what its README says: checked from the committed files
alone.
"""

import hashlib
import lzma
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from lmtools.text import NORMALISERS
from lmtools.vectors import pairs

MINI = Path(__file__).parents[3] / "egs/stsb/mini"
README = (MINI / "README.md").read_text(encoding="utf-8")
GRADES = [5.0, 2.0, 1.0, 0.0]
COUNT = {"dev": 400, "test": 800}
RUN, NEAR = 8, 6
words = NORMALISERS["librispeech"]


@pytest.fixture(scope="module")
def sets() -> dict[str, list]:
    """The pairs of each set."""
    return {name: list(pairs.read(MINI / f"{name}.tsv.xz", "tsv")) for name in COUNT}


@pytest.fixture(scope="module")
def text() -> dict[str, list[str]]:
    """The lines of both texts as they are printed."""
    return {
        name: lzma.decompress((MINI / f"{name}.txt.xz").read_bytes()).decode().splitlines()
        for name in ("train", "valid")
    }


@pytest.fixture(scope="module")
def plain(text) -> dict[str, list[str]]:
    """The lines of both texts, normalised."""
    return {name: list(map(words, lines)) for name, lines in text.items()}


def runs(sentence: str, length: int) -> set[tuple[str, ...]]:
    """The runs of words in a normalised sentence."""
    split = sentence.split()
    return set(zip(*(split[i:] for i in range(length)), strict=False))


def figures(line: str) -> list[float]:
    """The cells of a table's row that are numbers."""
    cells = (cell.strip().replace(",", "").replace("−", "-") for cell in line.split("|"))
    return [float(cell) for cell in cells if re.fullmatch(r"-?[\d.]+", cell)]


def overlap(left: str, right: str) -> float:
    one, other = set(left.split()), set(right.split())
    return len(one & other) / len(one | other)


def plain_pairs(some) -> list[tuple[str, str]]:
    return [(words(pair.left), words(pair.right)) for pair in some]


def test_checksums_and_size():
    lines = [line.split() for line in (MINI / "SHA256SUMS").read_text().splitlines()]
    assert {name.lstrip("*") for _, name in lines} == {path.name for path in MINI.glob("*.xz")}
    for expected, name in lines:
        assert hashlib.sha256((MINI / name.lstrip("*")).read_bytes()).hexdigest() == expected
    assert sum(path.stat().st_size for path in MINI.iterdir()) < 1.6e6


@pytest.mark.parametrize("name", COUNT)
def test_figures_of_a_set(sets, name):
    """Sizes, how far word overlap gets, and its mean for each grade are those of the README."""
    some, sides = sets[name], plain_pairs(sets[name])
    gold = np.array([pair.similarity for pair in some])
    shared = np.array([overlap(*pair) for pair in sides])
    correlations = [stats.pearsonr(shared, gold).statistic, stats.spearmanr(shared, gold).statistic]
    size = sum(len(side.split()) for pair in sides for side in pair)
    first, means = (line for line in README.splitlines() if line.startswith(f"| {name} |"))
    assert figures(first) == [len(some), size, *(round(100 * value, 1) for value in correlations)]
    assert figures(means) == [round(100 * shared[gold == grade].mean(), 1) for grade in GRADES]
    assert shared[gold == 5].max() <= 0.5
    assert round(100 * np.corrcoef(gold == 5, gold)[0, 1], 1) == 92.6 and "of 92.6." in README
    assert gold.var() == 3.5


def test_text_has_nothing_of_dev_and_test(sets, plain):
    """No sentence, and no run of eight words; dev, test and valid share none with one another and
    the training text either.
    """
    hidden, whole = {}, {}
    for name, some in sets.items():
        whole[name] = {side for pair in plain_pairs(some) for side in pair}
        hidden[name] = set().union(*(runs(side, RUN) for side in whole[name]))
    whole["valid"] = set(plain["valid"])
    hidden["valid"] = set().union(*(runs(line, RUN) for line in plain["valid"]))
    assert all(len(some) > 3000 for some in hidden.values())
    names = ("dev", "test", "valid")
    for one in names:
        assert all(
            one == other
            or (hidden[one].isdisjoint(hidden[other]) and whole[one].isdisjoint(whole[other]))
            for other in names
        )
    every_run, every_line = set().union(*hidden.values()), set().union(*whole.values())
    assert not any(line in every_line for line in plain["train"])
    assert all(every_run.isdisjoint(runs(line, RUN)) for line in plain["train"])
