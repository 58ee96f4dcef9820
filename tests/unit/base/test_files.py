import gzip
import hashlib
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

from lmtools import UserError, using
from lmtools.base import atomic, files
from lmtools.base.atomic import atomic_directory, atomic_path, atomic_text
from lmtools.base.files import read_bytes, read_lines, sha256

SUFFIXES = ["", ".gz", ".xz"]


def lines(path):
    return list(read_lines(path))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.text(
            st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff"), max_size=10
        )
    ),
    st.sampled_from(SUFFIXES),
)
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


@pytest.mark.parametrize("read", [lines, read_bytes])
def test_unreadable(tmp_path, read):
    with pytest.raises(
        UserError, match="no: cannot read: No such file or directory; check the path"
    ):
        read(tmp_path / "no")
    with pytest.raises(UserError, match="cannot read: Is a directory"):
        read(tmp_path)


def test_line_of_bad_utf8_is_named(tmp_path):
    (tmp_path / "t").write_bytes(b"a\nb\n\xe9t\xe9\n")
    with pytest.raises(UserError, match="t:3: not UTF-8; write it as UTF-8: iconv -f"):
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
        path.write_bytes(
            packed[:place]
            if draw.random() < 0.3
            else packed[:place] + changed + packed[place + 1 :]
        )
        for read in (
            read_bytes,
            lambda p: b"".join(b"%s\n" % line.encode() for _, line in read_lines(p)),
        ):
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


def test_unwritable(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="cannot write"), atomic_text(tmp_path / "file/t"):
        pass
    with (
        pytest.raises(UserError, match="is a directory; give the name of a file"),
        atomic_text(tmp_path),
    ):
        pass
    with (
        pytest.raises(UserError, match="cannot write"),
        atomic_directory(tmp_path / "file/t", "marker"),
    ):
        pass
    with pytest.raises(UserError, match="cannot read"):
        sha256(tmp_path / "no")


def test_half_a_surrogate_pair_does_not_stop_writing(tmp_path):
    with atomic_text(tmp_path / "t") as stream:
        stream.write("a\ud800b\n")
    assert lines(tmp_path / "t") == [(1, "a?b")]


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
    with (
        pytest.raises(ValueError, match="stop"),
        atomic_directory(tmp_path / "d", "marker") as temporary,
    ):
        (temporary / "marker").write_text("new")
        raise ValueError("stop")
    assert (tmp_path / "d/marker").read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["d"]


