"""TensorBoard's event files of a training."""

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.extras import explain_missing
from lmtools.base.files import cannot
from lmtools.base.log import say

TAGS = {"train_loss": "loss/train", "valid_loss": "loss/valid", "lr": "lr", "epoch": "epoch"}
OTHERS = "also"  # losses on other texts, by name


def import_writer():
    """Return TensorBoard's class of files of records, and the module of what is in them; UserError
    where the package is missing.
    """
    try:
        from tensorboard.compat.proto import event_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError as error:
        raise explain_missing(error, "--tensorboard") from None
    return RecordWriter, event_pb2


class Events:
    """Event files in a directory of a training that starts, or goes on, after `step`: what an
    earlier run wrote of later steps is not shown any more. Where they cannot be written any more,
    the training goes on without.
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
        """Write an event."""
        if self.file is None:
            return
        try:
            self.file.write(self.kinds.Event(wall_time=time.time(), **event).SerializeToString())
            self.file.flush()
        except OSError as error:
            say(
                f"warning: {cannot('write', self.path, error)}; training goes on without", "warning"
            )
            self.close()

    def close(self) -> None:
        """End the file."""
        if self.file is not None:
            with contextlib.suppress(OSError):
                self.file.close()
        self.file = None
