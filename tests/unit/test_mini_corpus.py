"""The embedded mini corpus of egs/librispeech is what its README says: checked from the committed
files alone.
"""

import hashlib
import lzma
from pathlib import Path

import pytest

from lmtools.formats import jsonl

MINI = Path(__file__).parents[2] / "egs" / "librispeech" / "mini"
LISTS = {name: list(jsonl.read(MINI / f"{name}.nbest.jsonl.xz")) for name in ("dev", "test")}
TEXT = {
    name: lzma.decompress((MINI / f"{name}.txt.xz").read_bytes()).decode().splitlines()
    for name in ("train", "valid")
}
RUN = 8


@pytest.fixture(scope="module", params=["dev", "test"])
def name(request) -> str:
    return request.param


def runs(line: str) -> set[tuple[str, ...]]:
    words = line.split()
    return {tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)}


def distance(left: list[str], right: list[str]) -> int:
    """Levenshtein distance in words, the textbook way."""
    row = list(range(len(right) + 1))
    for i, word in enumerate(left, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(right, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (word != other))
    return row[-1]


def test_checksums_and_size():
    sums = dict(
        reversed(line.split("  ")) for line in (MINI / "SHA256SUMS").read_text().splitlines()
    )
    assert {path.name for path in MINI.iterdir()} == {*sums, "SHA256SUMS", "README.md"}
    for path, digest in sums.items():
        assert hashlib.sha256((MINI / path).read_bytes()).hexdigest() == digest, path
    assert sum(path.stat().st_size for path in MINI.iterdir()) < 5.5e6


def test_nothing_held_out_is_in_the_text():
    seen = set().union(*(runs(line) for line in TEXT["train"]))
    lines = {*TEXT["train"], *TEXT["valid"]}
    assert not [line for line in TEXT["valid"] if runs(line) & seen]
    for nbests in LISTS.values():
        assert not [nbest.utt for nbest in nbests if nbest.ref in lines or runs(nbest.ref) & seen]


def test_dev_and_test_come_from_different_books():
    books = {name: {nbest.utt.split("-")[1] for nbest in nbests} for name, nbests in LISTS.items()}
    assert books["dev"] and books["test"] and not books["dev"] & books["test"]
    assert not {nbest.ref for nbest in LISTS["dev"]} & {nbest.ref for nbest in LISTS["test"]}
