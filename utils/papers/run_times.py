"""Tables and figure of run time by sentence length, as in Figure 4 of the T-TA paper, and of
batched scoring, by what `benchmarks/bench.py score` wrote.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from lmtools.report.drawing import Picture, Theme, beside, line, plain_ticks
from lmtools.report.style import Names
from lmtools.report.table import Column, Table, figures, numbers, ratio, table_of

TASKS = {"hidden": "hidden states", "rerank": "reranking", "represent": "sentence vectors"}
# what is counted a second
BATCHED = {"hypotheses": "Batched scoring", "sentences": "Sentence vectors in batches"}
PAPER = (
    "The paper's abstract: T-TA is over six times faster than the BERT-based model in"
    " reranking, twelve times in semantic similarity."
)
GFLOPS = (
    "GFLOP/s counts the model's own floating point operations; the machine's are measured on"
    " the same matrix products alone."
)


@dataclass(frozen=True)
class Speed:
    """What bench.py wrote: rows by (task, words) of each language model in printing order."""

    tree: Mapping
    names: Names

    @property
    def lms(self) -> list[str]:
        """The language models, in printing order."""
        return self.names.ordered({row["lm"] for row in self.tree["rows"]})

    def timed(self, lm: str) -> dict[tuple[str, int], Mapping]:
        """Return the rows of a language model by task and words."""
        rows = [row for row in self.tree["rows"] if row["lm"] == lm]
        return {(row["task"], row["words"]): row for row in sorted(rows, key=lambda r: r["words"])}


def speed_tables(speed: Speed) -> Iterator[Table]:
    """Yield the median milliseconds a sentence and how many times faster T-TA is than biLM; then
    batched scoring, or sentence vectors in batches, against the rate of the machine's own matrix
    products.
    """
    keys = sorted({(row["task"], row["words"]) for row in speed.tree["rows"]})
    times = {}
    for lm in speed.lms:
        rows = speed.timed(lm)
        times[lm] = [1000 * rows[key]["seconds_median"] if key in rows else None for key in keys]
    absent = [None] * len(keys)
    ratios = map(ratio, times.get("masked", absent), times.get("tta", absent))
    columns = [
        Column("task", [TASKS.get(task, task) for task, _ in keys]),
        Column("words", [str(words) for _, words in keys]),
        *(figures(f"{speed.names.label(lm)} ms", values) for lm, values in times.items()),
        figures("biLM / T-TA", list(ratios)),
    ]
    facts = (speed.tree.get(key, "unknown") for key in ("machine", "threads"))
    machine = "Machine: {}, threads: {}.".format(*facts)
    yield table_of("Run time by sentence length", columns, (machine, PAPER), full=True)
    if batched := speed.tree.get("batched"):
        sentences = any("sentences_per_second" in row for row in batched.values())
        unit = "sentences" if sentences else "hypotheses"
        lms = speed.names.ordered(batched)
        specs = {
            "tokens": ("tokens", 0),
            f"{unit}/s": (f"{unit}_per_second", 1),
            "GFLOP/s": ("gflops", 1),
            "machine's GFLOP/s": ("matrix_gflops", 1),
        }
        columns = [
            Column("LM", list(map(speed.names.label, lms))),
            *(
                figures(header, [batched[lm].get(key) for lm in lms], digits)
                for header, (key, digits) in specs.items()
            ),
            numbers("share", [100 * batched[lm]["share"] for lm in lms], "{:.0f}%"),
        ]
        yield table_of(BATCHED[unit], columns, (machine, GFLOPS), full=True)


def speed_picture(speed: Speed) -> Picture:
    """Return the figure of run time by sentence length."""
    return Picture(
        "speed",
        f"Run time of one sentence by its length, {speed.tree.get('threads', '?')} thread(s),"
        f" {speed.tree.get('machine', 'machine unknown')}: lines are medians, bands the middle half"
        " of the measurements (compare Figure 4 of the T-TA paper).",
        "Run time by sentence length; the table of the same name has the medians.",
        partial(draw_speed, speed),
        wide=True,
    )


def draw_speed(speed: Speed, theme: Theme) -> Figure:
    """Draw a panel a task, a line and a band a language model."""
    tasks, styles = (
        sorted({row["task"] for row in speed.tree["rows"]}),
        speed.names.looks(speed.lms),
    )
    figure = Figure((10, 4))
    panels = figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0]
    for axes, task in zip(panels, tasks, strict=True):
        for lm in speed.lms:
            rows = {words: row for (of, words), row in speed.timed(lm).items() if of == task}
            every = [
                1000 * np.array(r.get("seconds") or [r["seconds_median"]]) for r in rows.values()
            ]
            band = {"color": theme.color(styles[lm]), "alpha": 0.2, "linewidth": 0}
            ends = [[float(np.percentile(row, end)) for row in every] for end in (25, 75)]
            axes.fill_between(list(rows), *ends, **band)
            medians = [1000 * row["seconds_median"] for row in rows.values()]
            line(axes, theme, styles[lm], speed.names.label(lm), x=list(rows), y=medians)
        axes.set_title(TASKS.get(task, task))
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
        axes.set_xlabel("sentence length (words)")
    panels[0].set_ylabel("milliseconds a sentence (log scale)")
    beside(panels[-1])
    return figure
