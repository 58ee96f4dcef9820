"""Messages of a training: metrics.jsonl for the report, TensorBoard's event files, a progress bar
on a terminal, plain lines in a log.
"""

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError, explain_missing
from lmtools.base.files import cannot, read_lines
from lmtools.base.log import ProgressBar, say

TAGS = {"train_loss": "loss/train", "valid_loss": "loss/valid", "lr": "lr", "epoch": "epoch"}
MANY = 0.01  # of the sentences; so many are not cut, or left out, in silence
OTHERS = "also"  # losses on other texts, by name


def import_writer():
    """Return TensorBoard's class of record files, and its module; UserError without it."""
    try:
        from tensorboard.compat.proto import event_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError as error:
        raise explain_missing(error, "--tensorboard") from None
    return RecordWriter, event_pb2


class Events:
    """Event files of a training that starts, or goes on, after `step`: later ones of an earlier run
    are hidden. Where they cannot be written any more, training goes on without.
    """

    def __init__(self, directory: Path, step: int):
        make, self.kinds = import_writer()
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        self.path = directory / name
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self.file = make(open(self.path, "wb"))  # noqa: SIM115
        except OSError as error:
            raise UserError(
                f"{directory}: cannot write event files ({error.strerror}); give another directory"
            ) from None
        self.write(file_version="brain.Event:2")
        if step:
            log = self.kinds.SessionLog(status=self.kinds.SessionLog.START)
            self.write(step=step + 1, session_log=log)

    def add(self, values: Mapping) -> None:
        """Add the metrics of a step: losses in nats a target, learning rate, epoch."""
        rows = {tag: values[name] for name, tag in TAGS.items() if name in values}
        rows |= {f"loss/{name}": loss for name, loss in values.get(OTHERS, {}).items()}
        rows = [{"tag": tag, "simple_value": value} for tag, value in rows.items()]
        self.write(step=values["step"], summary={"value": rows})

    def write(self, **event) -> None:
        if self.file is None:
            return
        try:
            self.file.write(self.kinds.Event(wall_time=time.time(), **event).SerializeToString())
            self.file.flush()
        except OSError as error:
            say(f"warning: {cannot('write', self.path, error)}; training goes on without")
            self.close()

    def close(self) -> None:
        if self.file is not None:
            with contextlib.suppress(OSError):
                self.file.close()
        self.file = None


class Log:
    """Metrics from `step` on of `total`, later lines dropped; `events`: TensorBoard's directory."""

    def __init__(self, directory: Path, step: int, total: int, events: Path | None = None):
        self.path, self.total, self.name = directory / "metrics.jsonl", total, directory.name
        keep = [line for _, line in read_lines(self.path)] if step and self.path.exists() else []
        with atomic_text(self.path, follow=False) as stream:
            stream.writelines(line + "\n" for line in keep if is_before(line, step))
        self.events = Events(events, step) if events else None
        self.progress = ProgressBar(self.name, total, "step", step)

    def metrics(self, line: str, **values) -> None:
        rounded = round_values(values)
        try:
            with open(self.path, "a") as stream:
                stream.write(json.dumps(rounded) + "\n")
        except OSError as error:
            raise cannot("write", self.path, error) from None
        if self.events:
            self.events.add(rounded)
        self.say(f"step {values['step']}/{self.total} {line}")

    def say(self, line: str) -> None:
        say(f"{self.name}: {line}")

    def advance(self) -> None:
        self.progress.advance()

    def close(self) -> None:
        self.progress.close()
        if self.events:
            self.events.close()


def round_values(values: dict) -> dict:
    """Return the values, in mappings too, with six decimals where they are fractions."""
    return {
        name: round_values(value)
        if isinstance(value, dict)
        else (round(value, 6) if isinstance(value, float) else value)
        for name, value in values.items()
    }


def is_before(line: str, step: int) -> bool:
    """Return whether a line of metrics.jsonl is whole, and of this step or one before."""
    try:
        return json.loads(line)["step"] <= step
    except (ValueError, KeyError, TypeError):  # a crash or a full disk cut it short
        return False


def list_doubts(training) -> Iterator[str]:
    """Yield warnings of a training that can learn nothing, or not from the text that was given."""
    optim, total = training.settings.optim, training.total
    if optim.lr == 0:
        yield "warning: optim.lr: 0, at which nothing is learnt; give a rate above 0, as 1e-3"
    elif optim.warmup > total:
        yield (
            f"warning: optim.warmup: {optim.warmup:,} steps are more than the {total:,} of the"
            f" training, whose learning rate ends at {optim.lr * total / optim.warmup:.2g}, not at"
            f" optim.lr {optim.lr:g}; give fewer, as {total // 10}"
        )
    if training.train.too_long > MANY * len(training.plan.train):
        yield (
            f"warning: {training.train.too_long:,} of {len(training.plan.train):,} sentences are"
            f" longer than the {training.lm.longest} tokens that arch.positions leaves; raise it"
        )


class NullLog:
    """Log that writes nothing: that of every process but the first."""

    def __getattr__(self, name: str):
        return lambda *arguments, **values: None


def describe_training(training, resume: bool) -> str:
    settings = training.settings
    text = f"resuming at step {training.progress.step}" if resume else "starting"
    text += f": {settings.model}/{settings.objective}/{settings.criterion}"
    text += f", {sum(p.numel() for p in training.lm.parameters()):,} parameters"
    groups = training.optimiser.param_groups
    if settings.partial:
        learnt = sum(p.numel() for group in groups for p in group["params"])
        text += f" ({learnt:,} are learnt)"
    if trunk_description := training.lm.trunk.describe():
        text += f", {trunk_description}"
    kind = "pairs" if training.lm.objective.pairs else "sentences"
    kind = "lists" if settings.lists.loss else kind
    text += f", {len(training.plan.train):,} {kind}"
    if count := training.train.too_long:
        done = "left out" if training.lm.objective.pairs else "cut"
        text += f" ({count:,} of them {done}, longer than {training.lm.longest} tokens)"
    text += f", {training.total:,} steps of {training.train.per_epoch:,} an epoch"
    text += f", {settings.accumulate} batches a step" * (settings.accumulate > 1)
    text += f", {settings.precision} on {training.device}"
    return text + (f" by {training.world.size} processes" if training.world.size > 1 else "")
