#!/usr/bin/env python3
"""Where this repository agrees with its four papers, line by line: utils/papers/check.py
../shared/papers/papers.json

papers.json holds the papers' settings, equations, tables and figures; papers.yaml beside this
script says what stands for each here. Notes beside papers.json (NAME.md) add the equations and
claims that it lacks. A place is compared by value where a setting of ours is read and held against
the paper's, by text where a docstring, page or report is only found to have some words, figures or
rows; the two are counted apart. Exit status 1 where a place of the papers has no line, a line no
place, or a line neither agrees nor has a reason that still holds.
"""

import argparse
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# as it stands in this checkout
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from checkout import Checkout, Stale
from places import NOTHING, Places, comparable, find_numbers, meaning, read_papers, show
from quoted import MARK, PaperTable

from lmtools.base.config import load_yaml
from lmtools.base.errors import UserError, exit_with_message

DECLARED = Path(__file__).with_name("papers.yaml")
# what an entry may name, one of them; `claim` is of this script's own entries
KINDS = ("ours", "code", "holds", "said", "report", "claim")
KEYS = {*KINDS, "text", "is", "here", "why", "cites"}
AGREES, DIFFERS, NONE, ERROR = "agrees", "differs", "none", "ERROR"
VALUE, TEXT = "value", "text"  # by what a place is compared
WIDTHS = (44, 40, 60)  # of a place, the paper's value and ours, as they are printed
LOST = "declared, but not in the papers"


@dataclass(frozen=True)
class Line:
    """One comparison; the verdict `none`: nothing here stands for the paper's value."""

    place: tuple[str, ...]
    theirs: object = ""
    ours: str = ""
    verdict: str = ERROR
    reason: str = ""
    by: str = ""  # VALUE, TEXT, or nothing where nothing is compared

    def __str__(self):
        by = f" by {self.by}" if self.by else ""
        verdict = f"{self.verdict}{by}" + f": {self.reason}" * bool(self.reason)
        return align(" / ".join(self.place), show(self.theirs), self.ours, verdict)


def align(*cells: str) -> str:
    """Return a row of the table; the last cell may be as wide as it is."""
    *first, last = cells
    return " | ".join([*map(shorten, first, WIDTHS), last])


def shorten(text: str, width: int) -> str:
    """Return `text` in exactly so many columns, its middle left out where it is longer."""
    if len(text) > width:
        half = (width - 2) // 2
        text = f"{text[: width - half - 2]}..{text[-half:]}"
    return text.ljust(width)


