import gzip
import hashlib
import io
import lzma
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.files import atomic_directory, atomic_path, atomic_text, read_bytes, read_lines, sha256

SUFFIXES = ["", ".gz", ".xz"]


def lines(path):
    return list(read_lines(path))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff"), max_size=10)), st.sampled_from(SUFFIXES))
def test_written_lines_are_read_back(tmp_path_factory, texts, suffix):
    path = tmp_path_factory.mktemp("f") / f"t{suffix}"
    with atomic_text(path) as stream:
        stream.writelines(f"{text}\n" for text in texts)
    assert lines(path) == list(enumerate(texts, 1))
    assert read_bytes(path) == "".join(f"{text}\n" for text in texts).encode()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"a", [(1, "a")]),
        (b"a\nb", [(1, "a"), (2, "b")]),
        (b"a\r\nb\r\n", [(1, "a"), (2, "b")]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", [(1, "a"), (2, "\ufeffb")]),
        ("a\u2028b\x85c\x0cd\n".encode(), [(1, "a\u2028b\x85c\x0cd")]),
        (b"\n\n", [(1, ""), (2, "")]),
    ],
)
def test_line_ends(tmp_path, content, expected):
    for suffix, pack in zip(SUFFIXES, (bytes, gzip.compress, lzma.compress), strict=True):
        path = tmp_path / f"t{suffix}"
        path.write_bytes(pack(content))
        assert lines(path) == expected


def test_standard_input(monkeypatch):
    for read, expected in ((lines, [(1, "a"), (2, "é")]), (read_bytes, "a\né\n".encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("a\né\n".encode()), encoding="ascii"))
        assert read("-") == expected
        assert not sys.stdin.closed


def test_standard_output(capsys):
    with atomic_text("-") as stream:
        stream.write("a\n")
    assert capsys.readouterr().out == "a\n"


@pytest.mark.parametrize("read", [lines, read_bytes])
def test_unreadable(tmp_path, read):
    with pytest.raises(UserError, match="no: cannot read: No such file or directory; check the path"):
        read(tmp_path / "no")
    with pytest.raises(UserError, match="cannot read: Is a directory"):
        read(tmp_path)


def test_line_of_bad_utf8_is_named(tmp_path):
    (tmp_path / "t").write_bytes(b"a\nb\n\xe9t\xe9\n")
    with pytest.raises(UserError, match="t:3: not UTF-8; convert it with iconv"):
        lines(tmp_path / "t")


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_damaged_archives(tmp_path, suffix):
    """Cut anywhere, or with any bit changed, an archive is read whole or refused, never half."""
    text = b"".join(b"%d\n" % n for n in random.Random(1).sample(range(10**6), 300))
    packed = {".gz": gzip.compress, ".xz": lzma.compress}[suffix](text)
    path, draw = tmp_path / f"t{suffix}", random.Random(2)
    refused = 0
    for _ in range(150):
        place = draw.randrange(len(packed))
        changed = bytes([packed[place] ^ 1 << draw.randrange(8)])
        path.write_bytes(packed[:place] if draw.random() < 0.3 else packed[:place] + changed + packed[place + 1 :])
        for read in (read_bytes, lambda p: b"".join(b"%s\n" % line.encode() for _, line in read_lines(p))):
            try:
                assert read(path) == text or place == 0
            except UserError as error:
                assert "damaged archive" in str(error)
                refused += 1
    assert refused > 200


def test_error_keeps_the_old_file_and_leaves_nothing(tmp_path):
    path = tmp_path / "t.gz"
    with atomic_text(path) as stream:
        stream.write("old\n")
    with pytest.raises(ValueError, match="stop"), atomic_text(path) as stream:
        stream.write("new\n")
        raise ValueError("stop")
    assert read_bytes(path) == b"old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["t.gz"]


