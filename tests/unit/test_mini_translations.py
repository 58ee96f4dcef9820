"""The embedded mini corpus of egs/wmt13 is what its README says: checked from the committed files
alone.
"""

import hashlib
import lzma
import re
from pathlib import Path

import pytest
import sacrebleu

from lmtools.evaluate.nbest import oracle
from lmtools.formats import jsonl

MINI = Path(__file__).parents[2] / "egs/wmt13/mini"
README = (MINI / "README.md").read_text(encoding="utf-8")
SETS = ("de-en dev", "de-en test", "fr-en dev", "fr-en test")
BILINGUAL = [f"{pair}.{part}" for pair in ("de-en", "fr-en") for part in ("train", "valid")]
RUN = 8
DEPTH = 20
LONGEST = 30  # words of a side of a pair


@pytest.fixture(scope="module")
def lists() -> dict[str, list]:
    """The N-best lists of each set."""
    return {
        name: list(jsonl.read(MINI / f"{name.replace(' ', '.')}.nbest.jsonl.xz")) for name in SETS
    }


@pytest.fixture(scope="module")
def text() -> dict[str, list[str]]:
    """The lines of both texts."""
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
    """The lines of a file of text."""
    return lzma.decompress((MINI / f"{name}.xz").read_bytes()).decode().splitlines()


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
    assert sum(path.stat().st_size for path in MINI.glob("*.xz")) < 2 * 2**20


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
        assert len({hyp.text for hyp in nbest.hyps}) == len(nbest.hyps) <= DEPTH
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


def test_text_has_nothing_of_dev_and_test(lists, text, hidden):
    """No sentence, and no run of eight words; dev and test share no sentence either."""
    dev, test = ({nbest.ref for nbest in lists[f"de-en {part}"]} for part in ("dev", "test"))
    assert len(hidden["runs"]) > 5000 and dev.isdisjoint(test)
    for lines in text.values():
        assert hidden["sentences"].isdisjoint(lines)
        assert not any(runs(line) & hidden["runs"] for line in lines)
        assert len(set(lines)) == len(lines)


def test_pairs_have_nothing_of_dev_and_test(pairs, hidden):
    """Neither side a sentence, the English no run of eight words; training and validation share no
    pair.
    """
    for name, some in pairs.items():
        for pair in some:
            assert len(pair) == 2 and hidden["sentences"].isdisjoint(pair), (name, pair)
            assert min(len(side.split()) for side in pair) >= 3
            assert max(len(side.split()) for side in pair) <= LONGEST
            assert not runs(pair[1]) & hidden["runs"]
    for pair in ("de-en", "fr-en"):
        train, valid = (set(map(tuple, pairs[f"{pair}.{part}"])) for part in ("train", "valid"))
        assert train.isdisjoint(valid)


def test_figures_of_the_pairs(pairs):
    for name, some in pairs.items():
        row = next(line for line in README.splitlines() if line.startswith(f"| `{name}.tsv.xz` |"))
        words = [sum(len(pair[side].split()) for pair in some) for side in (0, 1)]
        assert numbers(row.partition(": ")[2]) == [len(some), *words], name


def test_figures_of_the_text(text):
    for name, lines in text.items():
        row = next(line for line in README.splitlines() if line.startswith(f"| `{name}.txt.xz` |"))
        assert {len(lines), sum(len(line.split()) for line in lines)} <= set(
            map(int, numbers(row.partition(": ")[2]))
        )
    assert not "".join(text["valid"]).isascii()  # typographic marks are kept as they are
