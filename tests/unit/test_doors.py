"""Doors can be absent: the rest imports, and asks for none but in one clear line."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lmtools
from lmtools.base import doors
from lmtools.base.errors import UserError

# Import every module but those that need a package that is not installed; without torch, unless
# told, those that need it are left out.
IMPORT_ALL = """
import importlib, pkgutil, sys

class NoTorch:
    def find_spec(name, *_):
        if name == "torch":
            raise ModuleNotFoundError(name=name)

if "torch" not in sys.argv:
    sys.meta_path.insert(0, NoTorch)
import lmtools
count = 0
for found in pkgutil.walk_packages(lmtools.__path__, "lmtools.", onerror=lambda name: None):
    if not found.name.endswith("__main__"):
        try:
            importlib.import_module(found.name)
            count += 1
        except ModuleNotFoundError as error:
            if error.name.startswith("lmtools"):
                raise
print(count)
"""


@pytest.fixture
def without(tmp_path):
    """Copy lmtools without some doors; return what runs Python beside the copy."""

    def copy(*absent):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(lmtools.__file__).parent, tmp_path / "lmtools", ignore=ignore)
        for door in absent:
            shutil.rmtree(tmp_path / "lmtools" / door)

        def run(*words):
            words = [sys.executable, *words]
            return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)

        return run

    return copy


def import_all(run, *words) -> int:
    done = run("-c", IMPORT_ALL, *words)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("door", doors.DOORS)
def test_the_rest_works_without_a_door(door, without):
    run = without(door)
    assert import_all(run) > 200
    overview = run("-m", "lmtools", "--help")
    assert overview.returncode == 0
    for verb in doors.DOORS[door][1]:
        assert f"  {verb:9}  " not in overview.stdout
        done = run("-m", "lmtools", verb, "--help")
        assert done.returncode == 1
        assert done.stderr.startswith(f"lmtools {verb}: this lmtools has no {door}/ (")


def test_the_core_works_without_any_door(without):
    run = without(*doors.DOORS)
    assert import_all(run, "torch") > 200
    for verb in ("score", "tune", "rescore", "evaluate", "report", "lattice"):
        done = run("-m", "lmtools", verb, "--help")
        assert done.returncode == 0 and done.stdout.startswith(f"usage: lmtools {verb}")


@pytest.mark.parametrize("door", doors.DOORS)
def test_what_a_door_declares_is_there(door):
    """Its verbs are DOORS', every place imports, and a README says how to remove it."""
    module = importlib.import_module(f"lmtools.{door}")
    verbs = getattr(module, "VERBS", {})
    assert tuple(verbs) == doors.DOORS[door][1]
    assert all(hasattr(doors.load(place), "run") for *_, place in verbs.values())
    for kind in ("LATTICES", "HOOKS"):
        for place in getattr(module, kind, {}).values():
            doors.load(place)
    assert f"rm -r lmtools/{door}" in (doors.HOME / door / "README.md").read_text()


def test_an_absent_door_says_so(monkeypatch):
    monkeypatch.setattr(doors, "find_doors", dict)
    door = next(iter(doors.DOORS))
    with pytest.raises(UserError, match=rf"^--option: this lmtools has no {door}/ \("):
        doors.open_door(door, "verb", "--option")
    assert doors.collect("VERBS") == {} and doors.hook("nothing") is None