def test_killed_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "t"
    path.write_text("old")
    script = (
        "import sys, time; from lmtools.files import atomic_text\n"
        "with atomic_text(sys.argv[1]) as stream: stream.write('n' * 10**6); stream.flush(); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(path)]) as child:
        begun = False
        for _ in range(2000):
            if begun := any(one.stat().st_size for one in tmp_path.glob(".t.*.tmp")):
                break
            time.sleep(0.01)
        child.kill()
    assert begun
    assert child.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_readers_never_see_a_torn_file(tmp_path):
    """A reader beside a writer that replaces the file again and again sees one version or another, whole."""
    path, stop, torn = tmp_path / "t", threading.Event(), []
    with atomic_text(path) as stream:
        stream.write("0" * 10_000)

    def watch():
        while not stop.is_set():
            content = path.read_text()
            if len(content) != 10_000 or len(set(content)) != 1:
                torn.append(content)

    reader = threading.Thread(target=watch)
    reader.start()
    for version in range(100):
        with atomic_text(path) as stream:
            stream.write(str(version % 10) * 10_000)
    stop.set()
    reader.join()
    assert not torn


def test_equal_content_gives_equal_bytes(tmp_path, monkeypatch):
    for suffix in SUFFIXES:
        for name, clock in (("a", 1e9), ("b", 2e9)):
            monkeypatch.setattr(time, "time", lambda now=clock: now)
            with atomic_text(tmp_path / f"{name}{suffix}") as stream:
                stream.write("text\n")
        assert sha256(tmp_path / f"a{suffix}") == sha256(tmp_path / f"b{suffix}")
    assert sha256(tmp_path / "a") == hashlib.sha256(b"text\n").hexdigest()


def test_permissions_follow_the_mask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_text(tmp_path / "t"):
            pass
        with atomic_directory(tmp_path / "d", "marker"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o750


def test_links_are_followed_devices_and_pipes_kept(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk/t")
    with atomic_text(tmp_path / "link") as stream:
        stream.write("a")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "disk/t").read_text() == "a"
    os.mkfifo(tmp_path / "pipe")
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_text()))
    received = []
    reader.start()
    with atomic_text(tmp_path / "pipe") as stream:
        stream.write("b")
    reader.join()
    assert received == ["b"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_missing_parents_are_made(tmp_path):
    with atomic_text(tmp_path / "a/b/c") as stream:
        stream.write("x")
    assert (tmp_path / "a/b/c").read_text() == "x"


def test_unwritable(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="cannot write"), atomic_text(tmp_path / "file/t"):
        pass
    with pytest.raises(UserError, match="is a directory; give the name of a file"), atomic_text(tmp_path):
        pass
    with pytest.raises(UserError, match="cannot write"), atomic_directory(tmp_path / "file/t", "marker"):
        pass
    with pytest.raises(UserError, match="cannot read"):
        sha256(tmp_path / "no")


def test_half_a_surrogate_pair_does_not_stop_writing(tmp_path):
    with atomic_text(tmp_path / "t") as stream:
        stream.write("a\ud800b\n")
    assert lines(tmp_path / "t") == [(1, "a?b")]


def test_atomic_path_is_a_file_of_the_same_suffix(tmp_path):
    with atomic_path(tmp_path / "t.npz") as temporary:
        assert temporary.suffix == ".npz"
        assert temporary.parent == tmp_path
        temporary.write_bytes(b"x")
    assert (tmp_path / "t.npz").read_bytes() == b"x"


def fill(path, text):
    with atomic_directory(path, "marker") as temporary:
        (temporary / "marker").write_text(text)


def test_directory_is_made_and_replaced(tmp_path):
    path = tmp_path / "a/d"
    fill(path, "1")
    (path / "extra").write_text("x")
    fill(path, "2")
    assert [(one.name, one.read_text()) for one in path.iterdir()] == [("marker", "2")]
    (tmp_path / "empty").mkdir()
    fill(tmp_path / "empty", "3")
    assert [one.name for one in (tmp_path / "a").iterdir()] == ["d"]


def test_directory_keeps_the_old_one_on_error(tmp_path):
    fill(tmp_path / "d", "old")
    with pytest.raises(ValueError, match="stop"), atomic_directory(tmp_path / "d", "marker") as temporary:
        (temporary / "marker").write_text("new")
        raise ValueError("stop")
    assert (tmp_path / "d/marker").read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["d"]


def test_directory_comes_back_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    fill(tmp_path / "d", "old")
    rename, calls = os.rename, []

    def second_fails(source, target):
        calls.append(source)
        if len(calls) == 2:
            raise OSError("no more space")
        rename(source, target)

    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(OSError, match="no more space"):
        fill(tmp_path / "d", "new")
    assert len(calls) == 3
    assert (tmp_path / "d/marker").read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["d"]


def test_foreign_directories_and_files_are_refused(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/precious").write_text("x")
    (tmp_path / "f").write_text("x")
    for name in "df":
        with pytest.raises(UserError, match="exists and holds no marker; give another directory or remove it"):
            fill(tmp_path / name, "1")
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["d", "f", "precious"]