def test_foreign_directories_and_files_are_refused(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/precious").write_text("x")
    (tmp_path / "f").write_text("x")
    for name in "df":
        with pytest.raises(
            UserError, match="exists and holds no marker; give another directory or remove it"
        ):
            fill(tmp_path / name, "1")
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["d", "f", "precious"]


WRITERS = {
    "file": "with atomic_text(path) as stream: stream.write('n'); stream.flush(); hold()",
    "compressed": "with atomic_text(path) as stream: stream.write('n'); stream.flush(); hold()",
    "directory": (
        "with atomic_directory(path, 'marker') as folder: (folder / 'marker').write_text('n');"
        " hold()"
    ),
}


def writer(path, kind, hold="print('begun', flush=True); time.sleep(60)"):
    """A process that has begun to write `path` and will not end by itself."""
    script = (
        "import os, sys, time; from lmtools.base import files; from lmtools.base.atomic import"
        " atomic_directory, atomic_text\n"
    )
    script += f"path = sys.argv[1]\ndef hold(): {hold}\n{WRITERS[kind]}"
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "begun\n"
    return child


def kill(child):
    child.kill()
    child.wait()
    child.stdout.close()


def rewrite(path, kind):
    """Write `path` in a new process, which looks for what others left."""
    child = writer(path, kind, "print('begun', flush=True)")
    child.stdout.close()
    assert child.wait() == 0


@pytest.mark.parametrize("kind", WRITERS)
def test_the_next_writer_sweeps_what_a_killed_one_left(tmp_path, kind):
    path = tmp_path / ("t.gz" if kind == "compressed" else "t")
    for child in [writer(path, kind), writer(path, kind)]:
        kill(child)
    other = tmp_path / f"{path.name}2"
    kill(writer(other, kind))
    assert len(os.listdir(tmp_path)) == 3
    rewrite(path, kind)
    assert sorted(
        name for name in os.listdir(tmp_path) if not name.startswith(f".{other.name}.")
    ) == [path.name]
    assert len(os.listdir(tmp_path)) == 2


@pytest.mark.parametrize("kind", WRITERS)
def test_what_a_living_process_writes_is_left(tmp_path, kind):
    child = writer(tmp_path / "t", kind)
    (there,) = os.listdir(tmp_path)
    rewrite(tmp_path / "t", kind)
    assert sorted(os.listdir(tmp_path)) == sorted([there, "t"])
    kill(child)


def test_what_a_child_of_a_killed_process_may_still_write_is_left(tmp_path):
    """A forked worker holds its parent's lock, whoever has that number by now."""
    fork = (
        "child = os.fork(); (print('begun', flush=True) if child else None); time.sleep(60 if child"
        " else 3)"
    )
    parent = writer(tmp_path / "t", "file", fork)
    (there,) = os.listdir(tmp_path)
    parent.kill()
    parent.wait()
    rewrite(tmp_path / "t", "file")
    assert there in os.listdir(tmp_path)
    parent.stdout.read()  # ends when the worker does
    parent.stdout.close()
    rewrite(tmp_path / "t", "file")
    assert os.listdir(tmp_path) == ["t"]


FOREIGN = [
    ".t.0123456789abcdef.abcdefgh.tmp",
    ".t.abcdefgh.tmp",
    ".t.{boot}.abcdefgh.tmp.x",
    ".t2.{boot}.abcdefgh.tmp",
]


@pytest.mark.parametrize("name", FOREIGN)
def test_what_another_machine_or_program_left_is_left(tmp_path, name):
    """Locks say nothing of other machines, nor of a time before this one was started."""
    foreign = tmp_path / name.format(boot=atomic.boot())
    foreign.mkdir()
    rewrite(tmp_path / "t", "file")
    assert foreign.is_dir()


def test_planted_links_are_not_followed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/t").write_text("x")
    (tmp_path / f".t.{atomic.boot()}.abcdefgh.tmp").symlink_to(tmp_path / "precious")
    folder = tmp_path / f".t.{atomic.boot()}.bcdefghi.tmp"
    folder.mkdir()
    (folder / "t").symlink_to(tmp_path / "precious")
    rewrite(tmp_path / "t", "file")
    assert (tmp_path / "precious/t").read_text() == "x"
    assert not folder.exists()


def test_a_directory_whose_replacement_was_killed_comes_back(tmp_path):
    """Between two renames nothing is there; the next writer restores the old directory."""
    fill(tmp_path / "d", "old")
    script = (
        "import os, signal, sys; from lmtools.base.atomic import atomic_directory\nrename ="
        " os.rename\nos.rename = lambda *names: (rename(*names), os.kill(os.getpid(),"
        " signal.SIGKILL))\nwith atomic_directory(sys.argv[1], 'marker') as folder: (folder /"
        " 'marker').write_text('new')"
    )
    assert (
        subprocess.run([sys.executable, "-c", script, str(tmp_path / "d")]).returncode
        == -signal.SIGKILL
    )
    assert not (tmp_path / "d").exists()
    script = (
        "import sys; from lmtools.base.atomic import *\nwith"
        " atomic_directory(sys.argv[1], 'marker'): sys.exit(3)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path / "d")]).returncode == 3
    assert (tmp_path / "d/marker").read_text() == "old"
    assert os.listdir(tmp_path) == ["d"]


def test_writers_of_one_file_at_once(tmp_path):
    """Processes that write, sweep and are killed never take each other's work away."""
    script = (
        "import sys; from lmtools.base import atomic\n"
        "for turn in range(150):\n"
        "    atomic.left_in.cache_clear()\n"
        "    with atomic.atomic_text(sys.argv[1]) as stream: stream.write(sys.argv[2] * 1000)\n"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / "t"), str(n)], stderr=subprocess.PIPE
        )
        for n in range(4)
    ]
    time.sleep(0.3)
    children[0].kill()
    said = [child.communicate()[1] for child in children]
    assert [child.returncode for child in children[1:]] == [0] * 3, said
    assert len(set((tmp_path / "t").read_text())) == 1
    rewrite(tmp_path / "t", "file")
    assert os.listdir(tmp_path) == ["t"]


