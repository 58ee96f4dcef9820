"""A shell environment in which recipes find this tree's lmtools, and ways to run and kill them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import fork_server
import pytest

from lmtools.base.files import read_lines
from lmtools.version import __version__

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "egs/librispeech"
CUT = {"train.txt": 500, "valid.txt": 30, "dev.nbest.jsonl": 10, "test.nbest.jsonl": 12}  # lines
PYTHON = f'exec "{sys.executable}" "$@"'


def program(path: Path, command: str) -> None:
    """An executable shell script."""
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)


def environment(folder: Path, lmtools: str, python: str = PYTHON) -> dict[str, str]:
    """Variables with `python3` and `lmtools`, the shell commands given, first on the path."""
    folder.mkdir(parents=True, exist_ok=True)
    program(folder / "python3", python)
    program(folder / "lmtools", lmtools)
    return {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


class Recipe:
    """A run.sh in `home` and what one does with it."""

    def __init__(self, home: Path, env: dict[str, str]):
        self.home, self.env = home, env

    def __call__(self, *args, status=0, script="run.sh", **env) -> subprocess.CompletedProcess:
        """Run it, or a script beside it, to its end; stdout and stderr as text."""
        command = [str(self.home / script), *map(str, args)]
        done = subprocess.run(
            command, env={**self.env, **env}, capture_output=True, text=True, timeout=1200
        )
        assert done.returncode == status, (
            f"{done.args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done

    def beside(self, script: str, *args, status=0) -> subprocess.CompletedProcess:
        """Run another script beside it to its end."""
        return self(*args, script=script, status=status)

    def start(self, *args) -> subprocess.Popen:
        """Start it in a process group of its own; its output goes to run.out."""
        with open(self.home / "run.out", "w") as out:
            command = [str(self.home / "run.sh"), *map(str, args)]
            return subprocess.Popen(
                command,
                env={**self.env, fork_server.REAL: "1"},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def said(
        self, words: str, process: subprocess.Popen, file: str | None = None, seconds=600.0
    ) -> None:
        """Wait until the run has said `words` and `file` is there; it must not have ended."""
        end = time.monotonic() + seconds
        while words not in (self.home / "run.out").read_text() or not (
            file is None or (self.home / file).exists()
        ):
            assert time.monotonic() < end and process.poll() is None, (
                self.home / "run.out"
            ).read_text()
            time.sleep(0.02)

    def kill(self, process: subprocess.Popen) -> None:
        """SIGKILL a started run with all that it started."""
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace text in one of its files."""
        text = (self.home / name).read_text()
        assert old in text
        (self.home / name).write_text(text.replace(old, new))


@pytest.fixture(scope="session")
def make_recipe():
    """Recipe, which a test cannot import from here."""
    return Recipe


@pytest.fixture(scope="session")
def shell(tmp_path_factory):
    """Variables for scripts with the real lmtools, in forks of a process that has it loaded."""
    folder = tmp_path_factory.mktemp("bin")
    server, *commands = fork_server.start(folder, REPOSITORY)
    yield environment(folder, *commands)
    server.kill()
    server.wait()


@pytest.fixture
def stub(tmp_path):
    """Variables for scripts, with an lmtools that only prints version and arguments."""
    return environment(
        tmp_path / "bin", f'[ "$1" != --version ] || set -- lmtools {__version__}; echo "$@"'
    )


def lines(path: Path) -> list[str]:
    packed = path.with_name(f"{path.name}.xz")
    return [line for _, line in read_lines(packed if packed.exists() else path)]


def cut_lattices(name: str, utterances: set[str], out: Path) -> None:
    """The lattices of these utterances, in an archive of the mini corpus's name."""
    with tarfile.open(SOURCE / "mini" / name) as whole, tarfile.open(out / name, "w:xz") as cut:
        for member in whole:
            if Path(member.name).stem in utterances:
                cut.addfile(member, whole.extractfile(member))


def copy_recipe(recipe: str, tree: Path) -> Path:
    """A repository with one recipe, without its mini corpus, and an empty `small`."""
    source, copy = REPOSITORY / "egs" / recipe, tree / "egs" / recipe
    for folder in ("utils", "conf", "benchmarks"):
        (tree / folder).symlink_to(REPOSITORY / folder)
    for folder in ("local", "conf", "studies", "tasks"):
        if (source / folder).exists():
            shutil.copytree(source / folder, copy / folder)
    for script in source.glob("*.sh"):
        shutil.copy(script, copy)
    (copy / "small").mkdir()
    return copy


@pytest.fixture(scope="session")
def copied(tmp_path_factory):
    """A function that makes a repository with one recipe (`copy_recipe`)."""
    return lambda recipe, name=None: copy_recipe(recipe, tmp_path_factory.mktemp(name or recipe))


def cut_librispeech(copy: Path) -> None:
    """A small cut of egs/librispeech's mini corpus in `small`."""
    for file, count in CUT.items():
        (copy / "small" / file).write_text(
            "".join(line + "\n" for line in lines(SOURCE / "mini" / file)[:count])
        )
    for part in ("dev", "test"):
        utterances = {
            json.loads(line)["utt"]
            for line in (copy / f"small/{part}.nbest.jsonl").read_text().splitlines()
        }
        cut_lattices(f"{part}.lattices.tar.xz", utterances, copy / "small")


@pytest.fixture(scope="session")
def librispeech(copied, shell):
    """A function: a repository with egs/librispeech and a cut of its mini corpus."""

    def make(name: str):
        copy = copied("librispeech", name)
        cut_librispeech(copy)
        return Recipe(copy, shell)

    return make
