"""egs/librispeech/mini-real and the script that chooses its text."""

import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lmtools.formats import jsonl

RECIPE = Path(__file__).parents[2] / "egs/librispeech"
CORPUS = RECIPE / "mini-real"
SIZES = {"dev": 367, "test": 100, "vosk/test": 100, "ocean/dev": 300, "ocean/test": 600}


def runs(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + 7]) for start in range(len(words) - 6)}


def test_its_text_shares_no_seven_words_with_its_references():
    held_out = set()
    for name, size in SIZES.items():
        lists = list(jsonl.read(CORPUS / f"{name}.nbest.jsonl.xz"))
        assert len(lists) == size
        held_out.update(run for nbest in lists for run in runs(nbest.ref.split()))
    words = 0
    for part in ("train", "valid"):
        with lzma.open(CORPUS / f"{part}.txt.xz", "rt") as lines:
            for line in lines:
                assert held_out.isdisjoint(runs(line.split())), line
                words += len(line.split())
    assert words > 1_200_000
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 4 << 20


@pytest.fixture
def choose(tmp_path, monkeypatch):
    """Run the script, its sizes a thousandth, on books; the lines of train and valid."""
    monkeypatch.syspath_prepend(RECIPE / "make_mini")
    import mini_real

    monkeypatch.setattr(mini_real, "WORDS", 40)
    monkeypatch.setattr(mini_real, "MOST", 70)
    monkeypatch.setattr(mini_real, "LENGTHS", range(10, 60))
    monkeypatch.setattr(mini_real, "MOST_SHARED", 1)

    def run(*books: str, leave_out: tuple = ()) -> list[list[str]]:
        (tmp_path / "books").write_text("\n".join(books))
        (tmp_path / "dev.text").write_text("a-1 THE CAT SAT\na-2 THE CAT RAN\n")
        ref = "one two three four five six seven eight"
        nbest = {"utt": "u", "ref": ref, "hyps": []}
        nbest["hyps"] += [{"text": "Mr. One", "scores": {"am": 0.0, "avg": -1.0}}]
        nbest["hyps"] += [{"text": "mr one", "scores": {"am": 2.0, "avg": -2.0}}]
        (tmp_path / "lists").write_text(json.dumps(nbest) + "\n")
        argv = f"x --books {tmp_path}/books --rank-by {tmp_path}/dev.text --out {tmp_path}/out"
        argv += f" --lists test={tmp_path}/lists"
        left_out = ["--leave-out", *map(str, leave_out)] if leave_out else []
        monkeypatch.setattr(sys, "argv", [*argv.split(), *left_out])
        mini_real.main()
        return [
            lzma.open(tmp_path / f"out/{part}.txt.xz", "rt").read().splitlines()
            for part in ("train", "valid")
        ]

    return run


CATS, DOGS, BIRDS = ("the cat sat\n" * 9, "a dog was here\n" * 7, "birds fly\n" * 9)


def test_whole_books_nearest_to_the_transcripts_come_first(choose, tmp_path):
    train, valid = choose(BIRDS, DOGS, CATS)
    assert train == CATS.splitlines() + DOGS.splitlines()
    assert valid == BIRDS.splitlines()
    (nbest,) = jsonl.read(tmp_path / "out/test.nbest.jsonl.xz")
    assert [(hyp.text, hyp.written, hyp.scores) for hyp in nbest.hyps] == [
        ("mister one", "Mr. One", {"am": 0.0})
    ]


def test_books_of_named_lines_stay_out(choose):
    train, valid = choose(BIRDS, DOGS, CATS, BIRDS.replace("birds", "mrs"), leave_out=(20,))
    assert {*train, *valid} == {"birds fly", "a dog was here", "missus fly"}


def test_lines_that_share_words_with_a_reference_stay_out(choose):
    train, valid = choose(BIRDS, DOGS, CATS + "so one two three four five six seven\n")
    assert set(train) == {"the cat sat", "a dog was here"} and valid == BIRDS.splitlines()


def test_the_book_of_the_references_is_refused(choose):
    from lmtools import UserError

    with pytest.raises(UserError, match="share runs of 7 words"):
        choose(BIRDS, DOGS, CATS + "one two three four five six seven\n" * 2)


def test_stages_0_and_1_take_it_from_the_repository(tmp_path):
    command = ("./run.sh", "--corpus", "mini-real", "--stop-stage", "1", "--depth", "2")
    where = ("--datadir", tmp_path / "data", "--expdir", tmp_path / "exp")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run((*command, *where), cwd=RECIPE, env={**os.environ, "PATH": path}, check=True)
    lists = [list(jsonl.read(tmp_path / f"data/{name}/nbest.jsonl")) for name in ("dev", "test")]
    assert [len(nbests) for nbests in lists] == [367, 100]
    assert all(len(nbest.hyps) <= 2 for nbests in lists for nbest in nbests)
