"""What is planted into a directory of work is never decoded: it lacks the user's key, or is of
something else.
"""

import os
import pickle
import shutil
from functools import partial
from pathlib import Path

import pytest

from lmtools.base.errors import UserError
from lmtools.base.jobs.records import LENGTH
from lmtools.base.jobs.shards import ITEMS, PART, RESULTS, WORK, run_shard, write_shards
from lmtools.base.jobs.work import Work
from lmtools.base.keys import SIZE, STATE, read_key


class Bomb:
    """What makes a directory when it is unpickled."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (str(self.place),)


def add(offset: int, item: int) -> int:
    return offset + item


@pytest.fixture
def planted(tmp_path):
    """Where a planted pickle leaves its mark."""
    yield tmp_path / "ran"
    assert not (tmp_path / "ran").exists(), "a planted pickle was decoded"


def write(tmp_path, offset: int = 1, items=range(4), reads=()):
    """The shards of a small piece of work."""
    return write_shards(tmp_path / "jobs", Work(partial(add, offset), reads=reads), items, 2)


def done(shards) -> list:
    """The results, after both tasks."""
    for n in range(shards.count):
        run_shard(shards.folder, n)
    return list(shards.results())


def forge(shards, file: str, content: bytes, number: int = 0) -> bytes:
    """The bytes of a file with one record, as whoever lacks the key would write it."""
    keys = shards.keys._replace(key=b"another" * 4)
    signer = {WORK: keys.work(), ITEMS: keys.items(0)}.get(file, keys.results(0))
    path = shards.folder.parent / "forged"
    with open(path, "wb") as stream:
        stream.write(keys.head if file == WORK else b"")
        signer.write_record(stream, number, content)
    data = path.read_bytes()
    path.unlink()
    return data


FORGED = {
    "signed": lambda shards, file, content: forge(shards, file, content),
    "bare": lambda shards, file, content: content,
    "unsigned": lambda shards, file, content: LENGTH.pack(len(content)) + bytes(SIZE) + content,
    "endless": lambda shards, file, content: LENGTH.pack(1 << 62) + bytes(SIZE) + content,
    "empty": lambda shards, file, content: b"",
}


@pytest.mark.parametrize("how", FORGED)
@pytest.mark.parametrize("file", [WORK, ITEMS, RESULTS, PART])
def test_files_of_another_key(tmp_path, planted, file, how):
    shards = write(tmp_path)
    content = pickle.dumps(Bomb(planted))
    name = {PART: f"0.abc{PART}", WORK: WORK}.get(file, f"0{file}")
    (shards.folder / name).write_bytes(FORGED[how](shards, file, content))
    (shards.folder / name).chmod(0o600)
    if file == PART:
        assert done(shards) == [1, 2, 3, 4]
        return
    with pytest.raises(UserError, match=r"damaged, or not written by your own lmtools; remove"):
        done(write(tmp_path) if file == WORK else shards)


@pytest.mark.parametrize("file", [WORK, f"0{ITEMS}", f"0{RESULTS}", f"0.abc{PART}", "9.log"])
@pytest.mark.parametrize("how", ["link", "pipe", "directory", "writable"])
def test_files_that_are_not_ones_own(tmp_path, file, how):
    shards = write(tmp_path)
    path = shards.folder / file
    content = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    if how == "link":
        (tmp_path / "aside").write_bytes(content)
        path.symlink_to(tmp_path / "aside")
    elif how == "pipe":
        os.mkfifo(path, 0o600)
    elif how == "directory":
        path.mkdir()
    else:
        path.write_bytes(content)
        path.chmod(0o620)
    if how == "writable" and file == "9.log":  # its mode is of the queue
        assert write(tmp_path).folder == shards.folder
        return
    with pytest.raises(UserError, match="damaged, or not written by your own"):
        write(tmp_path)
    if not file.endswith(RESULTS):
        with pytest.raises(UserError, match="damaged, or not written by your own"):
            run_shard(shards.folder, 0)


@pytest.mark.parametrize(
    "other", [{"offset": 2}, {"items": range(5)}, {"items": [3, 2, 1, 0]}, {"items": range(8)}]
)
@pytest.mark.parametrize("file", [WORK, f"0{ITEMS}", f"0{RESULTS}"])
def test_what_one_wrote_for_other_work(tmp_path, file, other):
    """Genuine files of other work, or of the same work elsewhere, in the place of these."""
    shards, old = write(tmp_path), write(tmp_path, **other)
    for n in range(2):
        run_shard(old.folder, n)
    shutil.copy2(old.folder / file, shards.folder / file)
    with pytest.raises(UserError, match="damaged, or not written by your own"):
        done(shards)


def test_a_whole_directory_of_other_work(tmp_path):
    shards, old = write(tmp_path), write(tmp_path, offset=2)
    done(old)
    shutil.rmtree(shards.folder)
    old.folder.rename(shards.folder)
    (shards.folder / f"0{RESULTS}").unlink()
    for act in (lambda: write(tmp_path), lambda: run_shard(shards.folder, 0)):
        with pytest.raises(UserError, match="work: damaged, or not written by your own"):
            act()


def test_results_of_another_shard(tmp_path):
    shards = write(tmp_path, items=[5, 5, 5, 5])
    done(shards)
    shutil.copy(shards.folder / f"1{RESULTS}", shards.folder / f"0{RESULTS}")
    with pytest.raises(UserError, match=r"0\.results: damaged"):
        list(shards.results())


def test_a_text_of_the_same_size_and_time_is_another(tmp_path):
    """What an archive can restore does not make old results those of another text."""
    text = tmp_path / "text"
    text.write_text("one\n")
    before, shards = text.stat(), write(tmp_path, reads=(text,))
    text.unlink()
    text.write_text("two\n")
    os.utime(text, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert text.stat().st_size == before.st_size
    assert write(tmp_path, reads=(text,)).folder != shards.folder


def test_nobody_else_can_tell_the_directorys_name(tmp_path, monkeypatch):
    shards = write(tmp_path)
    monkeypatch.setenv(STATE, str(tmp_path / "other"))
    assert write(tmp_path).folder != shards.folder
    with pytest.raises(UserError, match="work: damaged, or not written by your own"):
        run_shard(shards.folder, 0)
    Path(tmp_path / "other/lmtools/key").unlink()
    with pytest.raises(UserError, match="the key of who submitted the task is not there"):
        run_shard(shards.folder, 0)


def test_a_link_where_the_directory_belongs(tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "jobs").symlink_to("elsewhere")
    with pytest.raises(UserError, match="jobs: a link, or others may write there"):
        write(tmp_path)
    assert not any((tmp_path / "elsewhere").iterdir()) and read_key()
