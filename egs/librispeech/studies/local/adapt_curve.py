#!/usr/bin/env python3
"""adapt_curve.py EXPERIMENT EXPDIR SIZE...: what run_adapt.sh found for each size of the domain's
text, in EXPDIR/SIZE, as EXPDIR/report/curve.md (WER, perplexity, weights) and curve.png (WER), of
the systems in EXPERIMENT (a YAML file) that have labels.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from books_curve import read_wers
from matplotlib.figure import Figure

from lmtools.base.atomic import atomic_binary, atomic_text
from lmtools.base.errors import exit_with_message
from lmtools.base.files import read_lines
from lmtools.report.drawing import LIGHT, Picture, Theme, beside, line
from lmtools.report.style import Look
from lmtools.report.table import NONE, Table, markdown
from lmtools.rescoring.experiment import read_experiment

FIRST_PASS, SOURCE, GENERAL = "first-pass", "source", "-general"
COLORS = {"n-gram": "#b5530d", "neural": "#1f6fb5", "mixed +": "#7a3fa0", "tuned": "#555b66"}
Wers = Mapping[str, Mapping[str, float]]  # by size, then by system


def main(experiment: str, expdir: str, *sizes: str) -> None:
    """Read what there is, print and draw."""
    home = Path(expdir)
    systems = read_experiment(experiment).systems
    labels = {
        name: system.label for name, system in systems.items() if system.label and name != SOURCE
    }
    wers = {size: read_wers(home / "data/test/nbest.jsonl", home / size) for size in sizes}
    lines = {size: count_lines(home, size) for size in sizes}
    text = "# What text of the domain brings\n"
    for table in tables(home, labels, wers, lines):
        text += f"\n{markdown(table)}"
    with atomic_text(home / "report/curve.md") as out:
        out.write(text)
    picture = Picture("curve", "", "", lambda theme: draw(theme, labels, wers, lines))
    with atomic_binary(home / "report/curve.png") as out:
        out.write(picture.png(LIGHT))


def count_lines(home: Path, size: str) -> int:
    """Return how many lines of the domain a size has, held-out ones too."""
    return sum(
        sum(1 for _ in read_lines(home / f"data/{part}-{size}.txt")) for part in ("train", "valid")
    )


def tables(home: Path, labels: Mapping[str, str], wers: Wers, lines: Mapping[str, int]):
    """Yield WER, then perplexity on both domains: a row a system, a column a size."""
    header = ("lines of the domain", *(f"{count:,}" for count in lines.values()))
    figures = {
        "WER %, test": lambda size, name: wers[size].get(name),
        "Perplexity, test references": lambda size, name: read_ppl(home / size, name, "test"),
        "Perplexity, general text": lambda size, name: read_ppl(home / size, name, "general"),
    }
    for title, find in figures.items():
        rows = []
        for name, label in labels.items():
            row = [show(find(size, name)) for size in lines]
            if set(row) != {NONE}:
                rows.append((label, *row))
        yield Table(title, header, tuple(rows))
    title = "Weight of the source's bigram"
    note = "Of its natural log-probability; below 0 it is subtracted, above it helps."
    rows = [
        (label, *(f"{read_weight(home / size, name):+.2f}" for size in lines))
        for name, label in labels.items()
        if name.endswith(f"+{SOURCE}")
    ]
    yield Table(title, header, tuple(rows), (note,))


def read_weight(home: Path, system: str) -> float:
    """Return the tuned weight of the source in a system."""
    return json.loads((home / "tune" / system / "weights.json").read_text())["features"][SOURCE]


def show(value: float | None) -> str:
    """Return a figure in print."""
    return NONE if value is None else f"{value:,.2f}"


def read_ppl(home: Path, name: str, text: str) -> float | None:
    """Return the perplexity a word; None for a system that is no LM alone."""
    path = home / "ppl" / name / f"{text}.json"
    return json.loads(path.read_text())["word_ppl"] if path.is_file() else None


def draw(theme: Theme, labels, wers: Wers, lines: Mapping[str, int]) -> Figure:
    """Draw WER over lines of the domain, in the looks of `choose_look`."""
    figure = Figure(figsize=(8.6, 4.4))
    axis = figure.subplots()
    axis.set_xscale("log")
    axis.set_xlabel("lines of the domain's text")
    axis.set_title("WER %, test")
    counts = sorted(lines.items(), key=lambda item: item[1])
    axis.set_xticks([count for _, count in counts], [f"{count:,}" for _, count in counts])
    axis.minorticks_off()
    for name in sorted(labels, key=needs_no_domain):
        points = [(count, wers[size][name]) for size, count in counts]
        look = choose_look(name, labels[name])
        line(axis, theme, look, labels[name], *zip(*points, strict=True))
    beside(axis)
    return figure


def needs_no_domain(name: str) -> bool:
    """Return whether a system has no text of the domain."""
    return name == FIRST_PASS or name.endswith(GENERAL)


def choose_look(name: str, label: str) -> Look:
    """Return colour by kind of model; hollow: no general text; dashed: with the source's bigram;
    dotted: no text of the domain.
    """
    color = next(value for start, value in COLORS.items() if label.startswith(start))
    if needs_no_domain(name):
        return Look(color, color, ",", ":")
    hollow = name.startswith(("ngram", "neural"))
    return Look(color, color, "s" if hollow else "o", "--" if SOURCE in name else "-", hollow)


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
