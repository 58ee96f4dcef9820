"""A cache makes scoring quicker or does nothing: whatever becomes of its files, scores are those
without it, and there is no traceback.
"""

import contextlib
import errno
import hashlib
import io
import os
import random
import shutil
import signal
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from shlex import split

import numpy as np
import pytest
from scoring import ask
from toys import sentences

from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.ngram import build
from lmtools.score import cache, load, score_texts
from lmtools.score.cache import (
    HEADER,
    MAGIC,
    UNFINISHED,
    VECTORS,
    Cache,
    merge_segments,
    write_values,
)
from lmtools.score.texts import open_cache
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
    options = ask(lm, cache=str(directory))
    return score_texts(texts, load(*options), options.computing).log_prob


@pytest.fixture(scope="module")
def filled(lm, tmp_path_factory):
    """A cache that has all scores, in two segments, and as many vectors."""
    home = tmp_path_factory.mktemp("filled")
    scores(lm, home, TEXTS[::2])
    scores(lm, home)
    with contextlib.closing(Cache(home, SIGNATURE, VECTORS)) as store:
        store.put((text, np.full((1, 5), len(text), np.float32)) for text in TEXTS)
    assert len(segments(home)) == 3
    return home


def segments(home) -> list:
    return sorted(path for path in home.rglob("*") if path.is_file())


