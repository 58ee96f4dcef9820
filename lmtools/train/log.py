"""What a training tells: metrics.jsonl for the report, a progress bar on a terminal, plain lines in a log."""

import json
import sys
from pathlib import Path

from tqdm import tqdm

from lmtools.files import atomic_text, read_lines


class Log:
    """Writes metrics of a training that starts, or goes on, at `step` of `total`; lines of later steps (lost to a crash) are dropped."""

    def __init__(self, directory, step: int, total: int, name: str):
        self.path, self.total, self.name = Path(directory) / "metrics.jsonl", total, name
        keep = [line for _, line in read_lines(self.path)] if step and self.path.exists() else []
        with atomic_text(self.path) as stream:
            stream.writelines(line + "\n" for line in keep if line.endswith("}") and json.loads(line)["step"] <= step)
        terminal = sys.stderr.isatty()
        self.bar = tqdm(total=total, initial=step, desc=name, unit="step", dynamic_ncols=True) if terminal else None

    def metrics(self, line: str, **values) -> None:
        """Append one line of metrics and show it."""
        with open(self.path, "a") as stream:
            stream.write(json.dumps({key: round(v, 6) if isinstance(v, float) else v for key, v in values.items()}) + "\n")
        self.say(f"step {values['step']}/{self.total} {line}")

    def say(self, line: str) -> None:
        """One line for people."""
        if self.bar is not None:
            self.bar.write(f"{self.name}: {line}", file=sys.stderr)
        else:
            print(f"{self.name}: {line}", file=sys.stderr, flush=True)

    def advance(self) -> None:
        """One more step is done."""
        if self.bar is not None:
            self.bar.update()

    def close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.close()


class Silence:
    """A log that keeps quiet: that of every process but the first."""

    def metrics(self, line: str, **values) -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""

    def advance(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""
