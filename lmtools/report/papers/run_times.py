"""Tables and figures of run time, as in Figure 4 of the T-TA paper: by sentence length, and of
batched scoring.
"""

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from lmtools.report.experiment import Experiment
from lmtools.report.names import Names
from lmtools.report.page.columns import decimal
from lmtools.report.page.drawing import Picture, Theme, beside, line
from lmtools.report.page.labels import plain_ticks
from lmtools.report.page.table import Table

TASKS = {"hidden": "hidden states", "rerank": "reranking", "represent": "sentence vectors"}
# what is counted a second
BATCHED = {"hypotheses": "Batched scoring", "sentences": "Sentence vectors in batches"}


def speed_tables(experiment: Experiment) -> Iterator[Table]:
    """Median milliseconds a sentence (Figure 4 of the T-TA paper) and how many times faster T-TA is
    than biLM.
    """
    speed, names = experiment.speed, experiment.names.lms
    if not speed:
        return
    medians = {
        (row["task"], row["words"], row["lm"]): 1000 * row["seconds_median"]
        for row in speed["rows"]
    }
    lms = names.ordered({lm for _, _, lm in medians})
    rows = []
    for task, words in sorted({key[:2] for key in medians}):
        times = {lm: medians.get((task, words, lm)) for lm in lms}
        ratio = times["masked"] / times["tta"] if times.get("tta") and times.get("masked") else None
        rows.append(
            (TASKS.get(task, task), str(words), *(decimal(times[lm]) for lm in lms), decimal(ratio))
        )
    header = ("task", "words", *(f"{names.label(lm)} ms" for lm in lms), "biLM / T-TA")
    machine = (
        f"Machine: {speed.get('machine', 'unknown')}, threads: {speed.get('threads', 'unknown')}."
    )
    paper = (
        "The paper's abstract: T-TA is over six times faster than the BERT-based model in"
        " reranking, twelve times in semantic similarity."
    )
    yield Table("Run time by sentence length", header, tuple(rows), (machine, paper))
    if batched := speed.get("batched"):
        yield throughput_table(batched, names, machine)


def throughput_table(batched, names: Names, machine: str) -> Table:
    """Batched scoring, or sentence vectors in batches, against the rate of the machine's own matrix
    products.
    """
    unit = (
        "sentences"
        if any("sentences_per_second" in row for row in batched.values())
        else "hypotheses"
    )
    columns = {"tokens": 0, f"{unit}_per_second": 1, "gflops": 1, "matrix_gflops": 1}
    rows = [
        (
            names.label(lm),
            *(decimal(batched[lm].get(name), digits) for name, digits in columns.items()),
            f"{100 * batched[lm]['share']:.0f}%",
        )
        for lm in names.ordered(batched)
    ]
    header = ("LM", "tokens", f"{unit}/s", "GFLOP/s", "machine's GFLOP/s", "share")
    note = (
        "GFLOP/s counts the model's own floating point operations; the machine's are measured on"
        " the same matrix products alone."
    )
    return Table(BATCHED[unit], header, tuple(rows), (machine, note))


def speed_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Run time by sentence length, as in Figure 4 of the T-TA paper."""
    if speed := experiment.speed:
        yield Picture(
            "speed",
            f"Run time of one sentence by its length, {speed.get('threads', '?')} thread(s),"
            f" {speed.get('machine', 'machine unknown')}: lines are medians, bands the middle half"
            " of the measurements (compare Figure 4 of the T-TA paper).",
            "Run time by sentence length; the table of the same name has the medians.",
            lambda theme: draw_speed(theme, experiment.names.lms, speed["rows"]),
            wide=True,
        )


def draw_speed(theme: Theme, names: Names, rows) -> Figure:
    tasks = sorted({row["task"] for row in rows})
    lms = names.ordered({row["lm"] for row in rows})
    styles = names.looks(lms)
    figure = Figure((10, 4))
    panels = figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0]
    for axes, task in zip(panels, tasks, strict=True):
        for lm in lms:
            mine = sorted(
                (row for row in rows if row["task"] == task and row["lm"] == lm),
                key=lambda row: row["words"],
            )
            words = [row["words"] for row in mine]
            times = [row.get("seconds") or [row["seconds_median"]] for row in mine]
            low, high = np.reshape([np.percentile(some, (25, 75)) for some in times], (-1, 2)).T
            band = {"color": theme.color(styles[lm]), "alpha": 0.2, "linewidth": 0}
            axes.fill_between(words, 1000 * low, 1000 * high, **band)
            medians = [1000 * row["seconds_median"] for row in mine]
            line(axes, theme, styles[lm], names.label(lm), words, medians)
        axes.set_title(TASKS.get(task, task))
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
        axes.set_xlabel("sentence length (words)")
    panels[0].set_ylabel("milliseconds a sentence (log scale)")
    beside(panels[-1])
    return figure
