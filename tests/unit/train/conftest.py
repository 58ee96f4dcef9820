"""What the tests of training share."""

import pytest

from lmtools.cli import main


@pytest.fixture(scope="session")
def pairs(tiny):
    """`tiny` with corpora of pairs: the target is the source in the other order of words."""
    for part in ("train", "valid"):
        text = tiny / f"{part}.txt"
        lines = [" ".join(line.split()[::-1]) for line in text.read_text().splitlines()]
        (tiny / f"{part}.target").write_text("\n".join([*lines, ""]))
        command = f"corpus --text {tiny / part}.target --source {text} --subword {tiny / 'sw'}"
        assert main([*command.split(), "--out", str(tiny / f"{part}-pairs.bin")]) == 0
    return tiny


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
