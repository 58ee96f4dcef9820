"""TensorBoard's event files, read back by TensorBoard."""

import os
import signal
import socket
import sys
from pathlib import Path
from shlex import split

import pytest
import yaml
from toys import read_log, settings

from lmtools.base.config import as_tree
from lmtools.base.errors import install_extra
from lmtools.cli import main
from lmtools.train import log, loop, train

tensorboard = pytest.importorskip("tensorboard", reason="tensorboard is not installed")


def read_events(directory) -> dict[str, list[tuple[int, float]]]:
    """Steps and values by tag."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = EventAccumulator(str(directory))
    log.Reload()
    return {
        tag: [(event.step, event.value) for event in log.Scalars(tag)]
        for tag in log.Tags()["scalars"]
    }


def read_metrics(directory, name: str) -> list[tuple[int, float]]:
    rows = read_log(directory, name)
    return [(row["step"], pytest.approx(row[name], abs=1e-5)) for row in rows]


def test_events_are_the_metrics(tiny, tmp_path):
    conf = tmp_path / "c.yaml"
    conf.write_text(yaml.safe_dump(as_tree(settings("causal"))))
    words = f"train --conf {conf} --train {tiny}/train.bin --valid {tiny}/valid.bin --device cpu"
    words += f" --also-valid old={tiny}/train.bin --out {tmp_path}/lm"
    assert main([*split(words), "--tensorboard", str(tmp_path / "events")]) == 0
    found = read_events(tmp_path / "events")
    assert found.keys() == {"loss/train", "loss/valid", "loss/old", "lr", "epoch"}
    for tag, name in (("loss/train", "train_loss"), ("loss/valid", "valid_loss"), ("lr", "lr")):
        assert len(found[tag]) >= 2 and found[tag] == read_metrics(tmp_path / "lm", name)


def test_a_training_that_goes_on_has_each_step_once(tiny, tmp_path, monkeypatch):
    places = tiny / "train.bin", tiny / "valid.bin", tmp_path / "lm", "cpu"
    step = loop.Training.step

    def stop(self, batch):
        if self.progress.step == 12:
            signal.raise_signal(signal.SIGTERM)
        return step(self, batch)

    monkeypatch.setattr(loop.Training, "step", stop)
    with pytest.raises(loop.Stopped):
        train(settings("causal"), *places, events=tmp_path / "events")
    monkeypatch.setattr(loop.Training, "step", step)
    train(settings("causal"), *places, events=tmp_path / "events")
    found = read_events(tmp_path / "events")
    assert found["loss/train"] == read_metrics(tmp_path / "lm", "train_loss")
    steps = [step for step, _ in found["loss/train"]]
    assert len(set(steps)) == len(steps) and steps[0] < 12 < steps[-1]


def test_a_missing_package_is_named_before_anything_is_written(tiny, tmp_path, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("tensorboard.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    conf = tmp_path / "c.yaml"
    conf.write_text(yaml.safe_dump(as_tree(settings("causal"))))
    words = f"train --conf {conf} --train {tiny}/train.bin --valid {tiny}/valid.bin"
    words += f" --out {tmp_path}/lm --tensorboard {tmp_path}/events"
    assert main(split(words)) == 1
    told = f"--tensorboard needs the package tensorboard; {install_extra('tensorboard')}"
    assert told in capsys.readouterr().err
    assert not (tmp_path / "lm/metrics.jsonl").exists() and not (tmp_path / "events").exists()


def test_a_place_for_events_that_is_a_file(tiny, tmp_path, capsys):
    conf = tmp_path / "c.yaml"
    conf.write_text(yaml.safe_dump(as_tree(settings("causal"))))
    words = f"train --conf {conf} --train {tiny}/train.bin --valid {tiny}/valid.bin"
    assert main([*split(words), "--out", str(tmp_path / "lm"), "--tensorboard", str(conf)]) == 1
    said = capsys.readouterr().err
    assert f"{conf}: cannot write event files" in said and "Traceback" not in said


def test_a_training_goes_on_where_event_files_find_no_room(tiny, tmp_path, monkeypatch, capsys):
    """Links to /dev/full stand for files on a full disk."""
    made, places = Path.mkdir, (tiny / "train.bin", tiny / "valid.bin", tmp_path / "lm", "cpu")
    monkeypatch.setattr(log.time, "time", lambda: 0.0)

    def make(self, **how):
        made(self, **how)
        if self.name == "events":
            name = f"events.out.tfevents.0.000000.{socket.gethostname()}.{os.getpid()}"
            (self / name).symlink_to("/dev/full")

    monkeypatch.setattr(Path, "mkdir", make)
    train(settings("causal"), *places, events=tmp_path / "events")
    said = capsys.readouterr().err
    assert said.count("cannot write: No space left on device; free space") == 1
    assert "training goes on without" in said and "Traceback" not in said
    assert len(read_metrics(tmp_path / "lm", "train_loss")) > 1
