"""Tables of papers with our figures beside theirs, and what both are of."""

from collections.abc import Iterator, Mapping, Sequence

from lmtools.report.cited import MARK, CitedRow, CitedTable, Source, read_cell
from lmtools.report.experiment import Experiment
from lmtools.report.page.table import NONE, Column, Table, decimal, ratio, table_of
from lmtools.report.tables.query import numbers, text_column

ORDER = "The corpora differ: figures of the two compare in order only, down a column."
QUOTED = "In brackets, on grey: the paper's own figures, not measured here"
UNITS = ((1e9, "B"), (1e6, "M"), (1e3, "k"))


def paper_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield each table of a paper that has a row beside which something was measured: all of its
    rows, in its order.
    """
    for cited in experiment.names.style.papers:
        sources = cited.sources(experiment.options)
        if sources and (ours := find_ours(experiment, cited, sources)):
            yield paper_table(experiment, cited, sources, ours)


def find_ours(
    experiment: Experiment, cited: CitedTable, sources: Mapping[str, Source]
) -> dict[CitedRow, str]:
    """Find the name of ours that stands beside each row that has one."""
    ours = {}
    for row in cited.rows:
        measured = (name for name in row.ours if list_measured(experiment, name, sources))
        if name := next(measured, None):
            ours[row] = name
    return ours


def list_measured(experiment: Experiment, name: str, sources: Mapping[str, Source]) -> list[Source]:
    """Return the sources of columns beside which something was measured of a row's name."""
    return [s for s in sources.values() if measure(experiment, name, s) is not None]


def measure(experiment: Experiment, name: str | None, source: Source | None) -> float | None:
    """Return our figure of a row's name beside a column; None where it was not measured."""
    if name is None or source is None:
        return None
    return experiment.quantity(source.quantity, source.form.format(name), source.place)


def paper_table(
    experiment: Experiment,
    cited: CitedTable,
    sources: Mapping[str, Source],
    ours: Mapping[CitedRow, str],
) -> Table:
    """Return one table of a paper, each column with ours to its right."""
    paper = experiment.names.style.citations[cited.paper]
    place = f"{paper.label} Table {cited.table}"
    names = list(map(ours.get, cited.rows))
    columns = [Column(cited.heading, [row.label for row in cited.rows])]
    forms = [name and list_measured(experiment, name, sources)[0].form for name in names]
    printed = [
        form and experiment.label(form.format(n)) for n, form in zip(names, forms, strict=True)
    ]
    columns.append(text_column("here", printed))
    for header in cited.columns:
        source = sources.get(header)
        values = [measure(experiment, name, source) for name in names]
        theirs, cells = print_columns(cited, header, source, values)
        columns.append(Column(f"{place}, {cited.corpus}: {header}", theirs, quoted=True))
        quantity, on, form = source or ("score", "", "{}")
        form = form.replace("{}", "").removeprefix("-")
        facts = filter(None, ("" if quantity == "score" else quantity, on, form))
        columns.append(Column(f"here: {', '.join(facts)}" if source else "", cells))
    title = f"Beside {place}: {cited.title}" + (f", {cited.only}" if cited.only else "")
    return table_of(title, columns, list_notes(experiment, cited, ours), part="papers", left=2)


def print_columns(
    cited: CitedTable, header: str, source: Source | None, values: Sequence[float | None]
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the cells of a column and ours beside them: with as many decimals, or in times those
    of a row.
    """
    cells = cited.cells(header)
    digits = max((len(cell.rstrip(MARK).partition(".")[2]) for cell in cells), default=0)
    if base := cited.ratio.get(header):
        at = [row.label for row in cited.rows].index(base)
        pair = list(map(read_cell, cells)), values
        times = ([ratio(value, column[at]) for value in column] for column in pair)
        theirs, ours = (numbers("", column, "{:.2f} x").cells for column in times)
        return theirs, ours
    if source and source.quantity == "parameters":
        return cells, [amount(value) for value in values]
    return cells, [decimal(value, digits) for value in values]


def amount(value: float | None) -> str:
    """Return a number of parameters or tokens in three digits, as in 1.94B."""
    if value is None:
        return NONE
    unit, letter = next(((unit, letter) for unit, letter in UNITS if value >= unit), (1, ""))
    return f"{value / unit:.3g}{letter}"


def list_notes(
    experiment: Experiment, cited: CitedTable, ours: Mapping[CitedRow, str]
) -> Iterator[str]:
    """Yield notes on the origin of the paper's figures and of ours, whether they compare, and what
    is uncertain.
    """
    paper = experiment.names.style.citations[cited.paper]
    yield f"{QUOTED}: {paper.text}, Table {cited.table}. {cited.theirs}"
    names = dict.fromkeys(lm for name in ours.values() for lm in experiment.models_in(name))
    sizes = filter(None, (describe_size(experiment, name) for name in names))
    yield f"Here: {'; '.join([experiment.extent, *sizes])}."
    if not experiment.options & set(cited.same):
        yield ORDER
    if cited.uncertain:
        marked = any(cell.endswith(MARK) for row in cited.rows for cell in row.cells)
        yield f"Uncertain{' (?)' if marked else ''}: {cited.uncertain}"


def describe_size(experiment: Experiment, name: str) -> str:
    """Return the size of a language model and of its training, as far as they are known."""
    config = experiment.configs.get(name, {})
    lines = (line for line in reversed(experiment.learning.get(name, ())) if "tokens" in line)
    tokens = next(lines, config).get("tokens")
    parameters = experiment.quantity("parameters", name, "")
    kind = "n-grams" if config.get("kind") == "ngram" else "parameters"
    facts = [
        f"{amount(parameters)} {kind}" if parameters else "",
        f"{amount(tokens)} training tokens" if tokens else "",
    ]
    known = ", ".join(filter(None, facts))
    return f"{experiment.names.lms.short(name)} {known}" if known else ""
