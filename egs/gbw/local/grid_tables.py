#!/usr/bin/env python3
"""grid_tables.py EXP REPORT.yaml PAPERS.yaml: tables and figures like those of Dauphin et al. 2017,
added to the report of EXP: the grids that run_grids.sh trained (EXP/grids; Figures 3-6), throughput
and responsiveness (EXP/bench/lm.json of benchmarks/bench.py lm; Figure 2, Table 4).
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import exp, inf
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from lmtools.base.config import load_yaml
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.seal import read_json
from lmtools.report import add_part
from lmtools.report.artifacts import PPL_SHAPE, read_by_set, read_configs, read_learning
from lmtools.report.drawing import (
    EDGE,
    PLAIN,
    ROUND,
    Picture,
    Theme,
    chart,
    end_panel,
    plain_ticks,
    show_ppl,
    write_right_of,
)
from lmtools.report.lms import (
    KINDS,
    LEFT_TO_RIGHT,
    SHORT,
    curve_pictures,
    list_unequal,
    perplexities,
)
from lmtools.report.models import HUGE, OTHER, TEST, VALID, Model, list_rules, models_of, sets
from lmtools.report.rows import FigureRows
from lmtools.report.style import Look, Names, load_style
from lmtools.report.table import (
    Column,
    Query,
    Table,
    decimal,
    figures,
    numbers,
    table_of,
    text_column,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "utils/papers"))

from quoted import add_readings, read_options, read_papers

CURVES, LINE = "curves", "line"
SPEEDS = ("throughput", "responsiveness", "contiguous")
MILESTONE = (
    "Updates to a valid perplexity: the first validation that reached what the weakest of the drawn"
    " runs came to."
)
TABLE_4 = "The GCNN paper's responsiveness is that of one long sequence (contiguous; Table 4)."
MULTIPLY_ADDS = {
    "multiply-adds a token (M)": "flops",
    "without the output layer (M)": "flops_hidden",
}
TOOK = {"training seconds": ("seconds", 0), "training tokens/s": ("tokens a second", 0)}
WORK = (
    "against the multiply-adds that a token takes in scoring, output layer included; the number is"
    f" the perplexity (compare Figure 2 of the GCNN paper). {EDGE}"
)
SPEED = (
    "throughput of a batch of sequences, responsiveness of one sequence at a time (compare Table 4"
    " of the GCNN paper). Equal lengths are equal factors; lines span the turns."
)


@dataclass(frozen=True)
class Grid:
    """Runs that differ in one thing: `runs` are models by their label in print, `at` the value of
    each on the axis `x` (of lines), `extra` the names of those that were trained for it alone, `of`
    the groups of those of which the best is drawn.
    """

    name: str
    title: str
    figure: str  # curves or line
    x: str
    runs: Mapping[str, Model]
    at: Mapping[str, float] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    of: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> dict[str, str]:
        """The label of the best run on valid, by what is drawn: a group, or a run of none."""
        labels: dict[str, str] = {}
        for label, model in self.runs.items():
            group = self.of.get(label, label)
            first = self.runs[labels.setdefault(group, label)]
            if (model.ppl(VALID) or inf) < (first.ppl(VALID) or inf):
                labels[group] = label
        return labels

    @property
    def drawn(self) -> "Grid":
        """The grid of the best runs alone, under their groups' labels."""
        runs = {group: self.runs[label] for group, label in self.best.items()}
        at = {group: self.at[label] for group, label in self.best.items() if label in self.at}
        return replace(self, runs=runs, at=at, of={})

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of perplexity of its runs: a single kind, unless runs differ in it."""
        kinds = dict.fromkeys(model.kind for model in self.runs.values() if model.figures)
        return list(kinds) or ["perplexity"]

    @property
    def text(self) -> str:
        """The set that its figure speaks of."""
        return next((name for name in sets(self.runs.values()) if name != VALID), VALID)

    @property
    def is_scale(self) -> bool:
        """Return whether the labels of all runs are the values at which they stand."""
        return self.figure == LINE and all(
            label in self.at and label == f"{self.at[label]:g}" for label in self.runs
        )

    @property
    def milestone(self) -> float | None:
        """Return the perplexity that all drawn learning curves reached, by the weakest."""
        drawn = self.drawn.runs.values()
        ends = [min((ppl for _, ppl in list_validations(model)), default=None) for model in drawn]
        curves = self.figure == CURVES and len(self.kinds) == 1
        return max(ends) if curves and None not in ends else None


@dataclass(frozen=True)
class Compared:
    """What is compared in an experiment: the rows of its report, its models, grids, and what
    bench.py wrote.
    """

    rows: FigureRows
    names: Names
    models: Mapping[str, Model]
    grids: Sequence[Grid]
    bench: Mapping

    def query(self, models: Iterable[Model]) -> Query:
        """Return a query of the rows of these models."""
        return Query(self.rows, "lm", [model.name for model in models])


def read_compared(home: Path, names: Names) -> Compared:
    """Read what is compared in `home`; say which runs of grids are not there."""
    parts = {"configs": read_configs(home), "learning": read_learning(home)}
    models = models_of(names, parts | {"ppl": read_by_set("ppl", PPL_SHAPE, home)})
    paths = sorted(home.glob("grids/*.yaml"))
    grids, missing = grids_of({path: load_yaml(path) for path in paths}, models)
    print("".join(f"{line}\n" for line in missing), end="", file=sys.stderr)
    bench = home / "bench/lm.json"
    tree = read_json(bench) if bench.exists() else {"rows": ()}
    return Compared(FigureRows.read(home / "report/rows.csv"), names, models, grids, tree)


def list_validations(model: Model) -> list[tuple[int, float]]:
    """Return updates and perplexity of a prediction at each validation, as far as it is finite."""
    losses = [(line["step"], line.get("valid_loss", HUGE)) for line in model.lines]
    return [(step, exp(loss)) for step, loss in losses if loss < HUGE]


def grids_of(
    trees: Mapping[Path, Mapping], models: Mapping[str, Model]
) -> tuple[list[Grid], list[str]]:
    """Return the grids with those of their runs that are among `models`, and a line for each grid
    with runs that are not.
    """
    grids, missing = [], []
    for path, tree in trees.items():
        runs, figure = tree.get("runs"), tree.get("figure", CURVES)
        if not isinstance(runs, dict) or not runs:
            raise UserError(
                f"{path}: has no `runs: {{LABEL: NAME, ...}}`; let the recipe write it again"
            )
        if figure not in (CURVES, LINE):
            raise UserError(f"{path}: figure is {figure!r}; expected {CURVES} or {LINE}")
        names = {str(label): str(name) for label, name in runs.items()}
        known = {label: models[name] for label, name in names.items() if name in models}
        if lost := [name for name in names.values() if name not in models]:
            missing.append(
                f"{path.parents[1]}/lm/{', '.join(lost)}: absent, so {path.name} is compared"
                " without (run the recipe's training stage)"
            )
        if known:
            grid = Grid(
                path.stem,
                tree.get("title") or path.stem,
                figure,
                tree.get("x") or path.stem,
                runs=known,
                at=positions(path, known, tree.get("at") or {}) if figure == LINE else {},
                extra=tuple(tree.get("own") or ()),
                of={str(label): str(group) for label, group in (tree.get("of") or {}).items()},
            )
            grids.append(grid)
    # curves first: their figures are as wide as the page
    return sorted(grids, key=lambda grid: grid.figure == LINE), missing


def positions(path: Path, labels: Iterable[str], at: Mapping) -> dict[str, float]:
    """Return the places of the runs on the axis: the value in `at`, or the label where that is a
    number; the others have none.
    """
    given = {str(label): value for label, value in at.items()}
    places = {}
    for label in labels:
        try:
            places[label] = float(given.get(label, label))
        except (TypeError, ValueError):
            if label in given:
                raise UserError(
                    f"{path}: at: {label!r} stands at {given[label]!r}; give a number"
                ) from None
    return places


def bench_tables(compared: Compared) -> Iterator[Table]:
    """Yield throughput and responsiveness, with the output layer, of what was trained here and of
    published sizes (GCNN Table 4).
    """
    models, bench = compared.models, compared.bench
    groups = {"Throughput and responsiveness": True}
    groups["Throughput and responsiveness of random models"] = False
    for title, trained in groups.items():
        if rows := [row for row in bench["rows"] if (row["name"] in models) == trained]:
            base = next((row for row in rows if row.get("model") == "lstm"), None)
            columns = bench_columns(compared, rows, base)
            notes = bench_notes(compared, rows, base)
            yield table_of(title, columns, notes, left=2)


def bench_columns(compared: Compared, rows: Sequence, base) -> Iterator[Column]:
    """Yield sizes, then for each of SPEEDS the tokens a second and how many times those of the row
    `base` they are.
    """
    models, families = compared.models, compared.names.style.families
    yield Column("LM", [title_of(compared, row["name"]) for row in rows])
    kinds = [row.get("model") for row in rows]
    yield text_column("family", [families[k].label if k in families else k for k in kinds])
    sizes = {name: model.parameters for name, model in models.items()}
    yield figures(
        "parameters", [row.get("parameters") or sizes.get(row["name"]) for row in rows], 0
    )
    for header, key in MULTIPLY_ADDS.items():
        values = [row[key] / 1e6 if row.get(key) is not None else None for row in rows]
        yield figures(header, values, 1 if min(filter(None, values), default=1) >= 1 else 4)
    for key in SPEEDS:
        rates = [median(row, key) for row in rows]
        digits = 0 if max(filter(None, rates), default=0) >= 1000 else 1
        yield figures(f"{key}, tokens/s", rates, digits, sign=-1)
        if base and (rate := median(base, key)):
            yield numbers("x LSTM", [value and value / rate for value in rates], "{:.3g}")


def bench_notes(compared: Compared, rows: Sequence, base) -> Iterator[str]:
    """Yield notes on what was measured, and on which machine."""
    bench = compared.bench
    first, turns = rows[0], [len((row.get("throughput") or {}).get("values", ())) for row in rows]
    batch, length = (bench.get(key, first.get(key, "?")) for key in ("batch", "length"))
    long = bench.get("contiguous", first.get("contiguous_length"))
    sequence = f"; contiguous: one sequence of {long:,} tokens" if isinstance(long, int) else ""
    yield (
        f"Throughput: {batch} sequences of {length} tokens in one batch; responsiveness: one such"
        f" sequence at a time{sequence}. All with the log-probability of every word; medians of"
        f" {max(turns)} turns."
    )
    if base:
        yield f"x LSTM: how many times as fast as {compared.names.label(base['name'])}."
    facts = "".join(
        f"; {key} {bench[key]}" for key in ("threads", "device", "precision") if key in bench
    )
    yield f"Machine: {bench.get('machine', 'unknown')}{facts}."
    yield TABLE_4


def title_of(compared: Compared, name: str) -> str:
    """Return the printed name of a model: of a run of a grid its label, which is called after the
    grid where it is a value.
    """
    titles = {
        model.name: f"{grid.name} {label}" if label in grid.at else label
        for grid in compared.grids
        for label, model in grid.runs.items()
    }
    return titles.get(name) or compared.names.label(name)


def median(row: Mapping, key: str) -> float | None:
    """Return the median tokens a second of a row of the bench; None where it has none."""
    return (row.get(key) or {}).get("median")


def grid_tables(compared: Compared) -> Iterator[Table]:
    """Yield one table a grid: what each run reached and took."""
    for grid in compared.grids:
        models = list(grid.runs.values())
        notes = (
            *(KINDS[kind] for kind in grid.kinds if kind in KINDS),
            *([MILESTONE] if grid.milestone else []),
            *list_unequal(models),
            *list_rules(models),
        )
        columns = grid_columns(compared, grid, models)
        yield table_of(grid.title, columns, notes, left=2)


def grid_columns(compared: Compared, grid: Grid, models: Sequence[Model]) -> Iterator[Column]:
    """Yield the columns of a grid; no best run where the kinds of perplexity differ."""
    mixed, query = len(grid.kinds) > 1, compared.query(models)
    yield Column(grid.x if grid.is_scale else "run", list(grid.runs))
    yield text_column("kind", [model.kind if mixed else None for model in models])
    if grid.figure == LINE and not grid.is_scale:
        digits = max((len(f"{at:g}".partition(".")[2]) for at in grid.at.values()), default=0)
        yield figures(grid.x, [grid.at.get(label) for label in grid.runs], digits)
    if grid.of:
        groups = {label: group for group, label in grid.best.items()}
        yield text_column("best on valid of", [groups.get(label) for label in grid.runs])
    yield query.column("parameters", "parameters", digits=0)
    yield query.column("updates", "updates", digits=0)
    if len(set(query.values("epochs"))) > 1:  # of runs that stopped when they had converged
        yield query.column("epochs", "epochs", digits=0)
    for name in sets(models):
        header = f"{name} ppl" if mixed else f"{name} {SHORT.get(grid.kinds[0], 'ppl')}"
        yield perplexities(header, models, name, 0 if mixed else 1)
    if goal := grid.milestone:
        reached = [
            [step for step, ppl in list_validations(model) if ppl <= goal] for model in models
        ]
        steps = [next(iter(steps), None) for steps in reached]
        yield figures(f"updates to valid {goal:.1f}", steps, 0, sign=1)
    yield from query.columns(TOOK)


def work_pictures(compared: Compared) -> Iterator[Picture]:
    """Yield perplexity against multiply-adds a token, one point a left-to-right model (GCNN Figure
    2).
    """
    models = [model for model in compared.models.values() if model.kind == LEFT_TO_RIGHT]
    text = TEST if any(model.ppl(TEST) for model in models) else VALID
    work = {row["name"]: row.get("flops") for row in compared.bench["rows"]}
    points = {
        model: (work[model.name] / 1e6, ppl)
        for model in models
        if work.get(model.name) and (ppl := model.ppl(text))
    }
    if len(points) > 1:
        names = {model: title_of(compared, model.name) for model in points}
        pairs = [f"{names[m]} {at:,.4g} M and {show_ppl(ppl)}" for m, (at, ppl) in points.items()]
        yield Picture(
            "work",
            f"Word perplexity on {text} {WORK}",
            f"Multiply-adds a token and perplexity on {text}: {', '.join(pairs)}.",
            partial(draw_work, points, names, text),
        )


def draw_work(points: Mapping, names: Mapping[Model, str], text: str, theme: Theme) -> Figure:
    """Draw a labelled point a model."""
    y = f"word perplexity on {text} (log scale)"
    figure, axes = chart((6.6, max(4.4, 0.37 * len(points))), "million multiply-adds a token", y)
    panel = end_panel(axes, theme, [ppl for _, ppl in points.values()], 1, steps=ROUND)
    widen(axes, [at for at, _ in points.values()])
    for model, (at, ppl) in points.items():
        panel.line(model.shown.look, names[model], [at], [ppl])
    panel.write()
    return figure


def widen(axes, values: Sequence[float], ticks: bool = False) -> None:
    """Start an axis at 0, or make it logarithmic for values of different orders; with `ticks` each
    value has its tick.
    """
    low, high = min(values), max(values)
    if low > 0 and high > 8 * low:
        margin = (high / low) ** 0.06
        axes.set_xscale("log")
        axes.set_xlim(low / margin, high * margin)
        plain_ticks(axes.xaxis)
    else:
        axes.set_xlim(min(0, 1.06 * low), 1.06 * high)
        axes.xaxis.set_major_formatter(PLAIN)
    if ticks:
        axes.xaxis.set_major_locator(FixedLocator(sorted(set(values))))
        axes.xaxis.set_minor_locator(NullLocator())


def grid_pictures(compared: Compared) -> Iterator[Picture]:
    """Yield for each grid its learning curves (Figures 3, 5, 6) or its line (Figure 4, and the
    sizes of piece vocabularies).
    """
    for grid in compared.grids:
        best = "; ".join(grid.best.values())
        note = f" Of the runs of a group the best on valid is drawn: {best}." if grid.of else ""
        if grid.figure == CURVES:
            drawn, runs = grid.drawn.runs, compared.names.style.runs
            yield from curve_pictures(drawn, grid.title, f"grid-{grid.name}", runs, note)
        else:
            yield from line_pictures(compared, grid.drawn, note)


def line_pictures(compared: Compared, grid: Grid, note: str) -> Iterator[Picture]:
    """Yield perplexity over the value that the runs differ in: a line a series, and level lines for
    runs without such a value; the caption ends with `note`.
    """
    text, kind = grid.text, grid.kinds[0]
    ppl = {label: model.ppl(text) for label, model in grid.runs.items() if model.ppl(text)}
    series, level = split(grid, ppl)
    if series:
        values = [f"{label} {show_ppl(value)}" for label, value in ppl.items()]
        dashed = f" Dashed: {', '.join(level)}, which the axis does not apply to." if level else ""
        yield Picture(
            f"grid-{grid.name}",
            f"{grid.title}: word {kind} on {text} by {grid.x}; the number is that of the last"
            f" point.{dashed}{note}",
            f"{grid.title}, {kind} on {text}: {', '.join(values)}.",
            partial(draw_line, compared.names.style.runs, grid, series, level),
        )


def split(grid: Grid, ppl: Mapping[str, float]) -> tuple[dict[str, list], dict[str, float]]:
    """Return points (value, perplexity) by series, and the perplexities of runs with no place on
    the axis.

    A series is what labels have in common without their value: `bpe-500` and `bpe-1000` are of
    `bpe`.
    """
    series: dict[str, list[tuple[float, float]]] = {}
    for label, value in ppl.items():
        if label in grid.at:
            series.setdefault(stem(label, grid.at[label]), []).append((grid.at[label], value))
    level = {label: value for label, value in ppl.items() if label not in grid.at}
    return {name: sorted(points) for name, points in series.items()}, level


def stem(label: str, value: float) -> str:
    """Return `label` without the last `value` in it; nothing where it has none."""
    number = rf"(?<![\d.]){re.escape(f'{value:.15g}')}(?:\.0+)?(?![\d.])"
    places = [match.span() for match in re.finditer(number, label)]
    return (label[: places[-1][0]] + label[places[-1][1] :]).strip(" -_,:=@") if places else ""


def draw_line(
    runs: Sequence[Look], grid: Grid, series: Mapping, level: Mapping[str, float], theme: Theme
) -> Figure:
    """Draw a line a series and a dashed level line a run without a value."""
    figure, axes = chart((6.6, 4.4), grid.x, f"word {grid.kinds[0]} on {grid.text} (log scale)")
    points = [point for values in series.values() for point in values]
    panel = end_panel(axes, theme, [*(ppl for _, ppl in points), *level.values()], 1, steps=ROUND)
    widen(axes, [at for at, _ in points], ticks=True)
    looks, edge = iter(runs), panel.edge
    for name, values in series.items():
        look, (x, y) = next(looks), np.array(values).T
        panel.mark(look, x, np.minimum(y, edge))
        text = f"{name}  {show_ppl(y[-1])}".strip()
        panel.labels.append((look, x[-1], min(y[-1], edge), text))
    for label, ppl in level.items():
        look, y = next(looks), ppl if ppl <= panel.top else edge
        axes.axhline(y, color=theme.color(look), linestyle="--", linewidth=1.3)
        panel.labels.append((look, axes.get_xlim()[1], y, f"{label}  {show_ppl(ppl)}"))
    panel.write()
    return figure


def speed_pictures(compared: Compared) -> Iterator[Picture]:
    """Yield throughput and responsiveness of each model, as bars (GCNN Table 4)."""
    bench = compared.bench
    rows = [row for row in bench["rows"] if any(median(row, key) for key in SPEEDS[:2])]
    if rows:
        names = [title_of(compared, row["name"]) for row in rows]
        throughput, responsiveness = (
            ", ".join(
                f"{n} {show_rate(median(row, key))}" for n, row in zip(names, rows, strict=True)
            )
            for key in SPEEDS[:2]
        )
        yield Picture(
            "speed",
            f"Tokens a second in scoring, {bench.get('threads', '?')} thread(s),"
            f" {bench.get('device', 'device unknown')}, {bench.get('machine', 'machine unknown')}:"
            f" {SPEED}",
            f"Throughput in tokens a second: {throughput}. Responsiveness: {responsiveness}.",
            partial(draw_speed, names, rows, [find_look(compared, row) for row in rows]),
            wide=True,
        )


def find_look(compared: Compared, row: Mapping) -> Look:
    """Return the look of a row's model: of its family, known by its own directory or by what the
    bench calls it.
    """
    if row["name"] in compared.models:
        return compared.models[row["name"]].shown.look
    families = compared.names.style.families
    return families[row.get("model") if row.get("model") in families else OTHER].look


def draw_speed(
    names: Sequence[str], rows: Sequence[Mapping], looks: Sequence[Look], theme: Theme
) -> Figure:
    """Draw a panel of bars a speed."""
    figure = Figure((10, 1.2 + 0.34 * len(rows)))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, key in zip(panels, SPEEDS[:2], strict=True):
        rates = [median(row, key) for row in rows]
        low, high = (pick(filter(None, rates), default=1) for pick in (min, max))
        start = 10 ** np.floor(np.log10(low / 1.2))
        axes.set_xscale("log")
        axes.set_xlim(start, high * (high / start) ** 0.22)  # room for the figures
        plain_ticks(axes.xaxis, LogLocator(subs=(1,) if high > 100 * start else (1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        for y, (row, value, look) in enumerate(zip(rows, rates, looks, strict=True)):
            if value:
                axes.barh(y, value - start, left=start, height=0.6, color=theme.color(look))
                turns = (row[key] or {}).get("values") or [value]
                span = {"color": theme.ink, "linewidth": 1.2, "solid_capstyle": "butt"}
                axes.plot([min(turns), max(turns)], [y, y], **span)
                box = {"facecolor": theme.paper, "edgecolor": "none", "pad": 0.8}
                write_right_of(axes, (max(value, *turns), y), show_rate(value), bbox=box)
        axes.set_title(key)
        axes.set_xlabel("tokens a second (log scale)")
        axes.grid(axis="y", visible=False)
    panels[0].set_yticks(range(len(rows)), names)
    panels[0].invert_yaxis()
    return figure


def show_rate(value: float | None) -> str:
    """Return a rate in tokens a second."""
    return decimal(value, 0 if value and value >= 100 else 1)


def main(home: str, conf: str, papers: str) -> None:
    """Add tables and figures to the report of `home`."""
    names = Names(load_style(Path(conf)))
    compared = read_compared(Path(home), names)
    readings, options = read_papers(Path(papers))[1], read_options(Path(home))
    pictures = [*work_pictures(compared), *speed_pictures(compared)]
    pictures = add_readings(pictures, readings, options, names)
    add_part(home, "speed", "Speed", list(bench_tables(compared)), pictures)
    pictures = add_readings(list(grid_pictures(compared)), readings, options, names)
    add_part(home, "grids", "One thing varied", list(grid_tables(compared)), pictures)


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