def damaged(content: bytes, rng: random.Random) -> bytes:
    """`content` with bits turned, bytes overwritten, pages swapped or the end cut off."""
    kind, new = rng.randrange(5), bytearray(content)
    if kind == 0:
        return content[: rng.randrange(len(content))]
    if kind == 1:
        one, two = (slice(n, n + 64) for n in (64 * rng.randrange(len(new) // 64) for _ in "12"))
        new[one], new[two] = new[two], new[one]
    elif kind == 2:
        begin = rng.randrange(len(content))
        new[begin : begin + rng.choice((16, 512, 4096))] = bytes(rng.choice((16, 512, 4096)))
    else:
        for _ in range(rng.choice((1, 20, 300))):
            new[rng.randrange(len(new))] ^= 1 << rng.randrange(8)
    return bytes(new)


def test_damage_changes_no_score(lm, plain, filled, tmp_path, capsys):
    """And is told once: the second time the cache is sound again."""
    rng, told = random.Random(1), 0
    for number in range(150):
        home = tmp_path / str(number)
        shutil.copytree(filled, home)
        for path in segments(home):
            path.write_bytes(damaged(path.read_bytes(), rng))
        for _ in range(2):
            np.testing.assert_array_equal(scores(lm, home), plain)
            with contextlib.closing(Cache(home, SIGNATURE, VECTORS)) as store:
                assert all(
                    (value == len(TEXTS[i])).all() and value.shape == (5,)
                    for i, value in store.get(TEXTS).items()
                )
            said = capsys.readouterr().err.splitlines()
            assert all(line.startswith(f"warning: {home}/") for line in said)
            assert all("damaged rows or files, computed again" in line for line in said)
            told += len(said)
        assert not said, number
    assert told > 150


def test_damaged_rows_are_told_once_and_mended(lm, plain, filled, tmp_path, capsys):
    home = shutil.copytree(filled, tmp_path / "c")
    count = 0
    for path in segments(home / "scores"):
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        content[-1 - 8 * (path.stat().st_size // 100)] ^= 1
        path.write_bytes(content)
        count += 2
    np.testing.assert_array_equal(scores(lm, home), plain)
    (said,) = capsys.readouterr().err.splitlines()
    folder = next((home / "scores").iterdir())
    again = "computed again; remove the directory if more are found next time"
    assert said == f"warning: {folder}: {count} damaged rows or files, {again}"
    np.testing.assert_array_equal(scores(lm, home), plain)
    assert capsys.readouterr().err == ""


def forged(home, content: bytes) -> None:
    """Put a file among the segments of SIGNATURE's scores."""
    folder = Cache(home, SIGNATURE).folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{hashlib.sha256(content).hexdigest()[:32]}.segment").write_bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no segment at all" * 100,
        HEADER.pack(MAGIC, 0, 8),
        HEADER.pack(MAGIC, 1 << 60, 8),
        HEADER.pack(MAGIC, 1, 1 << 62),
        HEADER.pack(MAGIC, 2, 3) + bytes(2 * 43),
        HEADER.pack(MAGIC, 2, 8) + bytes(2 * 48 - 1),
    ],
)
def test_what_is_no_segment_is_taken_away(tmp_path, content, capsys):
    forged(tmp_path, content)
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        assert store.get(["a"]) == {}
        store.put([("a", -1.5)])
    assert "1 damaged rows or files, computed again" in capsys.readouterr().err
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        assert store.get(["b", "a"]) == {1: -1.5}
    assert len(segments(tmp_path)) == 1 and capsys.readouterr().err == ""


def test_other_files_stay(tmp_path, capsys):
    """Those of earlier versions, of the user, links, and what another process is writing."""
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        store.put([("a", -1.5)])
        folder = store.folder
    others = [tmp_path / "scores.sqlite", folder / "mine", folder / f"{UNFINISHED}5"]
    for path in others:
        path.write_bytes(b"x")
    (folder / ("0" * 32 + ".segment")).symlink_to(others[0])
    old = folder / f"{UNFINISHED}6"
    old.write_bytes(b"x")
    os.utime(old, (0, 0))
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        assert store.get(["a"]) == {0: -1.5}
    assert all(path.exists() for path in others) and not old.exists()
    assert capsys.readouterr().err == ""


def test_values_of_several_sizes(tmp_path):
    with contextlib.closing(Cache(tmp_path, SIGNATURE, VECTORS)) as store:
        store.put((n, np.full(n, n, np.float32)) for n in range(1, 9))
    with contextlib.closing(Cache(tmp_path, SIGNATURE, VECTORS)) as store:
        found = store.get(range(12))
        assert {n: value.tolist() for n, value in found.items()} == {
            n: [n] * n for n in range(1, 9)
        }
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        assert store.get(range(12)) == {}


@pytest.mark.parametrize("reopened", [False, True])
def test_merging_loses_nothing(tmp_path, monkeypatch, reopened):
    """500 segments of one run become a few while it runs, and those of many runs too."""
    monkeypatch.setattr(cache, "EVERY", -1.0)
    store, most = Cache(tmp_path, SIGNATURE), 0
    for n in range(500):
        store.put((f"{n} {i}", n + i / 7) for i in range(3))
        if reopened:
            store.close()
            store = Cache(tmp_path, SIGNATURE)
        most = max(most, len(segments(tmp_path)))
    store.close()
    assert most <= (33 if reopened else 24)
    assert len(segments(tmp_path)) <= (33 if reopened else 1)
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        found = store.get([f"{n} {i}" for n in range(500) for i in range(4)])
    assert found == {4 * n + i: n + i / 7 for n in range(500) for i in range(3)}


def test_large_segments_are_left_alone(tmp_path, monkeypatch):
    """Of other runs, and of the run itself, whose small ones become large."""
    monkeypatch.setattr(cache, "LARGE", 400)
    for n in range(40):
        with contextlib.closing(Cache(tmp_path / "a", SIGNATURE)) as store:
            store.put((f"{n} {i}", 1.0) for i in range(12))
    assert len(segments(tmp_path / "a")) == 40
    monkeypatch.setattr(cache, "EVERY", -1.0)
    with contextlib.closing(Cache(tmp_path / "b", SIGNATURE)) as store:
        for n in range(640):
            store.put([(n, 1.0)])
        eight = HEADER.size + cache.MERGED * 48
        assert [path.stat().st_size for path in segments(tmp_path / "b")] == 80 * [eight]
        assert len(store.get(range(641))) == 640


def random_values(count: int, width: int, seed: int) -> dict[bytes, bytes]:
    draw = random.Random(seed)
    return {draw.randbytes(32): draw.randbytes(width) for _ in range(count)}


def test_merging_takes_bounded_memory(tmp_path, monkeypatch):
    """Of values of each size, as many files as fit; the others stay."""
    monkeypatch.setattr(cache, "MOST_MERGED", 1 << 18)
    values: dict[bytes, bytes] = {}
    for n in range(40):
        part = random_values(5, 4000 if n % 2 else 4096, n)
        write_values(tmp_path, part)
        values |= part
    made = merge_segments(tmp_path, segments(tmp_path))
    assert {*made} == {*segments(tmp_path)} and len(made) == 2 * (20 - 12 + 1)
    keys, found = [*values], {}
    for path in made:
        found |= cache.Segment(path).find(keys)[0]
    assert [found[i] for i in range(len(keys))] == [values[key] for key in keys]


def test_open_files(tmp_path):
    """No segment holds one, however many there are."""
    folder = Cache(tmp_path, SIGNATURE).folder
    open_before = len(os.listdir("/proc/self/fd"))
    for n in range(30):
        with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
            store.put([(n, 1.0)])
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        assert len(store.get(range(31))) == 30 == len(segments(folder))
        assert len(os.listdir("/proc/self/fd")) == open_before


def test_nobody_waits_for_a_pipe(tmp_path, capsys):
    """Nor for one that replaces a segment that is known; both are left alone."""
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        store.put([("a", -1.5)])
    (path,) = segments(tmp_path)
    pipe = path.with_name("0" * 32 + ".segment")
    os.mkfifo(pipe)
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("waits for a pipe"))
    signal.setitimer(signal.ITIMER_REAL, 10, 1)
    try:
        with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
            assert store.get(["a"]) == {0: -1.5}
            path.unlink()
            os.mkfifo(path)
            assert store.get(["a"]) == {}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert pipe.is_fifo() and path.is_fifo() and capsys.readouterr().err == ""


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_of_two_values_of_a_key_that_of_the_lower_checksum_stays(tmp_path, order):
    """In whatever order, and among whichever others."""
    key, rest = bytes(range(32)), random_values(4, 8, 1)
    values = sorted((bytes([n] * 8) for n in range(3)), key=lambda v: cache.checksum(key, v))
    paths = [write_values(tmp_path, rest | {key: values[n]})[0] for n in order]
    (made,) = merge_segments(tmp_path, paths)
    assert cache.Segment(made).find([key]) == ({0: values[0]}, 0)


def test_two_that_merge_at_the_same_time_keep_a_value(tmp_path, monkeypatch):
    """One merges a and b, the other b, c and a, and both have read before either removes."""
    key = bytes(32)
    a, b, c = (write_values(tmp_path, {key: bytes([n] * 8)})[0] for n in range(3))
    removed: list = []
    monkeypatch.setattr(Path, "unlink", lambda path, *_, **__: removed.append(path))
    for some in ([a, b], [b, c, a], [c, b, a], [c, a]):
        merge_segments(tmp_path, some)
    assert {*segments(tmp_path)} - {*removed}


def test_a_segment_that_vanishes_is_unknown(tmp_path, monkeypatch, capsys):
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        store.put([("a", -1.5)])
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        assert store.get(["a"]) == {0: -1.5}
        monkeypatch.setattr(os, "pread", failing(errno.ESTALE))
        assert store.get(["a"]) == {}
        monkeypatch.undo()
        segments(tmp_path)[0].unlink()
        assert store.get(["a"]) == {}
    assert capsys.readouterr().err == ""


SHARER = """
import sys
from lmtools.score import cache
cache.EVERY = 0.001
directory, who = sys.argv[1], int(sys.argv[2])
store = cache.Cache(directory, {"lm": "x"})
for n in range(300):
    names = [f"{(n * (who + 3)) % 200} {i}" for i in range(20)]
    known = store.get(names)
    assert all(value == len(names[i]) for i, value in known.items())
    store.put((name, len(name)) for i, name in enumerate(names) if i not in known)
    if n % 50 == who:
        store.close()
        store = cache.Cache(directory, {"lm": "x"})
store.close()
"""


def test_four_processes_share_a_directory(tmp_path):
    """While they merge each other's segments."""
    running = [
        subprocess.Popen([sys.executable, "-c", SHARER, str(tmp_path), str(who)], stderr=-1)
        for who in range(4)
    ]
    assert [process.communicate()[1] for process in running] == [b""] * 4
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        names = [f"{n} {i}" for n in range(200) for i in range(20)]
        assert store.get(names) == {k: len(name) for k, name in enumerate(names)}
    assert not list(tmp_path.rglob(f"{UNFINISHED}*"))


@pytest.fixture
def nbest(tmp_path):
    jsonl.write(
        [NBest(f"u{i}", (Hypothesis(text),)) for i, text in enumerate(TEXTS)], tmp_path / "n.jsonl"
    )
    return tmp_path / "n.jsonl"


def scored(lm, nbest, directory, capsys) -> list[str]:
    """What `lmtools score` says; it succeeds, and its file is that without a cache."""
    command = f"score --lm {lm} --nbest {nbest} --out {nbest.parent}"
    for out, where in (("a", "none"), ("b", directory)):
        assert main(split(f"{command}/{out} --cache {where}")) == 0
        said = capsys.readouterr().err.splitlines()
    assert (nbest.parent / "a").read_bytes() == (nbest.parent / "b").read_bytes()
    assert "hypotheses of" in said[-1]
    return said[:-1]


@pytest.mark.parametrize(
    ("where", "loss"),
    [
        ("n.jsonl", "cache given up"),
        ("n.jsonl/below", "cache given up"),
        ("/proc/none", "cache read but not written from here on"),
    ],
)
def test_no_directory(lm, nbest, tmp_path, capsys, where, loss):
    (said,) = scored(lm, nbest, tmp_path / where, capsys)
    assert f"{where}: {loss} (" in said and said.endswith(
        "; check the path and its permissions, or give another --cache"
    )


def failing(number):
    """A function that fails as the system does by this number."""

    def fail(*_):
        raise OSError(number, os.strerror(number))

    return fail


def test_a_full_disk(lm, nbest, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cache, "write_values", failing(errno.ENOSPC))
    monkeypatch.setattr(cache, "EVERY", 0.0)
    (said,) = scored(lm, nbest, tmp_path / "c", capsys)
    assert said == (
        f"warning: {tmp_path}/c: cache read but not written from here on (No space left on device);"
        " make room on its disk, or give another --cache"
    )


def test_a_directory_to_read_only_is_read(lm, plain, filled, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cache, "write_values", failing(errno.ESTALE))
    monkeypatch.setattr("lmtools.score.texts.run_batches", lambda *_: pytest.fail("computed again"))
    np.testing.assert_array_equal(scores(lm, filled), plain)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("what", "kept"), [("write_values", 1), ("merge_segments", cache.MERGED)])
def test_where_writing_or_merging_fails_reading_goes_on(tmp_path, capsys, monkeypatch, what, kept):
    monkeypatch.setattr(cache, "EVERY", -1.0)
    with contextlib.closing(Cache(tmp_path, SIGNATURE)) as store:
        store.put([(0, 1.0)])
        monkeypatch.setattr(cache, what, failing(errno.ESTALE))
        for n in range(1, 20):
            store.put([(n, 1.0)])
        assert len(store.get(range(20))) == kept
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"warning: {tmp_path}: cache read but not written from here on (")


