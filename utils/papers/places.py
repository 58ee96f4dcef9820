"""What papers.json and the notes beside it say of the four papers, place by place, and how their
values are read; of utils/papers/check.py.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.models.gcnn import read_blocks

NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?(?:[kKM]\b)?(?!\d)")
UNITS = {"k": 1_000, "K": 1_000, "M": 1_000_000}
NOTHING = "-"  # in a printed table
Places = dict[str, dict]


def read_papers(path: Path) -> dict[str, Places]:
    """Return the places of each paper by section: settings, figures, other results, equations,
    tables and claims; UserError where the file is not papers.json.
    """
    try:
        papers = json.loads(path.read_text())
        notes = {name: path.with_name(f"{name}.md") for name in papers}
        return {
            name: read_paper(paper, notes[name].read_text() if notes[name].exists() else "")
            for name, paper in papers.items()
        }
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not papers.json ({error!r}); give its path") from None


def read_paper(paper: Mapping, notes: str) -> Places:
    """Return One paper's places: those of papers.json, and of its notes equations and claims."""
    places = {
        name: dict(paper.get(name, {})) for name in ("settings", "other results", "equations")
    }
    for name, figure in paper["figures"].items():
        places.setdefault("figures", {})[name] = figure["numbers"] or figure["what"]
    lines = re.sub(r"\n +", " ", section(notes, "Equations"))  # an equation a line
    places["equations"] |= dict(re.findall(r"^- \*\*(.+?)\.?\*\* *(.*)", lines, re.MULTILINE))
    for name, table in paper["tables"].items():
        notes_of = {"uncertain": uncertain} if (uncertain := table.get("uncertain")) else {}
        places.setdefault("tables", {})[name] = read_table(table) | notes_of
    lines = re.sub(r"\n +", " ", section(notes, "Claims"))  # a claim a line
    places["claims"] = dict(re.findall(r"^(\d+)\. (.*)", lines, re.MULTILINE))
    return {name: tree for name, tree in places.items() if tree}


def section(notes: str, title: str) -> str:
    """Return the part of a page under a heading."""
    return notes.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def read_table(table: Mapping) -> dict[str, dict]:
    """Return cells as printed by row and column; of a table of architectures (first column `name`)
    by model, the blocks as one list.
    """
    heading, *models = table["columns"]
    if heading == "name":
        return {model: read_architecture(table, i) for i, model in enumerate(models, 1)}
    rows = {}
    for row in table["rows_printed"]:
        words = [cell for cell in row if cell != NOTHING]
        first = next((i for i, cell in enumerate(words) if NUMBER.fullmatch(cell)), 1)
        ends = range(max(1, first), len(words) + 1)
        label = next(k for i in ends if (k := " ".join(words[:i])) not in rows)
        rows[label] = dict(zip(table["columns"], row, strict=True))
    return rows


def read_architecture(table: Mapping, column: int) -> dict:
    """Return what a table of architectures says of the model in a column."""
    cells = {row[0]: row[column] for row in table["rows"] if row[column] is not None}
    blocks = [cells.pop(name) for name in list(cells) if name.startswith("conv")]
    return {**cells, "blocks": blocks}


def leaves(tree, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield every value that is no mapping, with its place."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from leaves(value, (*above, str(key)))
    else:
        yield above, tree


def show(value) -> str:
    """Return a value in one line."""
    if isinstance(value, Mapping):
        return ", ".join(str(leaf) for _, leaf in leaves(value) if leaf not in ("", NOTHING))
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def find_numbers(text) -> list[float]:
    """Return the numbers in a text: 10k and 1,000,000 are numbers, the 2 of 2a and v2 is none."""
    numbers = []
    for match in NUMBER.finditer(show(text)):
        digits = match[0].replace(",", "")
        numbers.append(float(digits.rstrip("kKM")) * UNITS.get(digits[-1], 1))
    return numbers


def comparable(value):
    """Return a value as it is compared: numbers as float, words in small letters, lists by member,
    blocks of convolutions written out.
    """
    if isinstance(value, list | tuple):
        blocks = any(str(item).startswith("[") for item in value)
        return [comparable(item) for v in value for item in (read_blocks(v) if blocks else [v])]
    if isinstance(value, bool) or value is None:
        return value
    try:
        return float(value)
    except ValueError:
        return str(value).lower()


def meaning(text, like):
    """Return a paper's value in our terms, where ours is `like`: its number or numbers, else its
    words.
    """
    if not isinstance(text, str):
        return comparable(text)
    numbers = find_numbers(text)
    if isinstance(like, list):
        return numbers
    return numbers[0] if len(numbers) == 1 else comparable(text)
