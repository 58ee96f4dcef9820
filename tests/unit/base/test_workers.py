"""Work that is spread comes back in order, and errors with it; whoever is killed, nobody is waited
for and nobody is left behind.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from processes import PATIENCE, alive, descendants, gone, workers_of

from lmtools import UserError
from lmtools.base import workers
from lmtools.base.workers import Work, WorkerPool, as_completed, map_ordered

ROOT = Path(__file__).parents[3]


def double(n: int) -> int:
    if n == 13:
        raise UserError("13: unlucky; take another")
    return 2 * n


class Odd(Exception):
    """An exception that pickle cannot bring back."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def odd(n: int) -> None:
    raise Odd(n, n)


def add(offset: int, n: int) -> int:
    return offset + n


def unloadable() -> None:
    raise UserError("no model; train it")


def end(n: int, signum=signal.SIGKILL) -> bytes:
    """Work in which the third item ends the process."""
    if n == 2:
        os.kill(os.getpid(), signum)
    return b"x" * 300_000


def leave(n: int) -> None:
    os._exit(7)


def sleep_when_first(n: int) -> int:
    time.sleep(0 if n else 1.5)
    return n


def end_after_three(place: Path, n: int) -> int:
    if n == 0:
        while not (place / "4").exists():  # begun, so that 1 to 3 are done
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    (place / str(n)).touch()
    time.sleep(600 if n > 4 else 0.01)
    return n


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 cannot leave it out")
def test_workers_take_no_module_of_the_working_directory(tmp_path, monkeypatch):
    for name in ("multiprocessing", "runpy", "socket", "lmtools", "toys"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workers.resource_tracker._resource_tracker, "_fd", None)  # a new one
    assert list(map_ordered(double, range(4), 2)) == [0, 2, 4, 6]
    assert not (tmp_path / "ran").exists() and workers.SAFE not in os.environ


def test_results_come_in_order():
    assert (
        list(map_ordered(double, range(10), 2))
        == list(map_ordered(double, iter(range(10))))
        == list(range(0, 20, 2))
    )
    assert list(map_ordered(double, [], 2)) == []
    assert list(map_ordered(sleep_when_first, range(12), 2)) == list(range(12))


def test_results_come_as_they_are_done():
    found = list(as_completed(sleep_when_first, range(4), 2))
    assert sorted(found) == [(n, n) for n in range(4)] and found[0] != (0, 0)


def test_the_head_start_is_bounded():
    taken = []
    results = map_ordered(double, (taken.append(n) or n for n in range(100)), 2)
    assert next(results) == 0 and len(taken) <= workers.AHEAD * 2 + 1
    results.close()


@pytest.mark.parametrize("nj", [1, 2])
def test_a_users_error_passes(nj):
    with pytest.raises(UserError, match="13: unlucky; take another"):
        list(map_ordered(double, range(10, 20), nj))


def test_other_errors_pass_with_their_traceback():
    with pytest.raises(TypeError) as caught:
        list(map_ordered(double, [{}, {}], 2))
    assert "test_workers.py" in str(caught.value.__cause__)
    with pytest.raises(RuntimeError, match="Odd: 0 and 0"):
        list(map_ordered(odd, range(4), 2))


@pytest.mark.parametrize("nj", [1, 2])
def test_what_is_loaded_is_the_first_argument(nj):
    assert list(map_ordered(add, range(3), nj, partial(int, 10))) == [10, 11, 12]
    with pytest.raises(UserError, match="no model; train it"):
        list(map_ordered(add, range(3), nj, unloadable))


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (
            end,
            (
                r"worker process \d+ was killed by SIGKILL \(9\), perhaps for want of memory; give"
                r" fewer processes \(a lower --nj\)$"
            ),
        ),
        (
            partial(end, signum=signal.SIGSEGV),
            r"worker process \d+ was killed by SIGSEGV \(11\); give fewer",
        ),
        (leave, r"worker process \d+ ended by itself with status 7; give fewer"),
    ],
)
def test_a_worker_that_dies_is_reported(work, message):
    begun = time.monotonic()
    with pytest.raises(UserError, match=message):
        list(map_ordered(work, range(40), 3))
    assert time.monotonic() - begun < PATIENCE


