#!/usr/bin/env python3
"""paper_tables.py EXP REPORT.yaml [PAPERS.yaml]: adds run time to the end of the report that
`lmtools report --conf REPORT.yaml` wrote to EXP/report, if EXP/bench/speed.json has it
(benchmarks/bench.py score), and tables of papers with our figures beside theirs, by its rows.csv.
quoted.py says what PAPERS.yaml is; without it, and without `papers: PAPERS.yaml` in REPORT.yaml,
nothing is quoted.
"""

import html
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from quoted import MARK, PaperTable, add_readings, read_options, read_papers
from run_times import Speed, speed_picture, speed_tables

from lmtools.base.errors import exit_with_message
from lmtools.base.seal import read_json
from lmtools.report import PAPERS, add_part
from lmtools.report.artifacts import read_configs, read_learning
from lmtools.report.rows import FigureRows
from lmtools.report.style import FIRST, Names, load_style
from lmtools.report.table import NONE, Column, Table, decimal, numbers, ratio, table_of, text_column

ORDER = "The corpora differ: figures of the two compare in order only, down a column."
QUOTED = "In brackets, on grey: the paper's own figures, not measured here"
UNITS = ((1e9, "B"), (1e6, "M"), (1e3, "k"))
LM = {  # quantities of language models, as rows.csv calls them
    "ppl": "word_ppl",
    "sentence-mean": "sentence_ppl_mean",
    "sentence-median": "sentence_ppl_median",
    "time": "milliseconds a step",
    "parameters": "parameters",
}


class Measured:
    """What was measured in an experiment, by the rows of its report."""

    def __init__(self, home: Path, conf: Path):
        self.style = load_style(conf)
        self.names, self.rows = Names(self.style), FigureRows.read(home / "report/rows.csv")
        self.options, self.configs, self.learning = (
            read_options(home),
            read_configs(home),
            read_learning(home),
        )
        bench = home / "bench/lm.json"
        self.bench = read_json(bench) if bench.exists() else {"rows": ()}
        systems = [row for row in self.rows.every if row.kind in ("system", "vectors")]
        self.labels = {row.name: row.label for row in systems}
        self.lms = {row.name: row.lms.split() for row in systems}
        first = next((row for row in self.rows.every if row[:2] == ("system", FIRST)), None)
        self.metric = first and first.quantity
        paragraphs = (home / "report/RESULTS.md").read_text().split("\n\n")
        self.extent = html.unescape(paragraphs[2].replace("\\*", "*")).removesuffix(".")

    def find(self, name: str, source: Sequence[str] | None) -> float | None:
        """Return our figure of a name beside a column; None where it was not measured."""
        if not (name and source):
            return None
        quantity, place, ending = (*source, "", "")[:3]
        name += ending
        if quantity == "score":
            return self.metric and self.rows.value("system", name, self.metric, place)
        if quantity in LM:
            return self.rows.value("lm", name, LM[quantity], place)
        if quantity in ("context", "embed"):
            key = ("vectors", name, place, "pearson")
            layers = {row.at: row.value for row in self.rows.every if row[:4] == key}
            at = 0 if quantity == "embed" else max(layers, default=0) or None
            return layers.get(at)
        device = str(self.bench.get("device", "")).startswith(place)
        rows = (row for row in self.bench["rows"] if device and row["name"] == name)
        return next(((row.get(quantity) or {}).get("median") for row in rows), None)

    def describe(self, name: str) -> str:
        """Return the size of a language model and of its training, as far as they are known."""
        config = self.configs.get(name, {})
        lines = (line for line in reversed(self.learning.get(name, ())) if "tokens" in line)
        tokens, parameters = next(lines, config).get("tokens"), self.find(name, ["parameters"])
        kind = "n-grams" if config.get("kind") == "ngram" else "parameters"
        facts = [f"{amount(parameters)} {kind}"] if parameters else []
        facts += [f"{amount(tokens)} training tokens"] if tokens else []
        return f"{self.names.short(name)} {', '.join(facts)}" if facts else ""


def paper_tables(measured: Measured, tables: Sequence[PaperTable]) -> Iterator[Table]:
    """Yield each table that has a row beside which something was measured, all of its rows."""
    for table in tables:
        sources, ours = table.sources(measured.options), []
        for row in table.rows:
            known = [n for n in row[1].split() if list_found(measured, n, sources)]
            ours.append(known[0] if known else None)
        if any(ours):
            yield paper_table(measured, table, sources, ours)