class Comparison:
    """One paper against a checkout, by what is declared of it."""

    def __init__(self, name: str, declared: Mapping, reasons: Mapping, checkout: Checkout):
        self.name, self.declared, self.reasons = name, declared, reasons
        self.checkout, self.used, self.quoted = checkout, set(), set()

    def lines(self, places: Places) -> Iterator[Line]:
        """Yield a line for each entry of each place, in the paper's order."""
        declared = {**self.declared, "claims": self.claims(places.get("claims", {}))}
        label = declared.pop("label", self.name)
        yield from self.walk((label,), places, {k: v for k, v in declared.items() if v})
        for page, (tables, _) in self.checkout.cited.items():
            for table in (table for table in tables if table.paper == self.name):
                for label_of_row, _, *cells in table.rows:
                    if (table.table, label_of_row, *cells) not in self.quoted:
                        place = label, "tables", table.table, label_of_row
                        yield Line(place, cells, page, reason="quoted, but not in the papers")

    def claims(self, numbers: Mapping) -> dict:
        """Check that each claim has a row in a recipe's page, and what is declared of its parts."""
        label, parts = self.declared.get("label", self.name), self.declared.get("claims", {})
        rows = {number: [{"claim": f"{label} {number}"}] for number in numbers}
        for number, entries in parts.items():
            rows.setdefault(str(number), []).extend(entries)
        return rows

    def walk(self, place: tuple[str, ...], theirs, declared) -> Iterator[Line]:
        """Yield the lines of a place and of all below it."""
        entries = declared if isinstance(declared, list) else [declared]
        if declared and all(
            isinstance(entry, Mapping) and entry.keys() <= KEYS for entry in entries
        ):
            yield from self.check_all(place, theirs, entries)
        elif isinstance(theirs, Mapping) and (declared or not is_row(place)):
            below = {str(key): entry for key, entry in (declared or {}).items()}
            for key, value in theirs.items():
                yield from self.walk((*place, str(key)), value, below.pop(str(key), None))
            yield from (Line((*place, key), reason=LOST) for key in below)
        else:
            yield Line(place, theirs, reason="no entry says what stands for it")

    def check_all(self, place, theirs, entries) -> Iterator[Line]:
        """Yield the lines of the entries of one place, and of the numbers that they leave out. An
        entry of a table or group is one of each of its rows or members.
        """
        for entry in entries:
            if isinstance(theirs, Mapping) and not is_row(place):
                for key, value in theirs.items():
                    yield from self.walk((*place, str(key)), value, entry)
            else:
                yield self.check(place, theirs, entry)
        if all("text" in entry for entry in entries):
            spoken = find_numbers([entry["text"] for entry in entries])
            for number in find_numbers(theirs):
                if number not in spoken:
                    yield Line(place, number, reason="no entry speaks of this number")

    def check(self, place, theirs, entry) -> Line:
        """Return the line of one entry."""
        quoted = entry.get("text", theirs)
        why = entry.get("why", "")
        self.used.add(why)
        kind = next((kind for kind in KINDS if kind in entry), None)
        try:
            if "text" in entry and str(quoted) not in show(theirs):
                raise Stale(f"the paper does not say {quoted!r}")
            if not kind and not why:
                raise Stale("the entry names nothing, and no reason")
            ours = getattr(self, f"check_{kind}")(place, quoted, entry) if kind else ""
        except (Stale, UserError) as error:
            return Line(place, quoted, entry.get(kind, ""), ERROR, str(error))
        verdict = (DIFFERS if kind else NONE) if why else AGREES
        by = {None: "", "ours": VALUE}.get(kind, TEXT)
        return Line(place, quoted, ours, verdict, self.reasons.get(why, why), by)

    def check_ours(self, place, quoted, entry) -> str:
        """Check that our values are the paper's, or else `here`."""
        values = self.checkout.values(entry["ours"])
        for value in values:
            ours = comparable(value)
            theirs = comparable(entry["is"]) if "is" in entry else meaning(quoted, ours)
            if ours == theirs and "why" in entry:
                raise Stale("both agree: the reason is stale")
            if ours != theirs and "why" not in entry:
                raise Stale(f"ours is {show(value)}, and no reason is declared")
            if ours != theirs and ours != comparable(entry.get("here")):
                raise Stale(f"ours is {show(value)}, the reason is of {entry.get('here')}")
        return f"{entry['ours']} = {show(values[0])}"

    def check_code(self, place, quoted, entry) -> str:
        """Check that a docstring cites the equation."""
        named = place[-1].partition(",")[0]
        cites = entry.get("cites", named if named.startswith("Eq. ") else f"Eq. {named}")
        for documented in self.checkout.values(entry["code"]):
            text = " ".join((inspect.getdoc(documented) or "").split())
            if cites not in text and not cites_number(text, cites):
                raise Stale(f"the docstring of {entry['code']} does not say {cites!r}")
        return f"{entry['code']} ({cites})"

    def check_holds(self, place, quoted, entry) -> str:
        """Check that a file has a text."""
        name, _, text = entry["holds"].partition(":")
        if text not in self.checkout.text(name):
            raise Stale(f"{name} does not have {text!r}")
        return entry["holds"]

    def check_said(self, place, quoted, entry) -> str:
        """Check that a page has the figures, and those of ours that differ."""
        known = find_numbers(self.checkout.text(entry["said"]))
        numbers = [*find_numbers(quoted), *find_numbers(entry.get("here", ""))]
        if not numbers:
            raise Stale("has no figure to look for; `holds` looks for words")
        if missing := [number for number in numbers if number not in known]:
            raise Stale(f"{entry['said']} does not have {show(missing)}")
        return entry["said"]

    def check_report(self, place, quoted, entry) -> str:
        """Check that a papers.yaml quotes the row of a table, or a figure's readings."""
        _, section, number, *_ = place
        tables, readings = self.checkout.cited.get(entry["report"], ((), ()))
        if section == "tables":
            tables = [t for t in tables if (t.paper, t.table) == (self.name, number)]
            if isinstance(quoted, list):
                if not any(table.uncertain for table in tables):
                    raise Stale(f"{entry['report']} says of nothing that it is uncertain")
                return entry["report"]
            rows = [row for table in tables for row in quoted_rows(table, quoted)]
            if not rows:
                raise Stale(f"{entry['report']} does not quote this row of Table {number}")
            self.quoted.update((number, row[0], *row[2:]) for row in rows)
        else:
            matching = [r for r in readings if (r.paper, r.figure) == (self.name, number)]
            known = [n for r in matching for n in find_numbers([r.text, *r.x, *r.y, r.times])]
            if missing := [n for n in find_numbers(quoted) if n not in known]:
                raise Stale(f"{entry['report']} does not have {show(missing)} of Figure {number}")
        return entry["report"]

    def check_claim(self, place, quoted, entry) -> str:
        """Check that a recipe's page has a row of the claim."""
        if entry["claim"] not in self.checkout.claims:
            raise Stale(f"no egs/*/*.md has a row `| {entry['claim']} | ..`")
        return self.checkout.claims[entry["claim"]]