def test_links_are_replaced_where_nobody_named_them(tmp_path):
    (tmp_path / "precious").write_text("x")
    (tmp_path / "t").symlink_to(tmp_path / "precious")
    with atomic_path(tmp_path / "t", follow=False) as temporary:
        temporary.write_text("y")
    assert (tmp_path / "precious").read_text() == "x"
    assert not (tmp_path / "t").is_symlink() and (tmp_path / "t").read_text() == "y"


@pytest.mark.parametrize("length", [200, 255])
def test_a_name_as_long_as_the_file_system_permits(tmp_path, length):
    path = tmp_path / ("é" * (length // 2 - 2) + "x.gz")
    rewrite(path, "file")
    kill(writer(path, "file"))
    rewrite(path, "file")
    assert os.listdir(tmp_path) == [path.name]


FULL = """
import resource, signal, sys
import numpy as np
from lmtools.base.errors import UserError
from lmtools.base.atomic import atomic_directory, atomic_path, atomic_text
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
path, act = sys.argv[1:3]
def directory():
    with atomic_directory(path, "marker") as folder, atomic_text(folder / "marker") as stream: stream.write("x" * 10**6)
def text():
    with atomic_text(path) as stream: stream.write("".join(map(str, range(10**6))))
def late():
    with atomic_text(path) as stream: stream.write("x" * 20_001)
def numpy():
    with atomic_path(path) as temporary, open(temporary, "wb") as stream: np.savez(stream, a=np.zeros(10**6))
def library():
    with atomic_path(path, failures=(RuntimeError,)) as temporary: raise RuntimeError("no room")
try: globals()[act]()
except UserError as error: print(error)
"""


@pytest.mark.parametrize("act", ["text", "late", "numpy", "directory", "library"])
def test_a_full_disk_is_said_in_one_line(tmp_path, act):
    path = tmp_path / ("t.gz" if act == "text" else "t")
    command = [sys.executable, "-c", FULL, str(path), act]
    done = subprocess.run(command, capture_output=True, text=True)
    said = done.stdout
    assert said.startswith(str(path)) and "; " in said and said.count("\n") == 1, done
    assert not done.stderr and not os.listdir(tmp_path)


def test_errors_of_something_else_are_not_blamed_on_the_file(tmp_path):
    for error in (
        BrokenPipeError(32, "Broken pipe"),
        FileNotFoundError(2, "No such file", "other"),
        PermissionError(13, "no", "/other"),
    ):
        with pytest.raises(type(error)), atomic_text(tmp_path / "t"):
            raise error
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "suffix, pack", [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)]
)
@using(max_line="1K")
def test_a_line_may_have_so_many_bytes(tmp_path, suffix, pack):
    path = tmp_path / f"t{suffix}"
    path.write_bytes(pack(b"a\n" + b"b" * 1023 + b"\n" + b"c" * 1024))
    assert [len(line) for _, line in read_lines(path)] == [1, 1023, 1024]
    path.write_bytes(pack(b"a\n" + b"b" * 1024 + b"\nc\n"))
    large = r"more than 16384 bytes, too much for a file of its kind; .*--max-line"
    with pytest.raises(UserError, match=r"t.*:2: a line of more than 1024 bytes; .*--max-line"):
        lines(path)
    path.write_bytes(pack(bytes(1024 * files.WHOLE)))
    assert len(read_bytes(path)) == 1024 * files.WHOLE
    path.write_bytes(pack(bytes(1024 * files.WHOLE + 1)))
    with pytest.raises(UserError, match=large):
        read_bytes(path)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("text", [b"", b"\n", b"a\nbb\n\nccccccccc\nd", b"a\n\n\nb\n"])
def test_chunks_are_whole_lines(tmp_path, size, text):
    (tmp_path / "t").write_bytes(text)
    chunks = list(files.raw_chunks(tmp_path / "t", size))
    assert b"".join(chunks) == text
    assert all(chunk.endswith(b"\n") for chunk in chunks[:-1])
    longest = max(map(len, text.splitlines(keepends=True)), default=0)
    assert all(len(chunk) <= max(size, longest) + size for chunk in chunks)


@pytest.mark.parametrize("size", [1, 3, 100])
def test_chunks_refuse_long_lines(tmp_path, monkeypatch, size):
    monkeypatch.setenv("LMTOOLS_MAX_LINE", "5")
    (tmp_path / "t").write_bytes(b"1234\n\n1234\n12345\n1\n")
    with pytest.raises(UserError, match=r"t:4: a line of more than 5 bytes"):
        list(files.raw_chunks(tmp_path / "t", size))