def test_results_before_a_death_are_given(tmp_path):
    """The first item's worker dies when the other one has finished three."""
    found = []
    with pytest.raises(UserError, match="SIGKILL"):
        for number, result in as_completed(partial(end_after_three, tmp_path), range(40), 2):
            found.append((number, result))
    assert (
        found[:3] == [(n, n) for n in (1, 2, 3)]
        and len(found) == len(set(found)) <= workers.AHEAD * 2
    )


def test_no_process_is_left():
    with WorkerPool(Work(double), 2) as pool:
        assert [future.result() for future in [pool.submit(n) for n in range(5)]] == [0, 2, 4, 6, 8]
        pids = [worker.process.pid for worker in pool.workers]
        assert len(pids) == 2 and all(map(alive, pids))
    assert gone(pids)


SCRIPT = """
import ctypes, os, sys, time
from lmtools.base.workers import map_ordered
from unit_workers import {work} as work
if __name__ == "__main__":
    print("begun", flush=True)
    for result in map_ordered(work, range(1000), 2{more}):
        print(result, flush=True)
"""
WORK = """
import ctypes, time
def sleep(n):
    time.sleep(600)
def load():
    time.sleep(600)
def add(loaded, n):
    return n
def call(n):  # in C, with the interpreter's lock held, so that no thread of the process runs
    ctypes.PyDLL(None).sleep(600)
"""
WHERE = {
    "work": ("sleep", ""),
    "load": ("add", ", load=__import__('unit_workers').load"),
    "C": ("call", ""),
}


class Running:
    """A program in its own session with two processes that never end by themselves."""

    def __init__(self, home: Path, where: str):
        (home / "unit_workers.py").write_text(WORK)
        (home / "main.py").write_text(SCRIPT.format(work=WHERE[where][0], more=WHERE[where][1]))
        path = os.pathsep.join([str(ROOT), str(home)])
        command = [sys.executable, str(home / "main.py")]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(
            command,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
            **pipes,
        )

    def __enter__(self):
        until = time.monotonic() + PATIENCE
        while len(self.workers) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        assert len(self.workers) == 2
        return self

    def __exit__(self, *error):
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    @property
    def workers(self) -> list[int]:
        return workers_of(self.process.pid)


# while Python starts in the workers, and later
MOMENTS = [("work", 0.0), ("work", 0.05), ("work", 1.0), ("load", 1.0), ("C", 1.0)]


@pytest.mark.parametrize(("where", "pause"), MOMENTS)
@pytest.mark.parametrize("killed", ["worker", "parent", "both"])
def test_nobody_survives(tmp_path, where, pause, killed):
    with Running(tmp_path, where) as running:
        time.sleep(pause)
        everybody = [*descendants(running.process.pid), running.process.pid]
        parent = running.process.pid
        if killed != "parent":
            os.kill(running.workers[0], signal.SIGKILL)
        if killed != "worker":
            os.kill(parent, signal.SIGKILL)
        assert gone(everybody, 5), "somebody is left"
        if killed == "worker":
            _, said = running.process.communicate(timeout=PATIENCE)
            assert (
                "UserError: worker process" in said
                and "SIGKILL (9)" in said
                and running.process.returncode == 1
            )


@pytest.mark.parametrize(("where", "pause"), MOMENTS)
def test_an_interrupt_ends_all_without_a_word_of_the_workers(tmp_path, where, pause):
    with Running(tmp_path, where) as running:
        time.sleep(pause)
        everybody = descendants(running.process.pid)
        os.killpg(running.process.pid, signal.SIGINT)  # as a terminal does: to all of them
        _, said = running.process.communicate(timeout=PATIENCE)
        # the program's own, which catches nothing
        assert said.count("Traceback") <= 1 and "spawn" not in said
        assert gone(everybody, 5)


def test_an_interrupt_that_another_thread_takes_waits_too():
    """The kernel gives a signal to any thread; Python raises it in the main one."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    done = False
    try:
        with pytest.raises(KeyboardInterrupt), workers.without_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
            done = True
    finally:
        end.set()
        thread.join()
    assert done
