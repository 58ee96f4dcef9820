"""Quotations from papers in a recipe's conf/papers.yaml: tables whose figures stand beside ours,
and values read off figures.

    citations: {toy: {label: Toy, text: "A. Toy 2020, On Toys"}} # of papers beyond PAPERS

    tables:
    - paper: tta             # a key of PAPERS
      table: 1
      title: WER % after rescoring 50-best lists
      only: Seq2Seq-ASR      # of the table only the rows that begin so
      corpus: LibriSpeech    # in headers
      theirs: Of what corpus and size the paper's figures are.
      same: [full]           # --corpus values that are the paper's own corpus
      beside:                # by --corpus or --pair, or `any`: what of ours stands beside a column
        full: {dev clean: [score, dev-clean]} # QUANTITY, SET or device, what names of ours end in
      ratio: {train time: CE} # columns that are printed in times the figure of a row
      columns: [method, ours, dev clean, train time]
      rows:                  # as printed; ? behind what is uncertain, "" for nothing
      - [first pass, "@first", 4.11, ""]
      - [T-TA, tta-shared tta, "3.67?", 0.3] # beside it the first of ours that was measured
      uncertain: What is not known for certain.
    readings:                # off figures, for figures of ours: see `Reading`

QUANTITY: score (of rescoring), ppl (of words), sentence-mean, sentence-median, context, embed
(Pearson x100), parameters, time (of a training step), throughput, responsiveness, contiguous.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import yaml
from matplotlib.figure import Figure

from lmtools.base.config import build
from lmtools.base.errors import UserError
from lmtools.base.files import read_bytes
from lmtools.report.artifacts import read_stages
from lmtools.report.drawing import Picture, Theme
from lmtools.report.style import Names

PAPERS = {  # by name: what it is called in headers, and where it appeared
    "tta": {
        "label": "T-TA",
        "text": "Shin et al. 2020, Fast and Accurate Deep Bidirectional Language Representations",
    },
    "gcnn": {
        "label": "GCNN",
        "text": "Dauphin et al. 2017, Language Modeling with Gated Convolutional Networks",
    },
    "esulmo": {"label": "Subword ELMo", "text": "Li et al. 2019, Subword ELMo"},
    "sampling": {
        "label": "Sampling",
        "text": "Gao et al. 2021, On Sampling-Based Training Criteria for Neural Language Modeling",
    },
}
MARK, ANY = "?", "any"
DASHED = {"linestyle": (0, (6, 3)), "linewidth": 1.1}


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper, or some rows of it; see above."""

    paper: str
    table: str
    title: str
    corpus: str
    theirs: str
    columns: list[str]
    rows: list[list[str]]
    beside: dict[str, dict[str, list[str]]]
    label: str  # the paper's
    cited: str
    only: str = ""
    same: list[str] = field(default_factory=list)
    ratio: dict[str, str] = field(default_factory=dict)
    uncertain: str = ""

    def __post_init__(self):
        for row in self.rows:
            if len(row) != len(self.columns):
                raise UserError(f"rows: {row[0]!r} has {len(row)} cells, not {len(self.columns)}")

    def sources(self, options: Collection[str]) -> Mapping[str, Sequence[str]]:
        """Return what of ours stands beside the columns in an experiment with these options."""
        return next((self.beside[key] for key in (*options, ANY) if key in self.beside), {})

    def cells(self, column: str) -> list[str]:
        """Return the cells of a column as printed, one a row."""
        at = self.columns.index(column)
        return [row[at] for row in self.rows]


@dataclass(frozen=True)
class Reading:
    """Values read off a figure of a paper, for figures of ours whose names begin with `beside`:
    dashed lines upright at `x` and, on a corpus of `same`, level at `y`; a mark at so many `times`
    the run time of a language model, as {of: tta, words: 20, by: {reranking: 6.35}}.
    """

    paper: str
    figure: str
    beside: str
    text: str
    label: str  # the paper's
    cited: str
    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    times: dict | None = None
    same: list[str] = field(default_factory=list)
    uncertain: str = ""


