"""A cache makes scoring quicker or does nothing: whatever becomes of its file, scores are those
without it, and there is no traceback.
"""

import contextlib
import io
import random
import shutil
import sqlite3
import struct
import sys

import numpy as np
import pytest
from toys import sentences

from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.ngram import build
from lmtools.score import ScoreOptions, cache, score_texts
from lmtools.score.cache import FILE, VECTORS, Cache
from lmtools.text import Normaliser
from lmtools.types import Hypothesis, NBest

TEXTS = sorted({*sentences(400, 5), ""})
SIGNATURE = {"lm": "x"}


@pytest.fixture(scope="module")
def lm(tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("cache") / "lm"
    build([tiny / "train.txt"], 2, out, Normaliser(), kenlm="none")
    return str(out)


@pytest.fixture(scope="module")
def plain(lm):
    return scores(lm, "none")


def scores(lm, directory, texts=TEXTS):
    options = ScoreOptions(lm, cache=str(directory))
    return score_texts(texts, options.load(), options).log_prob


@pytest.fixture(scope="module")
def filled(lm, tmp_path_factory):
    """The file of a cache that has all scores and as many vectors."""
    home = tmp_path_factory.mktemp("filled")
    scores(lm, home)
    with contextlib.closing(Cache(home, SIGNATURE, VECTORS)) as store:
        store.put((text, np.full((1, 5), len(text), np.float32)) for text in TEXTS)
    assert {path.name for path in home.iterdir()} == {FILE}
    return home / FILE


def damaged(content: bytes, rng: random.Random) -> bytes:
    """`content` with bits turned, bytes overwritten, pages swapped or the end cut off."""
    kind, new = rng.randrange(5), bytearray(content)
    if kind == 0:
        return content[: rng.randrange(len(content))]
    if kind == 1:
        first, second = (4096 * rng.randrange(len(content) // 4096) for _ in "12")
        new[first : first + 4096], new[second : second + 4096] = (
            new[second : second + 4096],
            new[first : first + 4096],
        )
    elif kind == 2:
        begin = rng.randrange(len(content))
        new[begin : begin + rng.choice((16, 512, 4096))] = bytes(rng.choice((16, 512, 4096)))
    else:
        for _ in range(rng.choice((1, 20, 300))):
            new[rng.randrange(len(new))] ^= 1 << rng.randrange(8)
    return bytes(new)


def test_damage_changes_no_score(lm, plain, filled, tmp_path, capsys):
    rng, content, told, given_up = random.Random(1), filled.read_bytes(), 0, 0
    for number in range(150):
        home = tmp_path / str(number)
        home.mkdir()
        (home / FILE).write_bytes(damaged(content, rng))
        np.testing.assert_array_equal(scores(lm, home), plain)
        with contextlib.closing(Cache(home, SIGNATURE, VECTORS)) as store:
            assert all(
                (value == len(TEXTS[i])).all() and value.shape == (5,)
                for i, value in store.get(TEXTS).items()
            )
        said = capsys.readouterr().err.splitlines()
        assert len(said) <= 2 and all(line.startswith(f"warning: {home / FILE}: ") for line in said)
        told += any("damaged rows, computed again" in line for line in said)
        given_up += any("cache given up (" in line for line in said)
        shutil.rmtree(home)
    assert told > 20 and given_up > 20


def test_a_schema_of_no_text(lm, plain, filled, tmp_path, capsys):
    """What SQLite says of it is none either."""
    (tmp_path / FILE).write_bytes(
        filled.read_bytes().replace(
            b"CREATE TABLE checked_score", b"CREATE TA\xff\xfeE checked_score"
        )
    )
    np.testing.assert_array_equal(scores(lm, tmp_path), plain)
    assert capsys.readouterr().err.startswith(f"warning: {tmp_path / FILE}: cache given up (")


def test_a_damaged_score_is_told_once_and_mended(lm, plain, filled, tmp_path, capsys):
    shutil.copy(filled, tmp_path / FILE)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as file, file:
        for key, row in file.execute("SELECT key, row FROM checked_score LIMIT 3").fetchall():
            file.execute(
                "UPDATE checked_score SET row = ? WHERE key = ?",
                (row[:8] + struct.pack("<d", -1.0), key),
            )
        file.execute(
            "UPDATE checked_score SET row = 'text' WHERE key = (SELECT max(key) FROM checked_score)"
        )
    np.testing.assert_array_equal(scores(lm, tmp_path), plain)
    again = "computed again; remove the file if more are found next time"
    assert capsys.readouterr().err == f"warning: {tmp_path / FILE}: 4 damaged rows, {again}\n"
    np.testing.assert_array_equal(scores(lm, tmp_path), plain)
    assert capsys.readouterr().err == ""


def test_rows_without_a_checksum_are_not_used(lm, plain, tmp_path, capsys):
    """The layout of earlier versions."""
    options = ScoreOptions(lm)
    scorer = options.load()
    address = Cache(None, scorer.signature).key
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as file, file:
        file.execute(
            "CREATE TABLE score (key BLOB PRIMARY KEY, log_prob REAL NOT NULL) WITHOUT ROWID"
        )
        file.executemany(
            "INSERT INTO score VALUES (?, ?)", ((address(s), -1.0) for s in scorer.prepare(TEXTS))
        )
    np.testing.assert_array_equal(scores(lm, tmp_path), plain)
    assert capsys.readouterr().err == ""


def test_a_schema_that_acts_is_not_carried_out(lm, plain, tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as file, file:
        file.execute("CREATE VIEW checked_score AS SELECT x'00' AS key, x'00' AS row")
    np.testing.assert_array_equal(scores(lm, tmp_path), plain)


@pytest.fixture
def nbest(tmp_path):
    jsonl.write(
        [NBest(f"u{i}", (Hypothesis(text),)) for i, text in enumerate(TEXTS)], tmp_path / "n.jsonl"
    )
    return tmp_path / "n.jsonl"


def scored(lm, nbest, directory, capsys) -> list[str]:
    """What `lmtools score` says; it succeeds, and its file is that without a cache."""
    for out, where in (("a", "none"), ("b", directory)):
        assert (
            main(
                [
                    "score",
                    "--lm",
                    lm,
                    "--nbest",
                    str(nbest),
                    "--out",
                    str(nbest.parent / out),
                    "--cache",
                    str(where),
                ]
            )
            == 0
        )
        said = capsys.readouterr().err.splitlines()
    assert (nbest.parent / "a").read_bytes() == (nbest.parent / "b").read_bytes()
    assert "hypotheses of" in said[-1]
    return said[:-1]


def test_no_database(lm, nbest, tmp_path, capsys):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / FILE).write_text("no database at all" * 100)
    (said,) = scored(lm, nbest, tmp_path / "c", capsys)
    file = tmp_path / "c" / FILE
    assert (
        said
        == f"warning: {file}: cache given up (file is not a database); remove it, or give another"
        " --cache"
    )


@pytest.mark.parametrize("where", ["n.jsonl", "n.jsonl/below", "/proc/none"])
def test_no_directory(lm, nbest, tmp_path, capsys, where):
    (said,) = scored(lm, nbest, tmp_path / where, capsys)
    assert f"{where}/{FILE}: cache given up (" in said and said.endswith(
        "; check the path and its permissions, or give another --cache"
    )


def test_a_directory_in_its_place(lm, nbest, tmp_path, capsys):
    (tmp_path / "c" / FILE).mkdir(parents=True)
    (said,) = scored(lm, nbest, tmp_path / "c", capsys)
    assert "unable to open database file" in said and "check the path and its permissions" in said


def test_a_full_disk(lm, nbest, tmp_path, capsys, monkeypatch):
    def small(path, table, opened=cache.open_database):
        connection = opened(path, table)
        connection.execute("PRAGMA max_page_count=3")
        return connection

    monkeypatch.setattr(cache, "open_database", small)
    monkeypatch.setattr(cache, "EVERY", 0.0)
    (said,) = scored(lm, nbest, tmp_path / "c", capsys)
    assert said.endswith(
        "cache given up (database or disk is full); make room on its disk, or give another --cache"
    )


def test_another_process_writes_for_long(lm, nbest, tmp_path, capsys, monkeypatch):
    scores(lm, tmp_path / "c", ["the king"])
    monkeypatch.setattr(cache, "LOCKED", 0.2)
    with contextlib.closing(sqlite3.connect(tmp_path / "c" / FILE)) as other:
        other.execute("BEGIN IMMEDIATE")
        (said,) = scored(lm, nbest, tmp_path / "c", capsys)
    assert said.endswith(
        "cache given up (database is locked); wait for the other process that writes it, or give"
        " another --cache"
    )


def test_a_pipe_opens_the_cache_once_and_writes_each_second(
    lm, nbest, tmp_path, capsys, monkeypatch
):
    calls = []
    monkeypatch.setattr(
        cache,
        "open_database",
        lambda *where, opened=cache.open_database: calls.append("open") or opened(*where),
    )
    monkeypatch.setattr(
        Cache, "write", lambda self, write=Cache.write: calls.append("write") or write(self)
    )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(nbest.read_bytes())))
    assert (
        main(
            [
                "score",
                "--lm",
                lm,
                "--nbest",
                "-",
                "--out",
                f"{tmp_path}/o",
                "--cache",
                f"{tmp_path}/c",
            ]
        )
        == 0
    )
    assert calls.count("open") == 1 and calls.count("write") < 20 < len(TEXTS)
    np.testing.assert_array_equal(scores(lm, "none"), scores(lm, tmp_path / "c"))
    monkeypatch.setattr("lmtools.score.run.score_batch", lambda *_: pytest.fail("computed again"))
    scores(lm, tmp_path / "c")


def test_what_was_put_is_known_before_it_is_written(tmp_path):
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        store.put([("a", -1.5)])
        assert store.get(["b", "a"]) == {1: -1.5}
        with contextlib.closing(Cache(tmp_path, SIGNATURE)) as other:
            assert other.get(["a"]) == {}
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        assert store.get(["b", "a"]) == {1: -1.5}


def test_an_interrupt_keeps_what_was_computed(lm, plain, tmp_path, monkeypatch):
    monkeypatch.setattr("lmtools.batching.APART", 1)
    options = ScoreOptions(lm, cache=str(tmp_path))
    scorer = options.load()
    left = iter(range(20))
    original = scorer.log_probs
    monkeypatch.setattr(
        scorer,
        "log_probs",
        lambda batch: original(batch) if next(left, None) is not None else interrupt(),
    )
    with pytest.raises(KeyboardInterrupt):
        score_texts(TEXTS, scorer, options)
    with contextlib.closing(options.open_cache(scorer)) as store:
        assert len(store.get(list(dict.fromkeys(scorer.prepare(TEXTS))))) == 20


def interrupt():
    raise KeyboardInterrupt
