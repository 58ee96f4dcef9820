"""The seal of models, subword models and corpora: what describes them carries, as `seal`, the
SHA-256 of all else that it says. Beside it, mappings as JSON files, which have none.

The seal is of what is said, not of bytes: white space and the order of keys do not count.
"""

import functools
import hashlib
import json
from collections.abc import Mapping

import yaml

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import name_binary, read_bytes
from lmtools.base.log import say

SEAL = "seal"
REMEDY = "write it again"


class Damaged(UserError):
    """An artifact is not as it was written."""


def digest(tree: Mapping) -> str:
    """Return the hexadecimal SHA-256 of what a mapping of plain values says."""
    # as a reader will see it
    plain = json.loads(json.dumps(tree, ensure_ascii=False, default=str).encode("utf-8", "replace"))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def add_seal(tree: Mapping) -> dict:
    """Return `tree` with its seal, in place of one that it has."""
    rest = {name: value for name, value in tree.items() if name != SEAL}
    return {SEAL: digest(rest), **rest}


def add_yaml_seal(text: str) -> str:
    return f"{text}{SEAL}: {digest(yaml.safe_load(text))}\n"


def check_seal(tree: Mapping, path, remedy: str = REMEDY, warn: bool = True) -> dict:
    """Return `tree` without its seal; Damaged where that does not fit. A mapping without one
    passes, with a warning if `warn`.
    """
    rest = {name: value for name, value in tree.items() if name != SEAL}
    if SEAL not in tree:
        if warn:
            say_unchecked(str(path))
    elif tree[SEAL] != digest(rest):
        raise Damaged(
            f"{path}: damaged, or edited after it was written (its {SEAL} does not fit); {remedy}"
        )
    return rest


@functools.cache
def say_unchecked(path: str) -> None:
    """Say, once a file, that damage of it cannot be found."""
    say(
        f"{path}: has no {SEAL} (an older version wrote it, or it was edited), so that damage would"
        " not be found"
    )


def write_json(tree: Mapping, path, indent: int | None = 1, allow_nan: bool = True) -> None:
    """Write a mapping as JSON; ValueError for NaN where it is not allowed."""
    text = json.dumps(tree, ensure_ascii=False, indent=indent, allow_nan=allow_nan)
    with atomic_text(path) as stream:
        stream.write(text + "\n")


def read_json(path, remedy: str = REMEDY) -> dict:
    """Return the mapping in a JSON file, without the seal of older versions; else UserError."""
    tree = parse_json(read_bytes(path), path, remedy)
    tree.pop(SEAL, None)
    return tree


def parse_json(content, where, remedy: str) -> dict:
    """Return the JSON object that `content` spells; UserError otherwise."""
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError) as error:
        cause = "binary data" if isinstance(error, UnicodeDecodeError) else error
        what = name_binary(content) if isinstance(content, bytes) else None
        raise UserError(f"{where}: not JSON ({what or cause}); {remedy}") from None
    if not isinstance(tree, dict):
        raise UserError(f"{where}: expected a JSON object; {remedy}")
    return tree
