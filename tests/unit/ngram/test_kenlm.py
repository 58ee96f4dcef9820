"""Finding and running KenLM's build_binary, with scripts in its place; tests/interop talks to the
real one.
"""

import pytest

from lmtools.base.errors import UserError
from lmtools.ngram import build, kenlm_files
from lmtools.ngram.kenlm_files import PROGRAM, find_program
from lmtools.text import Normaliser


def install(directory, **scripts):
    """Executable shell scripts in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, body in scripts.items():
        (directory / name).write_text(f"#!/bin/sh\n{body}\n")
        (directory / name).chmod(0o755)
    return directory


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No place has the program: not the environment, the working directory, PATH."""
    monkeypatch.delenv(kenlm_files.PLACE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_find(tmp_path, monkeypatch, nowhere):
    assert find_program() is None and find_program("none") is None
    path = install(tmp_path / "kenlm/bin", build_binary="") / PROGRAM
    assert find_program(str(path.parent)) == find_program(str(tmp_path / "kenlm")) == path
    monkeypatch.setenv(kenlm_files.PLACE, str(tmp_path / "kenlm"))
    assert find_program() == path
    monkeypatch.delenv(kenlm_files.PLACE)
    installed = install(tmp_path / kenlm_files.INSTALLED / "bin", build_binary="") / PROGRAM
    assert find_program() == installed
    installed.chmod(0o644)
    assert find_program() is None
    monkeypatch.setenv("PATH", str(path.parent))
    assert find_program() == path
    path.chmod(0o644)
    assert find_program() is None
    with pytest.raises(UserError, match="kenlm: has no build_binary; run utils/install_kenlm"):
        find_program(str(tmp_path / "kenlm"))


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo first >&2; echo 'no space' >&2; exit 3", r"\(status 3\): no space; check memory"),
        ("kill -9 $$", "perhaps for want of memory"),
        ("exit 1", "no message; check memory and disk, or give --kenlm none"),
    ],
)
def test_a_failing_program_is_a_users_error(tmp_path, text, script, message):
    place = install(tmp_path / "bin", build_binary=script)
    with pytest.raises(UserError, match=f"^build_binary failed .*{message}"):
        build([text], 2, tmp_path / "out/lm", Normaliser(), kenlm=str(place))
    assert not list((tmp_path / "out").iterdir())
