"""Former names of what lmtools.bridges holds."""

import subprocess
import sys

import lmtools.decoders
from lmtools.bridges import decoders


def test_former_names_are_the_rooms():
    assert lmtools.decoders is decoders
    done = subprocess.run(
        [sys.executable, "-m", "lmtools.espnet", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0 and "python -m lmtools.bridges.espnet export" in done.stdout
