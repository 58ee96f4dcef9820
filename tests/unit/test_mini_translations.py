"""The embedded mini corpus of egs/wmt13 is what its README says: checked from the committed files
alone.
"""

import hashlib
import lzma
import re
from pathlib import Path

import pytest
import sacrebleu

from lmtools.evaluate import oracle
from lmtools.formats import jsonl

MINI = Path(__file__).parents[2] / "egs/wmt13/mini"
README = (MINI / "README.md").read_text(encoding="utf-8")
SETS = ("de-en dev", "de-en test", "fr-en dev", "fr-en test")
RUN = 8


@pytest.fixture(scope="module")
def lists() -> dict[str, list]:
    """The N-best lists of each set."""
    return {
        name: list(jsonl.read(MINI / f"{name.replace(' ', '.')}.nbest.jsonl.xz")) for name in SETS
    }


@pytest.fixture(scope="module")
def text() -> dict[str, list[str]]:
    """The lines of both texts."""
    return {
        name: lzma.decompress((MINI / f"{name}.txt.xz").read_bytes()).decode().splitlines()
        for name in ("train", "valid")
    }


def numbers(cells: str) -> list[float]:
    """The figures in a row of a table."""
    return [float(cell.replace(",", "")) for cell in re.findall(r"\d[\d,]*(?:\.\d+)?", cells)]


def runs(sentence: str) -> set[tuple[str, ...]]:
    words = sentence.lower().split()
    return {tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)}


def test_checksums_and_size():
    lines = [line.split() for line in (MINI / "SHA256SUMS").read_text().splitlines()]
    assert {name.lstrip("*") for _, name in lines} == {path.name for path in MINI.glob("*.xz")}
    for expected, name in lines:
        assert hashlib.sha256((MINI / name.lstrip("*")).read_bytes()).hexdigest() == expected
    assert sum(path.stat().st_size for path in MINI.glob("*.nbest.jsonl.xz")) < 3e6


@pytest.mark.parametrize("name", SETS)
def test_figures_of_the_lists(lists, name):
    """Sizes, first-pass BLEU by sacrebleu itself and oracle are those of the README."""
    nbests = lists[name]
    shown = numbers(
        next(line for line in README.splitlines() if line.startswith(f"| {name} |")).removeprefix(
            f"| {name} "
        )
    )
    first = sacrebleu.corpus_bleu(
        [nbest.hyps[0].text for nbest in nbests], [[nbest.ref for nbest in nbests]]
    ).score
    sizes = (
        len(nbests),
        sum(len(nbest.hyps) for nbest in nbests),
        sum(len(nbest.ref.split()) for nbest in nbests),
    )
    assert [*sizes, round(first, 2)] == shown[:-1]
    if name.endswith("dev"):  # 15,000 sentence scores; those of test are as many again and more
        assert round(float(oracle(nbests, "bleu")[-1]), 2) == shown[-1]
    assert [nbest.utt for nbest in nbests] == [
        f"{name.split()[1]}-{i}" for i in range(1, len(nbests) + 1)
    ]
    for nbest in nbests:
        assert len({hyp.text for hyp in nbest.hyps}) == len(nbest.hyps) <= 50
        assert [hyp.scores["norm"] for hyp in nbest.hyps] == sorted(
            (hyp.scores["norm"] for hyp in nbest.hyps), reverse=True
        )
        assert nbest.extra["source"] and all(
            hyp.scores["am"] <= hyp.scores["norm"] <= 0 for hyp in nbest.hyps
        )


def test_both_pairs_have_the_same_references(lists):
    for part in ("dev", "test"):
        assert [nbest.ref for nbest in lists[f"de-en {part}"]] == [
            nbest.ref for nbest in lists[f"fr-en {part}"]
        ]


def test_text_has_nothing_of_dev_and_test(lists, text):
    """No sentence, and no run of eight words; dev and test share no sentence either."""
    refs = {part: {nbest.ref for nbest in lists[f"de-en {part}"]} for part in ("dev", "test")}
    hidden = {run for some in refs.values() for ref in some for run in runs(ref)}
    assert len(hidden) > 5000 and refs["dev"].isdisjoint(refs["test"])
    for lines in text.values():
        assert not any(line in refs["dev"] | refs["test"] for line in lines)
        assert not any(runs(line) & hidden for line in lines)
        assert len(set(lines)) == len(lines)


def test_figures_of_the_text(text):
    for name, lines in text.items():
        row = next(line for line in README.splitlines() if line.startswith(f"| `{name}.txt.xz` |"))
        assert {len(lines), sum(len(line.split()) for line in lines)} <= set(
            map(int, numbers(row.partition(": ")[2]))
        )
    assert not "".join(text["valid"]).isascii()  # typographic marks are kept as they are