def is_row(place: tuple[str, ...]) -> bool:
    """Return whether a place is a row of a table, which is one line."""
    return len(place) == 4 and place[1] == "tables"


def quoted_rows(table: PaperTable, quoted: Mapping[str, str]) -> list[list[str]]:
    """Return the row of a quoted table that has a row's label and cells; where its columns are the
    paper's rows, all its rows, if they have the row's cells.
    """
    (first, *columns), printed = quoted, table.columns[2:]
    if quoted[first] in printed:
        cells = map(unmarked, table.cells(quoted[first]))
        same = [quoted.get(row[0]) for row in table.rows] == list(cells)
        return list(table.rows) if same and len(columns) == len(table.rows) else []
    label = " ".join(x for c, x in quoted.items() if c not in printed and x != NOTHING)
    cells = [quoted.get(column) for column in printed]
    return [
        row
        for row in table.rows
        if f"{table.only} {row[0]}".strip() == label and [*map(unmarked, row[2:])] == cells
    ]


def unmarked(cell: str) -> str:
    """Return a quoted cell without the mark of an uncertain reading; NOTHING for an empty one."""
    return cell.removesuffix(MARK) or NOTHING


def cites_number(text: str, cites: str) -> bool:
    """Return whether `Eqs. 8-22` or `Eqs. 7 and 8` in a text are of `Eq. N`."""
    number = re.fullmatch(r"Eq\. (\d+)", cites)
    for numbers in re.findall(r"Eqs?\. (\d[\d, and-]*)", text) if number else []:
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", numbers):
            if int(first) <= int(number[1]) <= int(last or first):
                return True
    return False


def compare_papers(papers: Path, declared: Path = DECLARED) -> Iterator[Line]:
    """Yield all lines; `declared` lies in a folder of the checkout that it speaks of."""
    known, entries = read_papers(papers), load_yaml(declared)
    reasons, used = entries.pop("reasons", {}), set()
    checkout = Checkout(declared.resolve().parents[2])
    for name, places in known.items():
        comparison = Comparison(name, entries.pop(name, {}), reasons, checkout)
        yield from comparison.lines(places)
        used |= comparison.used
    yield from (Line((name,), reason=LOST) for name in entries)
    yield from (Line(("reasons", n), reason="no entry has it") for n in reasons.keys() - used)


def summarise(counts: Mapping[tuple[str, str], int]) -> str:
    """Return the last line: how many lines there are by verdict, and by what is compared."""
    agree, differ = (
        f"{counts[verdict, VALUE]} by value and {counts[verdict, TEXT]} by text"
        for verdict in (AGREES, DIFFERS)
    )
    return (
        f"{sum(counts.values())} lines: agree {agree}; differ {differ}, and {counts[NONE, '']} have"
        f" nothing here, each with its reason; {counts[ERROR, '']} errors"
    )


def main() -> None:
    """Print the table; exit status 1 where a line is an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", metavar="PAPERS.json", type=Path)
    parser.add_argument("--declared", metavar="YAML", type=Path, default=DECLARED)
    parser.add_argument("--errors", action="store_true", help="print nothing but errors")
    args = parser.parse_args()
    counts = Counter()
    print(align("place", "the paper", "here: FILE:KEY = value", "verdict: reason"))
    for line in compare_papers(args.papers, args.declared):
        counts[line.verdict, line.by] += 1
        if line.verdict == ERROR or not args.errors:
            print(line)
    print(summarise(counts))
    sys.exit(counts[ERROR, ""] > 0)


if __name__ == "__main__":
    with exit_with_message():
        main()