def read_papers(path: Path) -> tuple[list[PaperTable], list[Reading]]:
    """Read tables and readings of papers, none of a file that is not there; UserError for what is
    none.
    """
    # which leaves figures as they are printed
    tree = yaml.load(read_bytes(path), yaml.BaseLoader) if path.exists() else {}
    papers, parts = PAPERS | tree.get("citations", {}), []
    for name, kind in (("tables", PaperTable), ("readings", Reading)):
        parts.append([])
        for i, entry in enumerate(tree.get(name, ())):
            where, paper = f"{path}: {name} {i}", entry.get("paper")
            if paper not in papers:
                raise UserError(f"{where}: paper {paper!r} is unknown; known: {', '.join(papers)}")
            cited = {"label": papers[paper]["label"], "cited": papers[paper]["text"]}
            parts[-1].append(build(kind, entry | cited, where))
    return parts[0], parts[1]


def read_options(home: Path) -> list[str]:
    """Return the values of the recipe's options that papers are told by: --pair, then --corpus."""
    every = [stage.get("options") or {} for stage in reversed(read_stages(home))]
    last = [next(filter(None, (o.get(n) for o in every)), "") for n in ("pair", "corpus")]
    return [value.rstrip("/").rpartition("/")[2] for value in last if value]


def add_readings(
    pictures: Sequence[Picture], readings: Sequence[Reading], options: Sequence[str], names: Names
) -> list[Picture]:
    """Return the figures, each with what is read off the papers' figures of the same."""
    drawn = []
    for picture in pictures:
        ours = [r for r in readings if f"{picture.name}-".startswith(f"{r.beside}-")]
        notes = []
        for reading in ours:
            unsure = f" Uncertain: {reading.uncertain}" if reading.uncertain else ""
            place = f"{reading.label}, Figure {reading.figure}"
            notes.append(f"[{place}: {reading.text}{unsure}]")
        caption = " ".join([picture.caption, *notes])
        draw = partial(draw_readings, picture.draw, ours, options, names)
        drawn.append(replace(picture, caption=caption, draw=draw) if ours else picture)
    return drawn


def draw_readings(
    draw: Callable[[Theme], Figure],
    readings: Sequence[Reading],
    options: Sequence[str],
    names: Names,
    theme: Theme,
) -> Figure:
    """Draw a figure, and lines and marks of readings on each panel; levels only where they compare,
    as far as the panel reaches.
    """
    figure, style = draw(theme), {"color": theme.ink, "zorder": 1.5}
    for reading, axes in ((reading, axes) for reading in readings for axes in figure.axes):
        paper = f"{reading.label} Figure {reading.figure}"
        for x in reading.x:
            axes.axvline(x, **style, **DASHED)
            place = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points"}
            turned = {"rotation": 90, "ha": "right", "va": "top", "fontsize": 8}
            text = f"{paper}: {x:g}"
            axes.annotate(text, (x, 0.98), (-3, 0), color=theme.ink, **place, **turned)
        low, high = axes.get_ylim()
        levels = reading.y if {*options} & {*reading.same} else ()
        for y in (y for y in levels if low < y < high):
            axes.axhline(y, **style, **DASHED)
            place = {"transform": axes.get_yaxis_transform(), "va": "bottom", "fontsize": 8}
            axes.text(0.01, y, f"{paper}: {y:g}", color=theme.ink, **place)
        if reading.times:
            draw_times(names, theme, axes, reading.times, paper=paper)
    return figure


def draw_times(names: Names, theme: Theme, axes, times: Mapping, paper: str) -> None:
    """Draw a mark at so many times the run time of a language model, at a length of sentences, in
    the panel of a task: where the other would stand by the paper.
    """
    label = names.label(times["of"])
    curve = next((line for line in axes.get_lines() if line.get_label() == label), None)
    factor = times["by"].get(axes.get_title("left") or axes.get_title())
    if curve is None or factor is None or len(curve.get_xdata()) < 2:
        return
    words, factor = float(times["words"]), float(factor)
    x, y = np.asarray(curve.get_xydata(), dtype=float).T
    if not x.min() <= words <= x.max():
        return
    time = float(np.exp(np.interp(words, x, np.log(y))))
    axes.plot([words, words], [time, factor * time], color=theme.ink, **DASHED)
    end = {"marker": "_", "markersize": 12, "markeredgewidth": 2, "linestyle": "none"}
    axes.plot([words], [factor * time], color=theme.ink, **end)
    place = {"xytext": (7, -2), "textcoords": "offset points", "ha": "left", "va": "top"}
    place["bbox"] = {"facecolor": theme.paper, "edgecolor": "none", "pad": 0.8}
    text = f"{paper}:\n{factor:g} x {names.short(times['of'])}"
    axes.annotate(text, (words, factor * time), color=theme.ink, fontsize=8, **place)