def test_a_pipe_opens_the_cache_once_and_writes_each_second(
    lm, nbest, tmp_path, capsys, monkeypatch
):
    calls = []
    monkeypatch.setattr(
        Cache, "__init__", lambda *args, made=Cache.__init__: calls.append("open") or made(*args)
    )
    monkeypatch.setattr(
        Cache, "write", lambda self, write=Cache.write: calls.append("write") or write(self)
    )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(nbest.read_bytes())))
    assert main(split(f"score --lm {lm} --nbest - --out {tmp_path}/o --cache {tmp_path}/c")) == 0
    assert calls.count("open") == 1 and calls.count("write") < 20 < len(TEXTS)
    np.testing.assert_array_equal(scores(lm, "none"), scores(lm, tmp_path / "c"))
    monkeypatch.setattr("lmtools.score.texts.run_batches", lambda *_: pytest.fail("computed again"))
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
    monkeypatch.setattr("lmtools.base.batching.APART", 1)
    options = ask(lm, cache=str(tmp_path))
    scorer = load(*options)
    left = iter(range(20))
    original = scorer.log_probs
    monkeypatch.setattr(
        scorer,
        "log_probs",
        lambda batch: original(batch) if next(left, None) is not None else interrupt(),
    )
    with pytest.raises(KeyboardInterrupt):
        score_texts(TEXTS, scorer, options.computing)
    with contextlib.closing(open_cache(scorer, options.computing)) as store:
        assert len(store.get(list(dict.fromkeys(scorer.prepare(TEXTS))))) == 20


def interrupt():
    raise KeyboardInterrupt
