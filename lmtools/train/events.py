"""TensorBoard's event files of a training."""

from collections.abc import Mapping
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.extras import explain_missing

TAGS = {"train_loss": "loss/train", "valid_loss": "loss/valid", "lr": "lr", "epoch": "epoch"}
OTHERS = "also"  # losses on other texts, by name


def import_writer():
    """Return torch's SummaryWriter; UserError where the package tensorboard is missing."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise explain_missing(error, "--tensorboard") from None
    return SummaryWriter


class Events:
    """Event files in a directory of a training that starts, or goes on, after `step`: what an
    earlier run wrote of later steps is not shown any more.
    """

    def __init__(self, directory: Path, step: int):
        try:
            self.writer = import_writer()(str(directory), purge_step=step + 1 if step else None)
        except OSError as error:
            raise UserError(
                f"{directory}: cannot write event files ({error.strerror}); give another directory"
            ) from None

    def add(self, values: Mapping) -> None:
        """Add the metrics of a step: losses in nats a target, learning rate, epoch."""
        rows = {tag: values[name] for name, tag in TAGS.items() if name in values}
        rows |= {f"loss/{name}": loss for name, loss in values.get(OTHERS, {}).items()}
        for tag, value in rows.items():
            self.writer.add_scalar(tag, value, values["step"])
        self.writer.flush()

    def close(self) -> None:
        """End the file."""
        self.writer.close()
