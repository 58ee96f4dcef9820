"""Quotations from papers in a YAML file: tables whose figures stand beside ours, and values read
off figures.

    citations: {tta: {label: T-TA, text: "Shin et al. 2020, ..."}} # by the paper's short name
    papers:
    - paper: tta
      table: 1
      title: WER % after rescoring 50-best lists
      only: Seq2Seq-ASR      # of the table only the rows that begin so
      corpus: LibriSpeech    # in headers
      theirs: Of what corpus and size the paper's figures are.
      same: [full]           # --corpus values that are the paper's own corpus
      beside:                # by --corpus, or by --corpus and --pair; "*": any corpus
        full: {dev clean: score dev-clean} # QUANTITY [PLACE [FORM]]: see Source
      ratio: {train time: CE} # columns to be printed in times the figure of a row
      rows: |                # as printed; ? behind what is uncertain, - for nothing
        method     | ours            | dev clean | dev other
        first pass | @first          |      4.11 |     12.31
        T-TA       | tta-shared tta  |      3.67 |     11.56?
      uncertain: What is not known for certain.
    readings:
    - paper: gcnn
      figure: 4
      beside: grid-context   # figures of ours whose names begin so
      text: What the paper's figure or its text says.
      x: [30, 40]            # dashed lines upright, and y: [61] level ones
      times: {of: tta, words: 20, by: {reranking: 6.35}} # a mark at so many times its run time
      same: [gbw]            # --corpus values whose y the paper's compare with
      uncertain: What is not known for certain.

The second column of `rows` names what of ours stands beside a row, in the recipe's words: a system,
a language model; of several the first that was measured.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lmtools.base.errors import UserError
from lmtools.report.shapes import ANY, NUMBER, PLAIN, TEXT, misfit

NOTHING, MARK = "-", "?"  # of cells: no figure, an uncertain reading
OURS = "ours"  # the header of the second column of `rows`
QUANTITIES = (
    "score",  # of rescoring, on a set
    "ppl",  # of words, on a set
    "sentence-mean",  # of the (pseudo-)perplexities of sentences, on a set
    "sentence-median",
    "time",  # milliseconds a training step
    "parameters",
    "throughput",  # tokens a second, on a device
    "responsiveness",
    "contiguous",
    "context",  # Pearson x100 of the last layer's vectors, on a set
    "embed",  # of the embedding layer's
)
SECTIONS = ("readings", "papers")
CITATION = {"label": TEXT, "text": TEXT}
TABLE = {
    **dict.fromkeys(("paper", "title", "corpus", "theirs", "rows"), TEXT),
    "table": PLAIN,
    "beside": {ANY: {ANY: TEXT}},
    "only?": TEXT,
    "same?": [TEXT],
    "ratio?": {ANY: TEXT},
    "uncertain?": TEXT,
}
READING = {
    **dict.fromkeys(("paper", "beside", "text"), TEXT),
    "figure": PLAIN,
    "x?": [NUMBER],
    "y?": [NUMBER],
    "times?": {"of": TEXT, "words": NUMBER, "by": {ANY: NUMBER}},
    "same?": [TEXT],
    "uncertain?": TEXT,
}


@dataclass(frozen=True)
class Citation:
    """A paper: what it is called in headers, and where it appeared."""

    label: str
    text: str


class Source(NamedTuple):
    """Source of our figures beside a column: one of QUANTITIES, the set or device that it is on,
    and the form in which the name in a row becomes ours, as in `{}+ngram`.
    """

    quantity: str
    place: str = ""
    form: str = "{}"


class CitedRow(NamedTuple):
    """A row of a paper's table: its label, names of ours, the first that was measured of which
    stands beside it, and a cell a column as printed.
    """

    label: str
    ours: tuple[str, ...]
    cells: tuple[str, ...]


@dataclass(frozen=True)
class CitedTable:
    """A table of a paper, or the rows of it that begin with `only`, and what of ours stands beside
    its columns, by the options of recipes.
    """

    paper: str
    table: str
    title: str
    corpus: str
    theirs: str
    heading: str  # of the labels: the columns of the paper's table that they are of
    columns: tuple[str, ...]
    rows: tuple[CitedRow, ...]
    beside: Mapping[str, Mapping[str, Source]]
    only: str = ""
    same: tuple[str, ...] = ()
    ratio: Mapping[str, str] = field(default_factory=dict)
    uncertain: str = ""

    def sources(self, options: Collection[str]) -> Mapping[str, Source] | None:
        """Return our sources beside the columns in an experiment with these values of options; None
        where the table has none for it.
        """
        keys = [key for key in self.beside if set(key.split()) - {ANY} <= set(options)]
        return self.beside[max(keys, key=len)] if keys else None

    def cells(self, column: str) -> list[str]:
        """Return the cells of a column as printed, one a row."""
        at = self.columns.index(column)
        return [row.cells[at] for row in self.rows]


@dataclass(frozen=True)
class FigureQuote:
    """Values read off a figure of a paper, for figures of ours whose names begin with `beside`:
    lines at `x` and, in experiments on a corpus of `same`, at `y`, and marks at `times` ours.
    """

    paper: str
    figure: str
    beside: str
    text: str
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    times: Mapping | None = None
    same: tuple[str, ...] = ()
    uncertain: str = ""


def read_cell(cell: str) -> float | None:
    """Read the number in a cell as printed; None where it holds none."""
    try:
        return float(cell.removesuffix(MARK).replace(",", ""))
    except ValueError:
        return None


def parse_citations(tree, where: Callable[..., str]) -> dict[str, Citation]:
    """Parse the papers by their short names; UserError with the line for what is none."""
    if wrong := misfit(tree, {ANY: CITATION}):
        raise UserError(f"{where('citations')}: citations: {wrong}; write {{label: .., text: ..}}")
    return {str(key): Citation(entry["label"], entry["text"]) for key, entry in tree.items()}


def parse_tables(trees: Sequence, papers: Collection[str], where) -> tuple[CitedTable, ...]:
    """Parse quoted tables of known `papers`; UserError with the line of what is none."""
    checked = check_entries(trees, TABLE, papers, lambda *place: where("papers", *place))
    return tuple(
        parse_table(tree, lambda *place, i=i: where("papers", str(i), *place))
        for i, tree in enumerate(checked)
    )


def parse_readings(trees: Sequence, papers: Collection[str], where) -> tuple[FigureQuote, ...]:
    """Parse the readings of figures; UserError with the line for what is none."""
    checked = check_entries(trees, READING, papers, lambda *place: where("readings", *place))
    return tuple(FigureQuote(**frozen(tree) | {"figure": str(tree["figure"])}) for tree in checked)


def check_entries(
    trees: Sequence, shape: Mapping, papers: Collection[str], where: Callable[..., str]
) -> Sequence:
    """Return `trees`, if each has that shape and no other keys; UserError with the line
    otherwise.
    """
    known, section = [key.removesuffix("?") for key in shape], SECTIONS[shape is TABLE]
    for i, tree in enumerate(trees):
        wrong, place = misfit(tree, shape), ()
        if not wrong and (others := [str(key) for key in tree if key not in known]):
            wrong = f"unknown key {others[0]!r}; known: {', '.join(known)}"
            place = others[:1]
        if not wrong and tree["paper"] not in papers:
            wrong = f"unknown paper {tree['paper']!r}; known: {', '.join(papers)}"
            place = ("paper",)
        if wrong:
            raise UserError(f"{where(str(i), *place)}: {section}: {wrong}; mend the entry")
    return trees


def frozen(tree: Mapping) -> dict:
    """Return a mapping with tuples for lists."""
    return {key: tuple(v) if isinstance(v, list) else v for key, v in tree.items()}


def parse_table(tree: Mapping, where: Callable[..., str]) -> CitedTable:
    """Parse a table of keys and values of the right shape; UserError with the line of others."""
    heading, columns, rows = parse_rows(tree["rows"], where)
    beside = {
        key: {column: parse_source(words, where("beside", key)) for column, words in group.items()}
        for key, group in tree["beside"].items()
    }
    groups = {"ratio": tree.get("ratio", {})}
    groups |= {f"beside.{key}": group for key, group in beside.items()}
    for place, group in groups.items():
        if lost := [column for column in group if column not in columns]:
            raise UserError(
                f"{where(*place.split('.', 1))}: no column {lost[0]!r}; the table has"
                f" {', '.join(columns)}"
            )
    rest = frozen({key: tree[key] for key in tree if key not in ("rows", "beside")})
    table = CitedTable(
        **rest | {"table": str(tree["table"])},
        heading=heading,
        columns=columns,
        rows=rows,
        beside=beside,
    )
    for column, label in table.ratio.items():
        cells = dict(zip((row.label for row in rows), table.cells(column), strict=True))
        if not read_cell(cells.get(label, "")):
            raise UserError(f"{where('ratio')}: {column}: no row {label!r} with a figure there")
    return table


def parse_rows(
    text: str, where: Callable[..., str]
) -> tuple[str, tuple[str, ...], tuple[CitedRow, ...]]:
    """Parse the heading of the labels, the columns and the rows of a table in text."""
    lines = [
        (i, tuple(cell.strip() for cell in line.split("|")))
        for i, line in enumerate(text.splitlines())
        if line.strip()
    ]
    header = lines[0][1] if lines else ()
    if len(lines) < 2 or len(header) < 3 or header[1] != OURS:
        raise UserError(
            f"{where('rows')}: rows: expected `HEADING | {OURS} | COLUMN ...` and lines of as many"
            " cells below it"
        )
    for i, cells in lines[1:]:
        if len(cells) != len(header):
            raise UserError(
                f"{where('rows', str(i))}: rows: {len(cells)} cells; the header has {len(header)}"
            )
    rows = tuple(
        CitedRow(label, () if ours == NOTHING else tuple(ours.split()), tuple(cells))
        for _, (label, ours, *cells) in lines[1:]
    )
    return header[0], header[2:], rows


def parse_source(text: str, where: str) -> Source:
    """Parse a Source in words: QUANTITY [PLACE [FORM]]."""
    words = text.split()
    if not words or len(words) > len(Source._fields) or words[0] not in QUANTITIES:
        raise UserError(
            f"{where}: beside: {text!r} is not `QUANTITY [PLACE [FORM]]`; quantities:"
            f" {', '.join(QUANTITIES)}"
        )
    source = Source(*words)
    if source.form.count("{}") != 1:
        raise UserError(f"{where}: beside: {source.form!r} has not one {{}} for the row's name")
    return source
