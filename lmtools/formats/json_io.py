"""Formats that are one JSON value: strict reading, what is expected where, and extras that keep any
value as JSON text.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from lmtools.atomic import atomic_text
from lmtools.errors import UserError
from lmtools.files import not_utf8, read_bytes
from lmtools.formats.checks import encodable
from lmtools.formats.jsonl import clip_value, score, unique
from lmtools.formats.registry import HEAD, read_beginning

KINDS = {str: "a text", dict: "an object", list: "a list", float: "a number"}


def load(path):
    """The JSON value in `path` (.gz, .xz, `-`); repeated keys are refused, which Python's reader
    would let through.
    """
    data = read_bytes(path)
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=unique)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise not_utf8(path, f"{path}:{line}") from None
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}:{error.lineno}: not JSON ({error.msg} at column {error.colno}); write the file"
            " again"
        ) from None
    except RecursionError:
        raise UserError(f"{path}: nested too deeply; write the file again") from None
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}); write the file again") from None


def head(path: Path, first: str) -> str:
    """The beginning of a JSON file, in which a format's names have to occur: its first line, or
    more where that is short.
    """
    if not first.lstrip().startswith(("{", "[")) or len(first) > HEAD // 2:
        return first
    return read_beginning(path).decode("utf-8-sig", "replace").lstrip()


def expect(value, kind: type, where: str, what: str):
    """`value` if it is of `kind`; UserError otherwise, also for texts that UTF-8 cannot hold and
    numbers that are not finite.
    """
    if kind is float:
        return score(value, where, what)
    if not isinstance(value, kind):
        raise UserError(f"{where}: {what} is {clip_value(value)}; expected {KINDS[kind]}")
    return encodable(value, where) if kind is str else value


def member(tree: Mapping, name: str, kind: type, where: str):
    """The value of `name` in an object; UserError if it is missing or of another kind."""
    if name not in tree:
        raise UserError(f"{where}: key {name!r} is missing; add it")
    return expect(tree[name], kind, where, repr(name))


def extras(tree: Mapping, own: Iterable[str], where: str) -> dict[str, str]:
    """What an object holds besides its `own` keys, each value as JSON text."""
    own = set(own)
    return {
        encodable(name, where): as_text(value) for name, value in tree.items() if name not in own
    }


def as_text(value) -> str:
    """A value as JSON that UTF-8 can hold."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(value)
    return text


def value_of(text: str):
    """The value that an extra holds: the JSON of such a format, or the text of another one."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def write(rows: Iterable[str], path, opening: str, closing: str) -> None:
    """Write rows of JSON, a line each, between brackets; on standard output each at once."""
    with atomic_text(path) as out:
        out.write(opening)
        for number, row in enumerate(rows):
            out.write((",\n" if number else "\n") + row)
            if str(path) == "-":
                out.flush()
        out.write(f"\n{closing}\n")
