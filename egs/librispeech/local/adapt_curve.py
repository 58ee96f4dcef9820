#!/usr/bin/env python3
"""adapt_curve.py EXPDIR SIZE...: what local/adapt.sh found for each size of the domain's text, as
EXPDIR/report/curve.md (WER, perplexity, weights) and curve.png (WER).
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure
from real_curve import read_wers

from lmtools.atomic import atomic_binary, atomic_text
from lmtools.errors import exit_with_message
from lmtools.files import read_lines
from lmtools.report.page.drawing import LIGHT, Picture, Theme, beside, line
from lmtools.report.page.table import NONE, Table, markdown
from lmtools.report.style import Look

ALONE = {  # systems without text of the domain, and what they are
    "first-pass": "first pass, tuned",
    "ngram-general": "n-gram, general",
    "neural-general": "neural, general",
}
SYSTEMS = {  # those of a size, SIZE for it
    "ngram-SIZE": "n-gram, domain",
    "ngram-SIZE+source": "n-gram, domain ± source (LODR)",
    "mixed-SIZE": "n-gram, mixed",
    "mixed-SIZE+source": "n-gram, mixed ± source",
    "neural-SIZE": "neural, domain",
    "continued-SIZE": "neural, continued",
    "continued-SIZE+source": "neural, continued ± source (LODR)",
    "mixed-SIZE+continued-SIZE": "mixed + continued",
    "mixed-SIZE+continued-SIZE+source": "mixed + continued ± source",
}
COLORS = {"n-gram": "#b5530d", "neural": "#1f6fb5", "mixed +": "#7a3fa0", "first": "#555b66"}


def main(expdir: str, *sizes: str) -> None:
    """Read what there is, print and draw."""
    home = Path(expdir)
    wers = read_wers(home, ".", "test")
    lines = {size: count_lines(home, size) for size in sizes}
    text = "# What text of the domain brings\n"
    for table in tables(home, wers, sizes, lines):
        text += f"\n{markdown(table)}"
    with atomic_text(home / "report/curve.md") as out:
        out.write(text)
    picture = Picture("curve", "", "", lambda theme: draw(theme, wers, lines))
    with atomic_binary(home / "report/curve.png") as out:
        out.write(picture.png(LIGHT))


def count_lines(home: Path, size: str) -> int:
    """How many lines of the domain a size has, held-out ones too."""
    return sum(
        sum(1 for _ in read_lines(home / f"data/{part}-{size}.txt")) for part in ("train", "valid")
    )


def tables(home: Path, wers: Mapping[str, float], sizes, lines):
    """WER, then perplexity on both domains: a row a system, a column a size."""
    header = ("lines of the domain", *(f"{lines[size]:,}" for size in sizes))
    figures = {
        "WER %, test": wers.get,
        "Perplexity, test references": lambda name: read_ppl(home, name, "test"),
        "Perplexity, general text": lambda name: read_ppl(home, name, "general"),
    }
    for title, find in figures.items():
        rows = []
        for name, label in (ALONE | SYSTEMS).items():
            row = [show(find, name.replace("SIZE", size)) for size in sizes]
            if set(row) != {NONE}:
                rows.append((label, *row))
        yield Table(title, header, tuple(rows))
    title = "Weight of the source's bigram"
    note = "Of its natural log-probability; below 0 it is subtracted, above it helps."
    rows = [
        (label, *(f"{read_weight(home, name.replace('SIZE', size)):+.2f}" for size in sizes))
        for name, label in SYSTEMS.items()
        if name.endswith("+source")
    ]
    yield Table(title, header, tuple(rows), (note,))


def read_weight(home: Path, system: str) -> float:
    """The tuned weight of the source in a system."""
    return json.loads((home / "tune" / system / "weights.json").read_text())["features"]["source"]


def show(find: Callable, name: str) -> str:
    """A figure in print."""
    value = find(name)
    return NONE if value is None else f"{value:,.2f}"


def read_ppl(home: Path, name: str, text: str) -> float | None:
    """The perplexity a word; None for a system that is no LM alone."""
    path = home / "ppl" / name / f"{text}.json"
    return json.loads(path.read_text())["word_ppl"] if path.is_file() else None


def draw(theme: Theme, wers: Mapping[str, float], lines: Mapping[str, int]) -> Figure:
    """WER over lines of the domain, in the looks of `choose_look`."""
    figure = Figure(figsize=(8.6, 4.4))
    axis = figure.subplots()
    axis.set_xscale("log")
    axis.set_xlabel("lines of the domain's text")
    axis.set_title("WER %, test")
    counts = sorted(lines.items(), key=lambda item: item[1])
    axis.set_xticks([count for _, count in counts], [f"{count:,}" for _, count in counts])
    axis.minorticks_off()
    for name, label in SYSTEMS.items():
        points = [(count, wers[name.replace("SIZE", size)]) for size, count in counts]
        line(axis, theme, choose_look(name, label), label, *zip(*points, strict=True))
    for name, label in ALONE.items():
        line(axis, theme, choose_look(name, label), label, *across(counts, wers[name]))
    beside(axis)
    return figure


def choose_look(name: str, label: str) -> Look:
    """Colour by kind of model; hollow: no general text; dashed: with the source's bigram; dotted:
    no text of the domain.
    """
    color = next(value for start, value in COLORS.items() if label.startswith(start))
    if name in ALONE:
        return Look(color, color, ",", ":")
    hollow = name.startswith(("ngram", "neural"))
    return Look(color, color, "s" if hollow else "o", "--" if "source" in name else "-", hollow)


def across(counts, value: float) -> tuple[list[int], list[float]]:
    """A level line over all sizes."""
    return [count for _, count in counts], [value] * len(counts)


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
