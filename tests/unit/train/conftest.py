"""What the tests of training share."""

import pytest

from lmtools.cli import main


@pytest.fixture(scope="session")
def spelled(tiny):
    """`tiny` with the corpora spelled by characters."""
    command = [
        "subword",
        "--text",
        str(tiny / "train.txt"),
        "--type",
        "char",
        "--words",
        str(tiny / "sw"),
        "--out",
        str(tiny / "spelled"),
    ]
    assert main(command) == 0
    for part in ("train", "valid"):
        text, out = str(tiny / f"{part}.txt"), str(tiny / f"{part}-spelled.bin")
        assert (
            main(["corpus", "--text", text, "--subword", str(tiny / "spelled"), "--out", out]) == 0
        )
    return tiny
