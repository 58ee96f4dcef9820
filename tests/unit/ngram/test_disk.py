"""Estimation with little memory: the same model, and nothing left of what lay on disk."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from lmtools.ngram import build, counts, kneser_ney
from lmtools.text import Normaliser

VERB = [sys.executable, "-m", "lmtools", "ngram", "--order", "3", "--kenlm", "none"]
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
from lmtools.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("order", "least"), [(1, ()), (2, ()), (3, ()), (5, ()), (6, ()), (4, (1, 1, 2))]
)
def test_equal_bytes_however_little_memory(text, tmp_path, monkeypatch, order, least):
    options = {"kenlm": "none", "min_counts": least}
    build([text], order, tmp_path / "whole", Normaliser(), **options)
    seen = []
    monkeypatch.setattr(counts.DiskArray, "close", lambda array: seen.append(len(array)))
    for module in (counts, kneser_ney):
        monkeypatch.setattr(module, "BLOCK", 97)
    for memory in (1, 20_000):
        build([text], order, tmp_path / "ranges", Normaliser(), memory=memory, **options)
        for name in ("lm.arpa", "config.yaml"):
            ranges, whole = ((tmp_path / part / name).read_bytes() for part in ("ranges", "whole"))
            assert ranges == whole, (memory, name)
    # there were many ranges
    assert order == 1 or len(seen) > 50


def test_what_a_killed_run_leaves_goes_with_the_next(text, tmp_path):
    """Killed while text still comes in: its arrays have no name, its directory is swept."""
    out = tmp_path / "here/lm"
    child = subprocess.Popen([*VERB, "--text", "-", "--out", out], stdin=subprocess.PIPE)
    try:
        child.stdin.write(text.read_bytes() * 200)
        child.stdin.flush()
        until = time.monotonic() + 60
        while not out.parent.is_dir() or not (left := list(out.parent.glob("*.tmp"))):
            assert time.monotonic() < until and child.poll() is None
            time.sleep(0.02)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == -signal.SIGKILL and len(left) == 1
    assert [found for _, _, found in os.walk(left[0]) if found] == []
    subprocess.run([*VERB, "--text", text, "--out", out], check=True, capture_output=True)
    assert [path.name for path in out.parent.glob("[!.]*")] == ["lm"]
    assert not list(out.parent.glob("*.tmp"))


def test_a_full_disk_is_said_in_one_line(text, tmp_path):
    out = tmp_path / "here/lm"
    verb = [sys.executable, "-c", LIMITED, *VERB[3:], "--text", text, "--out", out]
    done = subprocess.run(verb, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert str(out) in done.stderr
    assert os.strerror(errno.EFBIG) in done.stderr
    assert os.listdir(out.parent) == []
