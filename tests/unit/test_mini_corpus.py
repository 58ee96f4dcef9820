"""The embedded mini corpus of egs/librispeech is what its README says: checked from the committed
files alone.
"""

import hashlib
import io
import json
import lzma
import re
import tarfile
from itertools import pairwise
from pathlib import Path

import pytest

from lmtools.evaluate.nbest import oracle
from lmtools.formats import jsonl

MINI = Path(__file__).parents[2] / "egs" / "librispeech" / "mini"
FIGURES = json.loads((MINI / "mini.json").read_text(encoding="utf-8"))
LISTS = {name: list(jsonl.read(MINI / f"{name}.nbest.jsonl.xz")) for name in ("dev", "test")}
TEXT = {
    name: lzma.decompress((MINI / f"{name}.txt.xz").read_bytes()).decode().splitlines()
    for name in ("train", "valid")
}
NORMAL = re.compile(r"[A-Z]+[A-Z']*|'[A-Z]+")
DECODED = re.compile(r"[A-Z'.-]+")  # the decoder's dictionary also has `S.` and `BYE-BYE`
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


def lattices(name: str) -> dict[str, str]:
    with tarfile.open(
        fileobj=io.BytesIO(lzma.decompress((MINI / f"{name}.lattices.tar.xz").read_bytes()))
    ) as archive:
        return {
            member.name: archive.extractfile(member).read().decode()
            for member in archive.getmembers()
        }


def slf(text: str):
    """Start, end, words and links by source of an SLF text."""
    rows = [dict(part.split("=", 1) for part in line.split()) for line in text.splitlines()]
    header = {
        key: value
        for row in rows
        if "I" not in row and "J" not in row
        for key, value in row.items()
    }
    words = [row["W"] for row in rows if "I" in row]
    links: dict[int, list[tuple[int, float]]] = {}
    for row in rows:
        if "J" in row:
            links.setdefault(int(row["S"]), []).append((int(row["E"]), float(row["a"])))
    assert (int(header["N"]), int(header["L"])) == (len(words), sum(map(len, links.values())))
    return header, words, links


def acoustic(text: str, hyp: list[str]) -> float:
    """The best acoustic score of a word string in a lattice: dynamic programming over (node, words
    read).
    """
    header, words, links = slf(text)
    best = {(int(header["start"]), 0): 0.0}
    # pocketsphinx numbers nodes from the end of the utterance
    for node in sorted(links, reverse=True):
        for read in range(len(hyp) + 1):
            for target, score in links[node] if (node, read) in best else []:
                assert target < node
                is_word = not words[target].startswith("!")
                if not is_word or words[target].upper() == "".join(hyp[read : read + 1]):
                    place = (target, read + is_word)
                    best[place] = max(best.get(place, float("-inf")), best[node, read] + score)
    return best[int(header["end"]), len(hyp)]


def test_checksums_and_size():
    sums = dict(
        reversed(line.split("  ")) for line in (MINI / "SHA256SUMS").read_text().splitlines()
    )
    assert {path.name for path in MINI.iterdir()} == {*sums, "SHA256SUMS", "README.md"}
    for path, digest in sums.items():
        assert hashlib.sha256((MINI / path).read_bytes()).hexdigest() == digest, path
    assert sum(path.stat().st_size for path in MINI.iterdir()) < 5.5e6


def test_text_is_normal_and_about_a_million_words():
    for name, lines in TEXT.items():
        assert all(3 <= len(line.split()) <= 40 for line in lines)
        assert {
            word for line in lines for word in line.split() if not NORMAL.fullmatch(word)
        } == set()
        words = sum(len(line.split()) for line in lines)
        assert FIGURES["text"][name] == {
            "lines": len(lines),
            "words": words,
            "vocabulary": len(set(" ".join(lines).split())),
        }
    assert FIGURES["text"]["train"]["words"] > 800_000
    assert 5_000 < FIGURES["text"]["valid"]["words"] < 20_000


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


def test_utterances(name):
    nbests = LISTS[name]
    assert len(nbests) >= {"dev": 200, "test": 400}[name]
    assert len({nbest.utt for nbest in nbests}) == len(nbests)
    for nbest in nbests:
        assert re.fullmatch(r"web-[0-9a-z]+-\d+-\d+-(slt|rms|awb|kal16|espeak)-n\d", nbest.utt)
        assert 6 <= len(nbest.ref.split()) <= 25
        assert all(NORMAL.fullmatch(word) for word in nbest.ref.split()), nbest.utt


def test_lists_are_distinct_and_in_the_order_of_the_first_pass(name):
    weights = FIGURES["first_pass"]
    for nbest in LISTS[name]:
        texts = [hyp.text for hyp in nbest.hyps]
        assert 1 < len(set(texts)) == len(texts) <= 50, nbest.utt
        assert all(DECODED.fullmatch(word) for text in texts for word in text.split()), nbest.utt
        assert all(
            hyp.scores.keys() == {"am", "lm"} and max(hyp.scores.values()) < 0 for hyp in nbest.hyps
        )
        totals = [
            h.scores["am"] + weights["lm"] * h.scores["lm"] + weights["words"] * len(h.text.split())
            for h in nbest.hyps
        ]
        assert all(first >= second - 1e-3 for first, second in pairwise(totals)), nbest.utt


def test_error_rates(name):
    nbests, figures = LISTS[name], FIGURES["sets"][name]
    words = sum(len(nbest.ref.split()) for nbest in nbests)
    first_pass = (
        100
        * sum(distance(nbest.ref.split(), nbest.hyps[0].text.split()) for nbest in nbests)
        / words
    )
    best = oracle(nbests)[-1]
    assert (figures["utterances"], figures["words"]) == (len(nbests), words)
    assert figures["wer"] == pytest.approx(first_pass, abs=0.006)
    assert figures["oracle"] == pytest.approx(best, abs=0.006)
    assert 15 < first_pass < 35
    assert best < first_pass - 5


def test_lattices_hold_the_lists(name):
    texts = lattices(name)
    assert list(texts) == sorted(f"{nbest.utt}.slf" for nbest in LISTS[name])
    for nbest in LISTS[name][::10]:
        text = texts[f"{nbest.utt}.slf"]
        assert f"\nUTTERANCE={nbest.utt}\n" in text
        for hyp in (nbest.hyps[0], nbest.hyps[len(nbest.hyps) // 2], nbest.hyps[-1]):
            assert hyp.scores["am"] == pytest.approx(acoustic(text, hyp.text.split()), abs=0.006)