def list_found(measured: Measured, name: str, sources: Mapping) -> list[Sequence[str]]:
    """Return the sources of columns beside which something was measured of a name."""
    return [s for s in sources.values() if measured.find(name, s) is not None]


def paper_table(
    measured: Measured, table: PaperTable, sources: Mapping, ours: Sequence[str | None]
) -> Table:
    """Return one table of a paper, each column with ours to its right."""
    full = [n and n + (*list_found(measured, n, sources)[0], "", "")[2] for n in ours]
    here = [name and (measured.labels.get(name) or measured.names.label(name)) for name in full]
    columns = [Column(table.columns[0], [row[0] for row in table.rows]), text_column("here", here)]
    place = f"{table.label} Table {table.table}"
    for header in table.columns[2:]:
        source = sources.get(header)
        values = [measured.find(name, source) for name in ours]
        theirs, cells = print_columns(table, header, source, values)
        columns.append(Column(f"{place}, {table.corpus}: {header}", theirs, quoted=True))
        quantity, on, ending = (*(source or ("score",)), "", "")[:3]
        facts = filter(None, ("" if quantity == "score" else quantity, on, ending.lstrip("-")))
        columns.append(Column(f"here: {', '.join(facts)}" if source else "", cells))
    title = f"Beside {place}: {table.title}" + (f", {table.only}" if table.only else "")
    notes = list_notes(measured, table, [name for name in ours if name])
    return table_of(title, columns, notes, part="papers", left=2)


def print_columns(
    table: PaperTable, header: str, source: Sequence[str] | None, values: Sequence[float | None]
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the cells of a column and ours beside them: with as many decimals, or in times those
    of a row.
    """
    cells = table.cells(header)
    if header in table.ratio:
        at = table.cells(table.columns[0]).index(table.ratio[header])
        pair = [read_cell(cell) for cell in cells], values
        theirs, ours = ([ratio(value, column[at]) for value in column] for column in pair)
        return numbers("", theirs, "{:.2f} x").cells, numbers("", ours, "{:.2f} x").cells
    printed = [cell or NONE for cell in cells]
    if source and source[0] == "parameters":
        return printed, [NONE if value is None else amount(value) for value in values]
    digits = max((len(cell.rstrip(MARK).partition(".")[2]) for cell in cells), default=0)
    return printed, [decimal(value, digits) for value in values]


def read_cell(cell: str) -> float | None:
    """Read the number in a cell as printed; None where it holds none."""
    try:
        return float(cell.removesuffix(MARK).replace(",", ""))
    except ValueError:
        return None


def amount(value: float) -> str:
    """Return a number of parameters or tokens in three digits, as in 1.94B."""
    unit, letter = next(((unit, letter) for unit, letter in UNITS if value >= unit), (1, ""))
    return f"{value / unit:.3g}{letter}"


def list_notes(measured: Measured, table: PaperTable, ours: Sequence[str]) -> Iterator[str]:
    """Yield notes on the origin of the paper's figures and of ours, whether they compare, and what
    is uncertain.
    """
    yield f"{QUOTED}: {table.cited}, Table {table.table}. {table.theirs}"
    lms = dict.fromkeys(lm for name in ours for lm in measured.lms.get(name, [name]))
    sizes = filter(None, map(measured.describe, lms))
    yield f"Here: {'; '.join([measured.extent, *sizes])}."
    if not {*measured.options} & {*table.same}:
        yield ORDER
    if table.uncertain:
        marked = any(cell.endswith(MARK) for row in table.rows for cell in row[2:])
        yield f"Uncertain{' (?)' if marked else ''}: {table.uncertain}"


def main(home: Path, conf: Path, papers: Path | None = None) -> None:
    """Add run time, and the tables of the papers, to the report in `home`."""
    measured = Measured(home, conf)
    papers = papers or measured.style.papers
    tables, readings = read_papers(papers) if papers else ([], [])
    path = home / "bench/speed.json"
    if path.exists():
        speed = Speed(read_json(path), measured.names)
        pictures = [speed_picture(speed)]
        pictures = add_readings(pictures, readings, measured.options, measured.names)
        add_part(home, "speed", "Run time", list(speed_tables(speed)), pictures)
    add_part(home, PAPERS, "Beside the papers", list(paper_tables(measured, tables)))


if __name__ == "__main__":
    with exit_with_message():
        main(*map(Path, sys.argv[1:]))
