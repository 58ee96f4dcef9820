"""What the tests of training share."""

import os
import signal

import pytest

from lmtools.cli import main
from lmtools.models.checkpoint import load_metadata
from lmtools.train import Stopped, train
from lmtools.train.loop import Training


@pytest.fixture
def train_in_parts(monkeypatch):
    """`train` with the steps before first that stop it: exceptions, at the last SIGTERM."""

    def run(stops, *args):
        step, left = Training.step, list(stops)

        def interrupted(self, batch):
            if left and self.progress.step == left[0]:
                left.pop(0)
                if left:
                    raise KeyboardInterrupt
                os.kill(os.getpid(), signal.SIGTERM)
            return step(self, batch)

        monkeypatch.setattr(Training, "step", interrupted)
        for n in range(1, 1 + len(stops)):
            with pytest.raises(KeyboardInterrupt if n < len(stops) else Stopped):
                train(*args)
        progress = load_metadata(args[3] / "checkpoint.safetensors")["progress"]
        assert progress["step"] == stops[-1] + 1
        return train(*args)

    return run


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
    """`tiny` with the corpora spelled by characters, and by unigram pieces (`cuts`)."""
    for name, kind in (("spelled", "char"), ("cuts", "unigram --vocab-size 40")):
        made = f"--type {kind} --words {tiny / 'sw'} --out {tiny / name}"
        assert main(f"subword --text {tiny / 'train.txt'} {made}".split()) == 0
        for part in ("train", "valid"):
            text, out = tiny / f"{part}.txt", tiny / f"{part}-{name}.bin"
            command = f"corpus --text {text} --subword {tiny / name} --out {out}"
            assert main(command.split()) == 0
    return tiny


@pytest.fixture
def corpora(tiny):
    """The training and the validation corpus of `tiny`."""
    return tiny / "train.bin", tiny / "valid.bin"
