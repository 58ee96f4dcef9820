"""The rows of rows.csv: what RESULTS.md prints, in full."""

import re

import pytest
from unit.report.lm.toys import lm_experiment
from unit.report.sts.toys import sts_experiment

from lmtools.cli import main
from lmtools.report.rows import FigureRow, FigureRows


def report(exp) -> tuple[dict[str, list[list[str]]], list[FigureRow]]:
    """The cells of each table of RESULTS.md by its title, and the rows."""
    assert main(["report", str(exp)]) == 0
    text = (exp / "report/RESULTS.md").read_text().replace("**", "")
    tables = {
        title: [[cell.strip() for cell in line[1:-1].split("|")] for line in lines.splitlines()]
        for title, lines in re.findall(r"^## (.*)\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    }
    return tables, FigureRows.read(exp / "report/rows.csv").every


@pytest.fixture
def written(exp, undrawn):
    return report(exp)


def pick(rows, **wanted):
    """The values of the rows that have all that is wanted."""
    return [row for row in rows if all(getattr(row, key) == one for key, one in wanted.items())]


# title of the table, header of the column, how the row's figure is printed, which rows
COLUMNS = [
    ("WER after rescoring: test", "test WER %", "{:.2f}", {"set": "test", "quantity": "wer"}),
    ("WER after rescoring: test", "dev WER %", "{:.2f}", {"set": "dev", "quantity": "wer"}),
    ("WER after rescoring: test", "sub", "{:,.0f}", {"set": "test", "quantity": "substitutions"}),
    ("WER after rescoring: test", "change", "{:+.2f}", {"set": "test", "quantity": "change"}),
    ("WER after rescoring: test", "relative", "{:+.1f}%", {"quantity": "relative change"}),
]


@pytest.mark.parametrize(("title", "header", "form", "wanted"), COLUMNS)
def test_values_are_those_of_the_main_table(written, title, header, form, wanted):
    tables, rows = written
    head, _, *lines = tables[title]
    printed = [line[head.index(header)] for line in lines if line[head.index(header)] != "-"]
    found = pick(rows, kind="system", **wanted)
    assert [form.format(row.value) for row in found] == printed


@pytest.mark.parametrize(
    ("title", "kind", "digits"),
    [("Weights", "weight", None), ("WER % by list depth: test", "depth", 2),
     ("Perplexity beside WER %", "lm", 2),
     ("How the time divides", "stage", 1)],
)  # fmt: skip
def test_every_figure_of_other_tables_is_a_row(written, title, kind, digits):
    tables, rows = written
    form = "{:.4g}" if digits is None else f"{{:,.{digits}f}}"
    known = {form.format(row.value) for row in pick(rows, kind=kind)}
    pattern = r"-?[\d,]+\.\d{%s}" % (digits or "1,")
    cells = [cell for line in tables[title][2:] for cell in line[1:-1]]
    figures = [cell for cell in cells if re.fullmatch(pattern, cell)]
    assert figures and set(figures) <= known | {
        f"{sum(r.value for r in pick(rows, kind=kind)):,.1f}"
    }


def test_language_models_and_pairs(tmp_path, undrawn):
    """Perplexities, speeds, correlations with their layers."""
    tables, rows = report(lm_experiment(tmp_path / "gbw", grids=("gates",)))
    head, _, *lines = tables["Perplexity: gbw (wikitext2)"]
    printed = [line[head.index("test ppl")] for line in lines]
    names = ("kn5", "lstm", "gcnn")
    ppl = [pick(rows, kind="lm", name=name, set="test", quantity="word_ppl") for name in names]
    assert [f"{row.value:.1f}" for (row,) in ppl] == printed
    assert {(row.label, row.lms) for row in ppl[0]} == {("kn5", "kn5")}
    pytest.importorskip("lmtools.vectors")
    tables, rows = report(sts_experiment(tmp_path / "stsb"))
    head, _, *lines = tables["Pearson x100 by layer on test: stsb (stsb)"]
    layers = pick(rows, kind="vectors", name="tta", set="test", quantity="pearson")
    (tta,) = [line for line in lines if line[0] == "T-TA"]
    cells = [tta[head.index(f"layer {int(row.at)}" if row.at else "embed")] for row in layers]
    assert [f"{row.value:.2f}" for row in layers] == cells
