"""Lines on standard error as text and as JSON, and how far work is: a bar on a terminal, lines
elsewhere.
"""

import contextlib
import io
import json
import os
import sys

import pytest

from lmtools.base import log
from lmtools.base.context import LOG_FORMAT, using
from lmtools.base.errors import UserError
from lmtools.base.log import ProgressBar, say, say_lines, track, whole_log_as_json
from lmtools.base.workers import map_ordered


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
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


def objects(capsys) -> list[dict]:
    """The JSON objects on standard error."""
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def say_twice(item: int) -> int:
    say(f"item {item}", item=item)
    return 2 * item


def test_lines_are_text(capsys):
    say("a line", level="warning", n=3)
    say_lines(["two", "three"])
    assert capsys.readouterr() == ("", "a line\ntwo\nthree\n")


def test_lines_are_objects(capsys):
    with using(log_format="json", verb="score"):
        say('é "quoted"\x1b[2J\nnext', level="warning", loss=0.5, nan=float("nan"))
    say("text again")
    line, rest = capsys.readouterr().err.split("\n", 1)
    found = json.loads(line)
    assert rest == "text again\n" and line.isascii() and line.isprintable()
    assert found.pop("time").endswith("+00:00")
    assert found == {
        "level": "warning", "verb": "score", "message": 'é "quoted"\x1b[2J\nnext', "loss": 0.5,
        "nan": None,
    }  # fmt: skip


def test_what_others_write_is_an_object_too(capsys):
    with using(log_format="json"), whole_log_as_json():
        sys.stderr.write("half a ")
        say("ours")
        print("line\n\nlast", end="", file=sys.stderr)
    messages = [line["message"] for line in objects(capsys)]
    assert messages == ["ours", "half a line", "last"]
    with whole_log_as_json():
        print("as it is", file=sys.stderr)
    assert capsys.readouterr().err == "as it is\n"


def test_the_environment_names_a_format(monkeypatch, capsys):
    monkeypatch.setenv(LOG_FORMAT, "json")
    say("x")
    assert objects(capsys)[0]["verb"] is None
    monkeypatch.setenv(LOG_FORMAT, "xml")
    with pytest.raises(UserError, match=f"{LOG_FORMAT}: 'xml' is no format; choose text or json"):
        say("x")


def test_worker_processes_write_the_same_format(capfd):
    with using(log_format="json", verb="convert"):
        assert list(map_ordered(say_twice, range(2), 2)) == [0, 2]
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert sorted((line["verb"], line["item"]) for line in lines) == [
        ("convert", 0),
        ("convert", 1),
    ]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_log_has_a_line_a_minute(clock, capsys, form):
    with using(log_format=form), ProgressBar("score lm", 1200, "text", 200) as progress:
        for _ in range(5):
            clock[0] += 25
            progress.advance(100)
    if form == "text":
        text = "score lm: 500 of 1,200 (42%) texts, 4.0 texts/s, 2:55 left\n"
        assert capsys.readouterr().err == text
        return
    (line,) = objects(capsys)
    figures = {"label": "score lm", "done": 500, "total": 1200, "unit": "text", "rate": 4.0}
    assert figures | {"left": 175.0} == {name: line[name] for name in [*figures, "left"]}


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


def test_json_has_no_bar(terminal):
    read = terminal()
    with using(log_format="json"), ProgressBar("score lm", 4, "text") as progress:
        say("said")
        assert progress.bar is None and json.loads(read())["message"] == "said"


def test_streams_without_a_terminal_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    for _ in track(range(3), "x", 3, "item"):
        pass
    assert sys.stderr.getvalue() == ""
