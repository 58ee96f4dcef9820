"""What the tests of training share."""

import pytest

from lmtools.cli import main


@pytest.fixture(scope="session")
def spelled(tiny):
    """`tiny` with the corpora spelled by characters."""
    command = (
        f"subword --text {tiny / 'train.txt'} --type char --words {tiny / 'sw'} --out "
        f"{tiny / 'spelled'}"
    ).split()
    assert main(command) == 0
    for part in ("train", "valid"):
        text, out = str(tiny / f"{part}.txt"), str(tiny / f"{part}-spelled.bin")
        assert (
            main(["corpus", "--text", text, "--subword", str(tiny / "spelled"), "--out", out]) == 0
        )
    return tiny
