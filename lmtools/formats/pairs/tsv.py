"""Sentence pairs as a recipe keeps them: `sentence TAB sentence TAB similarity`, without a header;
a file may go without similarities.

Nothing is quoted. Other orders are read and written with the option `columns`.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from lmtools.atomic import atomic_text
from lmtools.errors import UserError
from lmtools.formats.checks import NUMBER
from lmtools.formats.pairs.common import agreeing, check_pairs, line, pair, rows, spell_similarity
from lmtools.types import SentencePair

ABOUT = "two sentences and their similarity, if there is one, between tabs; no header"
OPTIONS = {
    "columns": (
        "what the columns are, as score+left+right; - for one to skip (default left+right+score, a"
        " file may lack the last)"
    )
}
COLUMNS = "left+right+score"


def recognises(path: Path, first: str) -> bool:
    """Return whether the first line has two fields, or three of which the last is a number."""
    fields = first.split("\t")
    return len(fields) == 2 or (len(fields) == 3 and NUMBER.fullmatch(fields[2]) is not None)


def read(path, columns: str = COLUMNS) -> Iterator[SentencePair]:
    """Read the pairs of a file."""
    return agreeing(parse_lines(path, layout(columns, path)), path)


def layout(columns: str, path) -> list[str]:
    """Return the names of the columns in order; UserError unless left and right are there, score at
    most once, and nothing else but `-`.
    """
    names = re.split("[+,]", columns)
    if sorted(name for name in names if name != "-") not in (
        ["left", "right"],
        ["left", "right", "score"],
    ):
        raise UserError(
            f"{path}: columns={columns}; give left, right and, if there is one, score, each once,"
            " as in score+left+right"
        )
    return names


def parse_lines(path, names: list[str]) -> Iterator[tuple[str, SentencePair]]:
    """(`path:line`, pair) of each line."""
    shortest = len(names) - (names[-1] == "score")
    for where, fields in rows(path):
        if not shortest <= len(fields) <= len(names):
            raise UserError(
                f"{where}: {len(fields)} fields; expected {', '.join(names)}, with tabs between, or"
                " name another format"
            )
        row = dict(zip(names, fields, strict=False))
        yield where, pair(row["left"], row["right"], row.get("score"), where)


def write(pairs: Iterable[SentencePair], path, columns: str = COLUMNS) -> None:
    """Write pairs; skipped columns hold `-`. UserError where similarities have no column, or a
    column in front no similarities.
    """
    names = layout(columns, path)
    with atomic_text(path) as out:
        for item in check_pairs(pairs, path):
            row = {
                "left": item.left,
                "right": item.right,
                "score": spell_similarity(item),
                "-": "-",
            }
            kept = names if row["score"] or names[-1] != "score" else names[:-1]
            if ("score" in kept) != bool(row["score"]):
                has = "have similarities" if row["score"] else "have no similarities"
                raise UserError(
                    f"{path}: columns={columns}, but the pairs {has}; give columns that fit them"
                )
            out.write(line([row[name] for name in kept]))
