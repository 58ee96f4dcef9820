"""Glossaries as other programs have them, read where their meaning is clear.

Tables with a header (AWS: Phrase, SoundsLike, IPA, DisplayAs), JSON (Google, Speechmatics, Vosk,
plain lists), `PHRASE<TAB>WEIGHT`, `PHRASE,WEIGHT` and `PHRASE:WEIGHT` (Deepgram), lists with
bullets, numbers or quotes. Weights of other programs have other units: what counts is a weight
beside the median of all.
"""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lmtools.base.errors import UserError

# columns and keys, without case and underscores
WRITTEN = ("displayas", "phrase", "content", "value", "word", "term", "keyword", "name", "text")
WEIGHTS = ("weight", "boost", "score", "intensifier")
SPOKEN = ("soundslike", "spoken")
OTHER = ("ipa", "pronunciation", "language", "category", "id")
UNKNOWN = {"[unk]", "<unk>"}  # of Vosk's grammars
NUMBER = r"([-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
COMMA = re.compile(rf"(.*\S)\s*,\s*{NUMBER}\s*")
WEIGHTED = re.compile(rf"(.*\S)(?:\t|(?<=[^\W\d]):){NUMBER}\s*")
NUMBERED = re.compile(r"\s*([0-9]+)[.)]\s+(.*)")
BULLET = re.compile(r"^\s*[-–—•·‣◦▪*+]\s+(?=\S)")
COMMENT = re.compile(r"\s*(#+(\s|$)|//)")
QUOTES = re.compile(
    r"""\s*(?:"([^"]*)"|'([^']*)'|“([^”]*)”|‘([^‘]*)’|«([^»]*)»|„([^“”]*)[“”]),?\s*"""
)
MARKUP = re.compile(r"\s*<[\w/!?][^<>]*>.")
PIECES = "\u2581"


class Line(NamedTuple):
    """A phrase, `PHRASE | SPOKEN ..`, where it stands, and its weight in another program's unit."""

    where: str
    text: str
    weight: str | None = None


def read_foreign(path, lines: Sequence[tuple[int, str]]) -> tuple[list[Line], str | None]:
    """Return the phrases of numbered lines, and what they were read as; else UserError."""
    lines = [(number, line) for number, line in lines if line.strip()]
    if not lines:
        return [], None
    name = str(path).removesuffix(".gz").removesuffix(".xz")
    table = name.endswith((".csv", ".tsv"))
    if name.endswith(".json") or lines[0][1].lstrip()[0] in "[{":
        return read_json(path, lines), "JSON"
    if sign := find_header(lines[0][1], table):
        return read_table(path, lines, sign), "a table with a header"
    for number, line in lines:
        odd = "\t" in line.strip() and not WEIGHTED.fullmatch(line)
        if odd or MARKUP.match(line) or PIECES in line:
            raise UserError(
                f"{path}:{number}: {line.strip()!r:.60} has markup, pieces of a subword model, or a"
                " tab with no weight behind it; write a phrase a line, PHRASE :WEIGHT, or PHRASE |"
                " SPOKEN"
            )
    found, kind = split_lines([row for row in lines if not COMMENT.match(row[1])])
    if table and kind is None and {*lines[0][1]} & {*",;\t"}:
        raise UserError(f"{path}:{lines[0][0]}: no column is called phrase; add a header with it")
    phrases = []
    for number, line, weight in found:
        text = BULLET.sub("", line)
        quoted = QUOTES.fullmatch(text)
        text = next(filter(None, quoted.groups()), "") if quoted else text
        phrases.append(Line(f"{path}:{number}", text, weight))
    return phrases, kind


def split_lines(
    lines: Sequence[tuple[int, str]],
) -> tuple[list[tuple[int, str, str | None]], str | None]:
    """Return number, phrase and weight of lines, and whose lines they are."""
    texts = [line for _, line in lines]
    counted = [NUMBERED.fullmatch(text) for text in texts]
    if len(lines) > 2 and [m and int(m[1]) for m in counted] == [*range(1, len(lines) + 1)]:
        pairs = zip(lines, counted, strict=True)
        return [(number, m[2], None) for (number, _), m in pairs], "a numbered list"
    commas = [COMMA.fullmatch(text) for text in texts]
    ends = commas if len(lines) > 1 and all(commas) else map(WEIGHTED.fullmatch, texts)
    pairs = zip(lines, ends, strict=True)
    found = [(number, m[1], m[2]) if m else (number, line, None) for (number, line), m in pairs]
    weighted = any(weight for _, _, weight in found)
    return found, "phrases with weights" if weighted else None


