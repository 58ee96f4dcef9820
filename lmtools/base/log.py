"""What a program says on standard error while it works: lines, and how far a long piece of work is.

How far work is stands in a bar on a terminal, and elsewhere in a line for each minute in which
nothing else is said. Standard output is left for results.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

EVERY = 60.0  # seconds from line to line about one piece of work
SLOWEST = 0.05  # units a second that are said
DELAY = 1.0  # seconds that work takes at least to be shown in a bar
BYTES = "B"  # a unit that is shown as kB, MB ...
BROKEN = "{desc}: {percentage:3.0f}%|{bar}| {n:.1f}/{total:.1f} {unit}s [{elapsed}<{remaining}]"
OPEN: list["ProgressBar"] = []  # work under way, in the order in which it began

Item = TypeVar("Item")


def say(message: object) -> None:
    """Write one line on standard error, above a bar that is shown there."""
    bars = [work.bar for work in OPEN if work.bar is not None]
    if bars:
        bars[0].write(str(message), file=sys.stderr)
    else:
        print(message, file=sys.stderr, flush=True)
    for work in list(OPEN):
        work.last = time.monotonic()


def say_lines(lines: Iterable[str]) -> None:
    """Write lines on standard error, as `say` does."""
    for line in lines:
        say(line)


class ProgressBar:
    """How far a piece of work is: `done` of `total` (None: unknown) units, which `advance` raises;
    with `done` there before it begins. To be closed, or used by `with`.
    """

    def __init__(self, label: str, total: float | None, unit: str, done: float = 0):
        self.label, self.total, self.unit = label, total, unit
        self.done = self.before = done
        self.begun = self.last = time.monotonic()
        self.bar = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            class Bar(tqdm):
                monitor_interval = 0  # its thread would keep this process from being forked

            broken = {"bar_format": BROKEN} if isinstance(total, float) else {}
            self.bar = Bar(
                total=total, initial=done, desc=label, unit=unit, unit_scale=unit == BYTES,
                dynamic_ncols=True, delay=DELAY, file=sys.stderr, miniters=1, **broken,
            )  # fmt: skip
        OPEN.append(self)

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def advance(self, more: float = 1) -> None:
        """Note that `more` units are done, and show it when it is time to."""
        self.done += more
        if self.bar is not None:
            self.bar.update(more)
        elif time.monotonic() - self.last >= EVERY:
            self.write_line()

    def write_line(self) -> None:
        """Write in a line what is done, the rate since the beginning and the time left."""
        rate = (self.done - self.before) / max(time.monotonic() - self.begun, 1e-9)
        left = (self.total - self.done) / rate if self.total and rate else None
        line = f"{self.label}: {self.amount(self.done)}"
        if self.total:
            line += f" of {self.amount(self.total)} ({self.done / self.total:.0%})"
        line += f" {self.plural}"
        line += f", {self.amount(rate)} {self.plural}/s" if rate >= SLOWEST else ""
        if left is not None:
            line += f", {format_seconds(left)} left"
        say(line)

    @property
    def plural(self) -> str:
        return "MB" if self.unit == BYTES else f"{self.unit}s"

    def amount(self, value: float) -> str:
        if self.unit == BYTES:
            return f"{value / 1e6:,.1f}"
        return f"{value:,}" if isinstance(value, int) else f"{value:,.{1 if value < 100 else 0}f}"

    def close(self) -> None:
        """Leave the bar as it is; lines come no more."""
        if self in OPEN:
            OPEN.remove(self)
        if self.bar is not None:
            self.bar.close()


def format_seconds(seconds: float) -> str:
    """Return a time as 0:41, 12:05 or 3:07:59."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def track(
    items: Iterable[Item],
    label: str,
    total: int | None,
    unit: str,
    size: Callable[[Item], int] = lambda item: 1,
) -> Iterator[Item]:
    """Yield `items`, and show how many of `total` units, `size` each, are done."""
    with ProgressBar(label, total, unit) as progress:
        for item in items:
            yield item
            progress.advance(size(item))
