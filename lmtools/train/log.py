"""Messages of a training: metrics.jsonl for the report, a progress bar on a terminal, plain lines
in a log.
"""

import json
import sys
from pathlib import Path

from tqdm import tqdm

from lmtools.base.atomic import atomic_text
from lmtools.base.files import cannot, read_lines


class Log:
    """Metrics of a training that starts, or goes on, at `step` of `total`; lines of later steps
    (lost to a crash) are dropped.
    """

    def __init__(self, directory: Path, step: int, total: int):
        self.path, self.total, self.name = directory / "metrics.jsonl", total, directory.name
        keep = [line for _, line in read_lines(self.path)] if step and self.path.exists() else []
        with atomic_text(self.path, follow=False) as stream:
            stream.writelines(line + "\n" for line in keep if is_before(line, step))
        self.bar = None
        if sys.stderr.isatty():
            self.bar = tqdm(
                total=total, initial=step, desc=self.name, unit="step", dynamic_ncols=True
            )

    def metrics(self, line: str, **values) -> None:
        """Append one line of metrics and show it."""
        rounded = round_values(values)
        try:
            with open(self.path, "a") as stream:
                stream.write(json.dumps(rounded) + "\n")
        except OSError as error:
            raise cannot("write", self.path, error) from None
        self.say(f"step {values['step']}/{self.total} {line}")

    def say(self, line: str) -> None:
        """Write one line for people."""
        if self.bar is not None:
            self.bar.write(f"{self.name}: {line}", file=sys.stderr)
        else:
            print(f"{self.name}: {line}", file=sys.stderr, flush=True)

    def advance(self) -> None:
        """Advance the progress bar by one step."""
        if self.bar is not None:
            self.bar.update()

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()


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


class NullLog:
    """Log that writes nothing: that of every process but the first."""

    def __getattr__(self, name: str):
        return lambda *arguments, **values: None
