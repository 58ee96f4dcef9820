"""Whole recipes are killed at random moments, each kill followed by the same command: in the end,
the bytes of an undisturbed run.
"""

import functools
import importlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import split

from trust.common import (
    REPOSITORY,
    SETTINGS,
    Case,
    Wrong,
    changes,
    drawn,
    patience,
    snapshot,
    temporaries,
)
from trust.world import World

LONGEST = 900.0  # seconds of an undisturbed run
# What holds times, processes or where the run was: everything else has to be equal.
TIMES = re.compile(
    r"/log/|/stages/|/report/|/bench/|\.lock$|\.log$|hashes\.json$|metrics\.jsonl$|checkpoint\.safetensors$|/lattice/[^/]+/[^/]+\.json$|/speed|/made/"
    r"|/grids/.*\.json$|\.time$"
)


@dataclass(frozen=True)
class Recipe:
    """A recipe cut small: what puts its corpus in place, and its options."""

    cut: Callable[[Path], None]
    options: Sequence


@functools.cache
def known() -> dict[str, Recipe]:
    """The four recipes, as tests/recipe cut them."""
    conftest, librispeech, gbw, stsb, wmt13 = (
        importlib.import_module(f"recipe.{name}")
        for name in ("conftest", "test_librispeech", "test_gbw", "test_stsb", "test_wmt13")
    )
    return {
        "librispeech": Recipe(conftest.cut_librispeech, librispeech.OPTIONS),
        "gbw": Recipe(gbw.cut, gbw.OPTIONS),
        "stsb": Recipe(lambda home: stsb.corpus(home / "small"), stsb.OPTIONS),
        "wmt13": Recipe(wmt13.prepare, wmt13.OPTIONS),
    }


def placed(name: str) -> Path:
    """A fresh copy of a recipe with its corpus."""
    from recipe.conftest import copy_recipe

    home = copy_recipe(name, Path(tempfile.mkdtemp(dir=World.base)))
    known()[name].cut(home)
    return home


@functools.cache
def variables() -> dict[str, str]:
    """An environment whose `lmtools` is this tree's."""
    import sys

    from recipe.conftest import environment

    folder = Path(tempfile.mkdtemp(dir=World.base)) / "bin"
    env = environment(folder, f'PYTHONPATH="{REPOSITORY}" exec "{sys.executable}" -m lmtools "$@"')
    own = {"LMTOOLS_CACHE": str(folder.parent / "cache")}
    return {**env, **SETTINGS, **own}


def started(name: str, home: Path, stop: int) -> subprocess.Popen:
    """The recipe in a process group of its own."""
    command = [
        str(home / "run.sh"),
        *map(str, known()[name].options),
        *split("--skip-done true --stop-stage"),
        str(stop),
    ]
    with open(home / "run.out", "wb") as out:
        return subprocess.Popen(
            command, env=variables(), stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )


def left(home: Path) -> dict[str, bytes]:
    found = {f"exp/{key}": value for key, value in snapshot(home / "exp").items()}
    found |= {f"data/{key}": value for key, value in snapshot(home / "data").items()}
    return {key: value for key, value in found.items() if not TIMES.search(key)}


@functools.cache
def whole(name: str, stop: int) -> tuple[dict[str, bytes], float]:
    """What an undisturbed run leaves, and the seconds it takes."""
    home = placed(name)
    begin = time.monotonic()
    process = started(name, home, stop)
    if ended(process, patience(LONGEST)) != 0:
        raise Wrong("lost", f"egs/{name} does not run: {(home / 'run.out').read_text()[-600:]}")
    return left(home), time.monotonic() - begin


def ended(process: subprocess.Popen, seconds: float) -> int | None:
    """The exit status of a run; None if it was killed when its time was over."""
    status = None
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if status is None:  # or this campaign is being stopped
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return status


def killed(case: Path, name: str, kills: int, seed: int, number: int, stop: int = 99) -> int:
    """Kill the recipe, comparing each time it gets through; return the kills."""
    right, seconds = whole(name, stop)
    rng = drawn("recipes", name, seed, number)
    home, done = placed(name), 0
    while True:
        process = started(name, home, stop)
        again = f"{shlex.join(map(str, process.args))} after {done} kills"
        status = ended(process, rng.uniform(0, seconds) if done < kills else patience(LONGEST))
        said = (home / "run.out").read_text(errors="replace")
        if status is None:
            if done >= kills:
                raise Wrong("hang", f"{again} does not end in {patience(LONGEST)} s: {said[-300:]}")
            done += 1
            continue
        if "Traceback" in said:
            raise Wrong("traceback", f"{again}: {said[-800:]}")
        if status:
            raise Wrong("lost", f"{again}: status {status}: {said[-600:]}")
        found = left(home)
        if found != right:
            raise Wrong("silent change", f"{again}: {changes(right, found)[:8]}")
        if rest := [path for folder in ("exp", "data") for path in temporaries(home / folder)]:
            raise Wrong("left behind", f"{again}: {rest[:8]}")
        if done >= kills:
            return done
        for folder in ("exp", "data"):
            shutil.rmtree(home / folder)


def cases(size: str, seed: int) -> Iterator[Case]:
    """200 kills of four recipes; in the short campaign of the smallest's first stages."""
    if size == "short":
        yield Case.of("stsb-start-0", killed, "stsb", 1, seed, 0, 1)
        return
    kills = 5 if size == "long" else 4
    for number in range({"medium": 1, "long": 10}[size]):
        for name in known():
            yield Case.of(f"{name}-{number}", killed, name, kills, seed, number)
