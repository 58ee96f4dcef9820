"""Costs of rescoring lattices: a table of an experiment; results of `lmtools bench lattice`, in
words and as a figure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from lmtools.report.names import Names
from lmtools.report.page.columns import NONE, decimal
from lmtools.report.page.drawing import LIGHT, Picture, Theme, beside, line
from lmtools.report.page.table import Table
from lmtools.report.rescoring.experiment import RescoringExperiment

AXES = {
    "density": ("density", "arcs a second of speech"),
    "tokens": ("tokens", "histories a state"),
}


def lines(figures: Mapping) -> Iterator[str]:
    """Yield the machine, then one line a measurement."""
    yield (
        f"{figures['machine']}; {figures['threads']} thread(s), {figures['precision']}, median of"
        f" {figures['repeats']}"
    )
    yield (
        f"{figures['lattices']} lattices, {figures['speech']:.1f} s of speech; neural LMs: order"
        f" {figures['order'] or 'unlimited'}"
    )
    for row in figures["rows"]:
        bounds = f"{row['density']:.1f} arcs a second, {row['tokens'] or 'all'} histories a state"
        yield (
            f"{row['lm']}: {row['real_time_factor']:.4f} x real time, {row['arcs_per_second']:,.0f}"
            f" arcs/s ({bounds})"
        )


def draw(figures: Mapping) -> bytes:
    """Draw the real-time factor by density and by histories kept, one line an LM; return PNG."""
    kinds = [kind for kind in AXES if any(row["kind"] == kind for row in figures["rows"])]
    return Picture(
        "lattice", "", "", lambda theme: panels(theme, figures, kinds or ["density"])
    ).png(LIGHT)


def panels(theme: Theme, figures: Mapping, kinds: list[str]) -> Figure:
    """Draw one panel a kind; measurements of the whole lattices belong to each."""
    figure = Figure((4.2 * len(kinds) + 1.4, 3.6))
    printed = Names()
    names = printed.ordered({row["lm"] for row in figures["rows"]})
    styles = printed.looks(names)
    for axes, kind in zip(
        figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0], kinds, strict=True
    ):
        key, title = AXES[kind]
        for name in names:
            rows = [
                row
                for row in figures["rows"]
                if row["lm"] == name and row["kind"] in (kind, "whole") and row[key] is not None
            ]
            points = sorted({row[key]: row["real_time_factor"] for row in rows}.items())
            line(axes, theme, styles[name], printed.label(name), *zip(*points, strict=True))
        axes.set_xscale("log")
        axes.set_yscale("log")
        # one major tick a decade would leave most of these axes without numbers
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel(title)
    figure.axes[0].set_ylabel("x real time")
    beside(figure.axes[-1])
    return figure


def lattice_tables(experiment: RescoringExperiment) -> Iterator[Table]:
    """Yield the table of the costs of rescoring lattices, and of the distance of a bidirectional
    LM's scores on arcs from those of whole sentences.
    """
    made = {name: experiment.lattice_makeup(name) for name, _ in experiment.lattices}
    lattices = {key: one for key, one in experiment.lattices.items() if made[key[0]].normalised}
    if not lattices:
        return
    lists = {name: one._replace(lattices=False) for name, one in made.items() if one.parts}
    names, rows = replace(experiment.names, systems=lists), []
    for (system, name), one in lattices.items():
        seconds, speech = one["seconds"], one["speech"]
        sizes = [decimal(one[key], 0) for key in ("lattices", "arcs", "rescored_arcs")]
        rate = [
            decimal(one["arcs"] / speech, 1) if speech else NONE,
            decimal(seconds / speech, 3) if speech else NONE,
        ]
        off = one.get("approximation") or {}
        near = [decimal(off.get(key), 3) for key in ("word_mean", "sentence_mean")]
        rows.append(
            (
                names.label(system),
                name,
                *sizes,
                *rate,
                decimal(one["arcs"] / seconds, 0) if seconds else NONE,
                *near,
            )
        )
    header = ("system", "set", "lattices", "arcs", "rescored arcs", "arcs a second of speech",
    "real-time factor", "arcs/s",
              "difference a word", "a sentence")  # fmt: skip
    note = (
        "Time is that of rescoring, added up over processes, without reading, writing and loading."
        " The differences are mean absolute ones between the sum of the arcs' scores along a path"
        " and the LM's score of its words, in nats, over the best paths of each lattice."
    )
    yield Table("Rescoring lattices", header, tuple(rows), (note,), left=2)
