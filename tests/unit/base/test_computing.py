"""Memory that the C library keeps."""

import subprocess
import sys

import pytest

from lmtools.base import computing

FAULTS = """
import resource, sys
import numpy as np
from lmtools.base.computing import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
def count(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = count()
for _ in range(20):
    np.ones(1 << 23)  # 64 MB
print(count() - before)
"""


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(computing.ctypes, "CDLL", lambda name: object())
    computing.keep_freed_memory()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mallopt of the GNU C library")
def test_pages_are_cleared_once():
    kept, cleared = (
        int(subprocess.check_output([sys.executable, "-c", FAULTS, what])) for what in ("keep", "")
    )
    assert kept < cleared
