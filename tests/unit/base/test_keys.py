"""The user's key is made once, whole, and taken only where nobody else could have laid it."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from lmtools.base.errors import UserError
from lmtools.base.keys import SIZE, STATE, find_key, is_signed, read_key, sign


@pytest.fixture
def key(tmp_path, monkeypatch):
    """Where the key of an empty state directory will lie."""
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    return find_key()


def test_a_key_is_private_and_stays(key):
    first = read_key()
    assert len(first) == SIZE and read_key() == read_key(create=False) == first
    assert key.stat().st_mode & 0o777 == 0o600 and key.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(key.parent) == ["key"]


def test_all_who_make_a_key_at_once_have_the_same(key):
    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(lambda _: read_key(), range(64)))) == 1
    assert os.listdir(key.parent) == ["key"]


def harm(key, how: str) -> None:
    """What makes a key nobody's own."""
    content = read_key()
    if how == "link":
        key.rename(key.with_name("elsewhere"))
        key.symlink_to("elsewhere")
    elif how in ("short", "long", "empty"):
        key.write_bytes({"short": content[:-1], "long": content + b"x", "empty": b""}[how])
    elif how == "pipe":
        key.unlink()
        os.mkfifo(key, 0o600)
    elif how == "directory":
        key.unlink()
        key.mkdir(0o700)
    elif how == "readable":
        key.chmod(0o640)
    else:
        key.parent.chmod(0o770)


@pytest.mark.parametrize(
    "how", ["link", "short", "long", "empty", "pipe", "directory", "readable", "shared"]
)
def test_a_key_that_is_not_ones_own_is_refused(key, how):
    harm(key, how)
    with pytest.raises(UserError, match=r"state/lmtools(/key)?: .*; .*"):
        read_key()


def test_a_task_makes_no_key(key):
    with pytest.raises(UserError, match="the key of who submitted the task is not there; let"):
        read_key(create=False)
    assert not key.parent.exists()


def test_a_state_directory_that_cannot_be_written(key, tmp_path):
    (tmp_path / "state").write_text("a file")
    with pytest.raises(UserError, match=r"key: no key of your own \(.*\); let \$XDG_STATE_HOME"):
        read_key()


@pytest.mark.parametrize("state, home", [("here", "/"), ("", "/h"), ("./state", "/h")])
def test_the_working_directory_has_no_key(monkeypatch, state, home):
    monkeypatch.setenv(STATE, state)
    monkeypatch.setenv("HOME", home)
    assert str(find_key()) == os.path.join(home, ".local/state/lmtools/key")
    monkeypatch.setenv("HOME", ".")
    with pytest.raises(UserError, match="no absolute path"):
        find_key()


def test_signatures_are_of_parts_and_key():
    signature = sign(b"k", b"ab", b"c")
    assert is_signed(signature, b"k", b"ab", b"c")
    for key, *parts in [(b"K", b"ab", b"c"), (b"k", b"a", b"bc"), (b"k", b"abc"), (b"k",)]:
        assert not is_signed(signature, key, *parts)
