"""Tables of papers with our figures beside theirs, and what both are of."""

from collections.abc import Iterator, Mapping

from lmtools.report.experiment import Experiment
from lmtools.report.page.columns import NONE, Column, decimal, table_of
from lmtools.report.page.table import Table
from lmtools.report.papers.cited import MARK, CitedRow, CitedTable, Source, read_cell

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
    found = {}
    for row in cited.rows:
        for name in row.ours:
            if any(measure(experiment, name, source) is not None for source in sources.values()):
                found[row] = name
                break
    return found


def measure(experiment: Experiment, name: str | None, source: Source) -> float | None:
    """Return our figure of a row's name beside a column; None where it was not measured."""
    quantity, place, form = source
    return None if name is None else experiment.quantity(quantity, form.format(name), place)


def paper_table(
    experiment: Experiment,
    cited: CitedTable,
    sources: Mapping[str, Source],
    ours: Mapping[CitedRow, str],
) -> Table:
    """Return one table of a paper, each column with ours to its right."""
    paper = experiment.names.style.citations[cited.paper]
    place = f"{paper.label} Table {cited.table}"
    columns = [Column("here", [label(experiment, sources, ours.get(row)) for row in cited.rows])]
    for header in cited.columns:
        known = sources.get(header)
        values = [
            measure(experiment, ours.get(row), known) if known else None for row in cited.rows
        ]
        theirs, mine = printed(cited, header, known, values)
        columns.append(Column(f"{place}, {cited.corpus}: {header}", theirs, quoted=True))
        columns.append(Column(f"here: {said(known)}" if known else "", mine))
    only = f", {cited.only}" if cited.only else ""
    return table_of(
        f"Beside {place}: {cited.title}{only}",
        cited.heading,
        [row.label for row in cited.rows],
        columns,
        list(notes(experiment, cited, ours)),
        "papers",
        text=1,
    )


def label(experiment: Experiment, sources: Mapping[str, Source], name: str | None) -> str:
    """Return the printed name of what stands beside a row: of the forms of its name the first that
    something was measured of.
    """
    if name is None:
        return NONE
    known = [one for one in sources.values() if measure(experiment, name, one) is not None]
    return experiment.label(known[0].form.format(name))


def said(source: Source) -> str:
    """Return the header of a column of our figures."""
    kind = "" if source.quantity == "score" else source.quantity
    form = source.form.replace("{}", "").removeprefix("-")
    return ", ".join(filter(None, (kind, source.place, form)))


def printed(
    cited: CitedTable, header: str, source: Source | None, values: list[float | None]
) -> tuple[list[str], list[str]]:
    """Return the cells of a column and ours beside them: with as many decimals, or in times those
    of a row.
    """
    cells = cited.cells(header)
    digits = max((len(cell.rstrip(MARK).partition(".")[2]) for cell in cells), default=0)
    if base := cited.ratio.get(header):
        at = [row.label for row in cited.rows].index(base)
        theirs = [read_cell(cell) for cell in cells]
        return times(theirs, theirs[at]), times(values, values[at])
    if source and source.quantity == "parameters":
        return cells, [amount(value) for value in values]
    return cells, [decimal(value, digits) for value in values]


def times(values: list[float | None], base: float | None) -> list[str]:
    """Values in times one of them."""
    return [f"{value / base:.2f} x" if value is not None and base else NONE for value in values]


def amount(value: float | None) -> str:
    """Return a number of parameters or tokens in three digits, as in 1.94B."""
    if value is None:
        return NONE
    unit, letter = next(((unit, letter) for unit, letter in UNITS if value >= unit), (1, ""))
    return f"{value / unit:.3g}{letter}"


def notes(experiment: Experiment, cited: CitedTable, ours: Mapping[CitedRow, str]) -> Iterator[str]:
    """Yield notes on the origin of the paper's figures and of ours, whether they compare, and what
    is uncertain.
    """
    paper = experiment.names.style.citations[cited.paper]
    yield f"{QUOTED}: {paper.text}, Table {cited.table}. {cited.theirs}"
    names = dict.fromkeys(name for one in ours.values() for name in experiment.models_in(one))
    sizes = filter(None, (size(experiment, name) for name in names))
    yield f"Here: {'; '.join([experiment.extent, *sizes])}."
    if not experiment.options & set(cited.same):
        yield ORDER
    if cited.uncertain:
        marked = any(cell.endswith(MARK) for row in cited.rows for cell in row.cells)
        yield f"Uncertain{' (?)' if marked else ''}: {cited.uncertain}"


def size(experiment: Experiment, name: str) -> str:
    """Return the size of a language model and of its training, as far as they are known."""
    tokens = next(
        (
            line["tokens"]
            for line in reversed(experiment.learning.get(name, ()))
            if "tokens" in line
        ),
        experiment.configs.get(name, {}).get("tokens"),
    )
    parameters = experiment.quantity("parameters", name, "")
    kind = "n-grams" if experiment.configs.get(name, {}).get("kind") == "ngram" else "parameters"
    facts = [
        f"{amount(parameters)} {kind}" if parameters else "",
        f"{amount(tokens)} training tokens" if tokens else "",
    ]
    known = ", ".join(filter(None, facts))
    return f"{experiment.names.lms.short(name)} {known}" if known else ""
