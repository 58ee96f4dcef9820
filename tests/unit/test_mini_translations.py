"""The embedded mini corpus of egs/wmt13 is what its README says: checked from the committed files
alone.
"""

import hashlib
import lzma
from pathlib import Path

import pytest

from lmtools.formats import jsonl

MINI = Path(__file__).parents[2] / "egs/wmt13/mini"
README = (MINI / "README.md").read_text(encoding="utf-8")
SETS = ("de-en dev", "de-en test", "fr-en dev", "fr-en test")
BILINGUAL = [f"{pair}.{part}" for pair in ("de-en", "fr-en") for part in ("train", "valid")]
RUN = 8
LONGEST = 30  # words of a side of a pair


@pytest.fixture(scope="module")
def lists() -> dict[str, list]:
    """The N-best lists of each set."""
    return {
        name: list(jsonl.read(MINI / f"{name.replace(' ', '.')}.nbest.jsonl.xz")) for name in SETS
    }


@pytest.fixture(scope="module")
def text() -> dict[str, list[str]]:
    return {name: lines_of(f"{name}.txt") for name in ("train", "valid")}


@pytest.fixture(scope="module")
def pairs() -> dict[str, list[list[str]]]:
    """The bilingual text: foreign and English sentence of each pair."""
    return {name: [line.split("\t") for line in lines_of(f"{name}.tsv")] for name in BILINGUAL}


@pytest.fixture(scope="module")
def hidden(lists) -> dict[str, set]:
    """Sentences of dev and test in all three languages, and the runs of words of the English."""
    english = {nbest.ref for name in SETS for nbest in lists[name]}
    foreign = {nbest.extra["source"] for name in SETS for nbest in lists[name]}
    return {
        "sentences": english | foreign,
        "runs": {run for sentence in english for run in runs(sentence)},
    }


def lines_of(name: str) -> list[str]:
    return lzma.decompress((MINI / f"{name}.xz").read_bytes()).decode().splitlines()


def runs(sentence: str) -> set[tuple[str, ...]]:
    words = sentence.lower().split()
    return {tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)}


def test_checksums_and_size():
    lines = [line.split() for line in (MINI / "SHA256SUMS").read_text().splitlines()]
    assert {name.lstrip("*") for _, name in lines} == {path.name for path in MINI.glob("*.xz")}
    for expected, name in lines:
        assert hashlib.sha256((MINI / name.lstrip("*")).read_bytes()).hexdigest() == expected
    assert sum(path.stat().st_size for path in MINI.glob("*.xz")) < 2 * 2**20


def test_text_has_nothing_of_dev_and_test(lists, text, hidden):
    """No sentence, and no run of eight words; dev and test share no sentence either."""
    dev, test = ({nbest.ref for nbest in lists[f"de-en {part}"]} for part in ("dev", "test"))
    assert len(hidden["runs"]) > 5000 and dev.isdisjoint(test)
    for lines in text.values():
        assert hidden["sentences"].isdisjoint(lines)
        assert not any(runs(line) & hidden["runs"] for line in lines)
        assert len(set(lines)) == len(lines)


def test_pairs_have_nothing_of_dev_and_test(pairs, hidden):
    """Neither side a sentence, the English no eight words; training's are apart."""
    for name, some in pairs.items():
        for pair in some:
            assert len(pair) == 2 and hidden["sentences"].isdisjoint(pair), (name, pair)
            assert min(len(side.split()) for side in pair) >= 3
            assert max(len(side.split()) for side in pair) <= LONGEST
            assert not runs(pair[1]) & hidden["runs"]
    for pair in ("de-en", "fr-en"):
        train, valid = (set(map(tuple, pairs[f"{pair}.{part}"])) for part in ("train", "valid"))
        assert train.isdisjoint(valid)
