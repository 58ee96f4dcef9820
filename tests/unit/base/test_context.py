"""Settings of a call hold inside their block, in its thread, and wherever its work goes."""

import ast
import asyncio
import contextvars
import threading
from functools import partial
from pathlib import Path

import pytest

import lmtools
from lmtools import UserError, using
from lmtools.base.context import MAX_LINE, Context, current, parse_size
from lmtools.base.files import read_lines
from lmtools.base.workers import as_completed, map_ordered

PACKAGE = Path(lmtools.__file__).parent
# the modules that write os.environ, for the sake of programs and processes that they start
CHANGES = ("clear", "pop", "popitem", "setdefault", "update")
WRITERS = {"base/workers.py"}


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    """No variable says anything."""
    monkeypatch.delenv(MAX_LINE, raising=False)


def settings_of(item: int) -> tuple[int, Context]:
    """What work sees where it runs."""
    return item, current()


def test_settings_hold_inside_the_block(monkeypatch):
    assert current() == Context(16 << 20, False)
    with using(max_line="2K"):
        with using(max_line=7, allow_commands=True) as inner:
            assert inner == current() == Context(7, True)
        assert current() == Context(2048, False)
    monkeypatch.setenv(MAX_LINE, "64M")
    assert current() == Context(64 << 20, False)
    with lmtools.using(max_line="1K"):
        assert current() == Context(1024, False)


def test_a_program_says_how_long_a_line_may_be(tmp_path):
    path = tmp_path / "t"
    path.write_text("x" * 2000 + "\n")
    with (
        pytest.raises(UserError, match="t:1: a line of more than 1024 bytes"),
        lmtools.using(max_line="1K"),
    ):
        list(read_lines(path))
    assert len(list(read_lines(path))) == 1


def test_threads_have_their_own():
    """Settings of one thread are no other's; a copy of the context takes them along."""
    seen = {}

    def look(name: str) -> None:
        seen[name] = current().max_line

    with using(max_line=7):
        copied = partial(contextvars.copy_context().run, look, "copied")
        threads = [threading.Thread(target=act) for act in (partial(look, "own"), copied)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        asyncio.run(asyncio.to_thread(look, "asyncio"))
    assert seen == {"own": 16 << 20, "copied": 7, "asyncio": 7}


@pytest.mark.parametrize("spread", [map_ordered, lambda *args: dict(as_completed(*args)).values()])
def test_worker_processes_have_those_of_the_call(spread):
    """Those of the moment of the call, wherever its results are taken."""
    with using(max_line=7, allow_commands=True):
        results = spread(settings_of, range(3), 2)
    assert dict(results) == dict.fromkeys(range(3), Context(7, True))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_line": "16X"}, "max_line: '16X' is no size; write it as 500000, 64K"),
        ({"max_line": 0}, "max_line: '0' is no size"),
        ({"max_line": True}, "max_line: 'True' is no size"),
        ({"allow_commands": "yes"}, "allow_commands: 'yes' .str. is not True or False"),
    ],
)
def test_values_that_are_none(settings, message):
    with pytest.raises(UserError, match=message), using(**settings):
        pass


def test_sizes(monkeypatch):
    texts = ("1", "010", "64K", "16m", "2G")
    assert list(map(parse_size, texts)) == [1, 10, 1 << 16, 1 << 24, 1 << 31]
    monkeypatch.setenv(MAX_LINE, "much")
    with pytest.raises(UserError, match="LMTOOLS_MAX_LINE: 'much' is no size; write it as"):
        current()


def is_environment(node: ast.AST) -> bool:
    """Whether an expression is os.environ."""
    return isinstance(node, ast.Attribute) and node.attr == "environ"


def test_the_environment_is_written_for_children_alone():
    writers = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            stored = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
            changed = isinstance(node, ast.Attribute) and node.attr in CHANGES
            if (stored or changed) and is_environment(node.value):
                writers.add(str(path.relative_to(PACKAGE)))
    assert writers <= WRITERS
