"""The lexical side of SLF: `name=value` fields, comments, continuations, quotes, escapes."""

import re
from collections.abc import Iterator

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines

FIELD = re.compile(
    r"""\s*([^\s=#"']+)=("(?:[^"\\]|\\.)*"(?!\S)|'(?:[^'\\\s]|\\.)*'(?!\S)|(?:[^\s\\]|\\.)*)"""
)  # an apostrophe may also begin a word, so that quotes only count where they close
# a line of plain fields has none of these
SPECIAL = re.compile(r"[\"'\\#]|(?:^|\s)(?:=|[^\s=]+(?:\s|$))")
ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
LONG = {"V": "VERSION", "U": "UTTERANCE", "NODES": "N", "LINKS": "L", "START": "S", "END": "E",
"WORD": "W", "time": "t", "var": "v",
        "div": "d", "acoustic": "a", "language": "l", "ngram": "n", "posterior": "p"}  # fmt: skip
Line = tuple[str, dict[str, str], str]  # `path:line`, fields, comment


def read_fields(path) -> Iterator[Line]:
    """Yield the lines of `path` with their fields; a line goes on after a backslash at its end."""
    pending, begun = "", 0
    for number, line in read_lines(path):
        begun = begun if pending else number
        if line.endswith("\\") and not line.startswith("#"):
            pending += line[:-1] + " "
            continue
        yield parse_fields(pending + line, f"{path}:{begun}")
        pending = ""
    if pending:
        yield parse_fields(pending, f"{path}:{begun}")


def parse_fields(line: str, where: str) -> Line:
    line = line.strip()
    if line.startswith("#"):
        return where, {}, line
    pairs = (
        quoted_pairs(line, where)
        if SPECIAL.search(line)
        else [part.partition("=")[::2] for part in line.split()]
    )
    fields = {LONG.get(name, name): value for name, value in pairs}
    if len(fields) < len(pairs):
        names = [LONG.get(name, name) for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{where}: field {twice!a} occurs twice; keep one of them")
    return where, fields, ""


def quoted_pairs(line: str, where: str) -> list[tuple[str, str]]:
    """Return names and values of a line with quotes or escapes, or that is no field."""
    pairs, at = [], 0
    while at < len(line):
        match = FIELD.match(line, at)
        if not match:
            raise UserError(
                f"{where}: {line[at : at + 40].strip()!a} is no field; expected name=value"
            )
        pairs.append((match[1], unquote(match[2], where)))
        at = match.end()
    return pairs


def unquote(value: str, where: str) -> str:
    """Return a field's value without quotes and escapes (`\\` and a character or octal byte)."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    if "\\" not in value:
        return value
    try:
        return ESCAPE.sub(
            lambda match: bytes([int(match[1], 8) & 255]) if len(match[1]) == 3 else match[1],
            value.encode(),
        ).decode()
    except UnicodeDecodeError:
        raise UserError(
            f"{where}: {value[:40]!a} is not UTF-8 when its escapes are read; correct it"
        ) from None


def quote(value: str) -> str:
    """Return a value so that `parse_fields` reads it back: in double quotes where it needs them."""
    if value and not re.search(r"[\s\\]", value) and value[0] not in "\"'#":
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
