"""The papers' settings, equations and tables against this repository, where the papers' figures lie
beside it.
"""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAPERS = REPOSITORY.parent / "shared/papers/papers.json"


@pytest.mark.skipif(not PAPERS.is_file(), reason="papers.json is not beside the repository")
def test_every_line_agrees_or_has_its_reason():
    command = [sys.executable, REPOSITORY / "utils/papers/check.py", PAPERS, "--errors"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("; 0 errors\n")