def plain(name: str) -> str:
    return re.sub("[_ ]", "", name).lower()


def find_header(line: str, table: bool) -> str | None:
    """Return what divides the columns of a header; None where the line is none."""
    for sign in "\t;,":
        names = [plain(name.strip().strip('"')) for name in line.split(sign)]
        known = table or {*names} <= {*WRITTEN, *WEIGHTS, *SPOKEN, *OTHER}
        if {*names} & {*WRITTEN} and known and (len(names) > 1 or (table and sign == ",")):
            return sign
    return None


def read_table(path, lines: Sequence[tuple[int, str]], sign: str) -> list[Line]:
    names: list[str] = []
    found = []
    for number, line in lines:
        where = f"{path}:{number}"
        try:
            cells = next(csv.reader([line], delimiter=sign))
        except csv.Error as error:
            raise UserError(f"{where}: {error}; write a row of a table") from None
        if not names:
            names = [plain(name.strip()) for name in cells]
            continue
        if len(cells) > len(names):
            raise UserError(
                f"{where}: {len(cells)} columns, the header has {len(names)}; quote a phrase that"
                f" holds {sign!r}"
            )
        row = dict(zip(names, (cell.strip() for cell in cells), strict=False))
        if {"displayas", "soundslike"} & {*names}:  # AWS, which writes hyphens for blanks
            parts = {"phrase", "soundslike"} & {*row}
            row |= {name: re.sub("[-.]+", " ", row[name]).strip() for name in parts}
        found.append(read_row(row, where))
    return found


def read_row(row: dict, where: str) -> Line:
    given = [row[name] for name in WRITTEN if isinstance(row.get(name), str) and row[name]]
    texts = given[: 2 if row.get("displayas") else 1]
    for name in SPOKEN:
        value = row.get(name) or []
        texts += [value] if isinstance(value, str) else map(str, value)
    weight = next((str(row[n]) for n in WEIGHTS if row.get(n) not in (None, "")), None)
    return Line(where, " | ".join(dict.fromkeys(texts)), weight)


def read_json(path, lines: Sequence[tuple[int, str]]) -> list[Line]:
    """Read the phrases of a tree: texts, objects or lists below any keys, weights by phrase."""
    text = "\n".join(line for _, line in lines)
    try:
        phrases = [*walk(json.loads(text), None)]
    except (ValueError, RecursionError) as error:
        number = lines[getattr(error, "lineno", 1) - 1][0]
        raise UserError(
            f"{path}:{number}: no JSON, though the file begins so; write a phrase a line, or a list"
            ' ["PHRASE", ...]'
        ) from None
    if not phrases:
        raise UserError(f'{path}:{lines[0][0]}: JSON without phrases; write a list ["PHRASE", ...]')
    return [line._replace(where=f"{path}: phrase {place}") for place, line in enumerate(phrases, 1)]


def walk(tree, boost) -> Iterator[Line]:
    if isinstance(tree, str):
        if tree not in UNKNOWN:
            yield Line("", tree, boost)
    elif isinstance(tree, list):
        for part in tree:
            yield from walk(part, boost)
    elif isinstance(tree, dict):
        row = {plain(key): value for key, value in tree.items()}
        boost = next((str(row[n]) for n in WEIGHTS if row.get(n) is not None), boost)
        below = [v for k, v in row.items() if isinstance(v, list | dict) and k not in SPOKEN]
        if below:
            for part in below:
                yield from walk(part, boost)
        elif any(isinstance(row.get(name), str) for name in WRITTEN):
            yield read_row({**row, WEIGHTS[0]: boost}, "")
        elif all(type(value) in (int, float) for value in tree.values()):
            yield from (Line("", key, str(value)) for key, value in tree.items())
