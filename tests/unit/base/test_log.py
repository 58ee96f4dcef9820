"""Lines on standard error, and how far work is: a bar on a terminal, lines elsewhere."""

import contextlib
import io
import os
import sys

import pytest

from lmtools.base import log
from lmtools.base.log import ProgressBar, say, track


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(log.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def terminal(monkeypatch):
    """A function that gives standard error a terminal of 80 columns, and returns what reads it."""
    pty = pytest.importorskip("pty")
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, b"\x18\x00\x50\x00\0\0\0\0")
    monkeypatch.setattr(log, "DELAY", 0)
    os.set_blocking(ours, False)
    with open(theirs, "w", buffering=1) as stream:

        def read_some() -> bytes:
            with contextlib.suppress(BlockingIOError):
                return os.read(ours, 1 << 16)
            return b""

        def attach():
            monkeypatch.setattr(sys, "stderr", stream)
            return lambda: b"".join(iter(read_some, b"")).decode()

        yield attach
    os.close(ours)


def test_a_log_has_a_line_a_minute(clock, capsys):
    with ProgressBar("score lm", 1200, "text", 200) as progress:
        for _ in range(5):
            clock[0] += 25
            progress.advance(100)
    text = "score lm: 500 of 1,200 (42%) texts, 4.0 texts/s, 2:55 left\n"
    assert capsys.readouterr().err == text


def test_other_lines_stand_for_that_of_the_minute(clock, capsys):
    with ProgressBar("lm", 10, "step") as progress:
        for step in range(10):
            clock[0] += 40
            progress.advance()
            say(f"step {step}")
    assert capsys.readouterr().err.count("\n") == 10


@pytest.mark.parametrize(
    ("total", "unit", "line"),
    [
        (None, "line", "x: 30 lines, 0.5 lines/s"),
        (50_000_000, "B", "x: 0.0 of 50.0 (0%) MB, 0.0 MB/s, 27777:45:40 left"),
        (40, "n-gram", "x: 30 of 40 (75%) n-grams, 0.5 n-grams/s, 0:20 left"),
    ],
)
def test_lines_of_all_sorts_of_work(clock, capsys, total, unit, line):
    """An item is done when the next is asked for."""
    for item in track([10, 20], "x", total, unit, size=int):
        assert not capsys.readouterr().err
        clock[0] += item * 2
    assert capsys.readouterr().err == f"{line}\n" and not log.OPEN


def test_a_bar_on_a_terminal(terminal):
    read = terminal()
    with ProgressBar("score lm", 4, "text") as progress:
        progress.advance(2)
        say("said above")
        progress.bar.refresh()
        seen = read()
    assert "score lm:  50%|" in seen and "2/4 [" in seen and "text/s" in seen
    assert "\rsaid above\r\n" in seen
    assert not log.OPEN


def test_a_bar_starts_no_thread(terminal, monkeypatch):
    """Which would keep the process from being forked (lmtools.base.workers.can_fork)."""
    terminal()
    monkeypatch.setattr("tqdm.std.TMonitor", lambda *_: pytest.fail("a thread"))
    monkeypatch.setattr("tqdm.tqdm.monitor", None)
    with ProgressBar("score lm", 4, "text") as progress:
        assert progress.bar is not None


def test_streams_without_a_terminal_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    for _ in track(range(3), "x", 3, "item"):
        pass
    assert sys.stderr.getvalue() == ""
