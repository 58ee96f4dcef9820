"""Language models of installed packages, by name: `en-books-4gram` of the wheel lmtools-models-en.

A package lists its models as entry points of GROUP. What an entry point names is read as a folder
of the package, never imported: nothing of the package runs.
"""

import contextlib
import re
from importlib.metadata import EntryPoint, distributions
from pathlib import Path

from lmtools.base.errors import UserError

GROUP = "lmtools.models"
PACKAGE = "lmtools-models-en"  # what utils/pack_models.py writes
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def find_model(lm: str) -> str:
    """Return the folder of the installed model of the name `lm`; `lm` itself where there is a file
    or folder of this name, or no such model. UserError where two packages have one.
    """
    if not NAME.fullmatch(lm) or Path(lm).exists():
        return lm
    folders = {str(find_folder(point)) for point in list_points() if point.name == lm}
    if len(folders) > 1:
        raise UserError(
            f"{lm}: is in {' and in '.join(sorted(folders))}; give one of these, or uninstall one"
        )
    return folders.pop() if folders else lm


def list_points() -> list[EntryPoint]:
    """Return the models of all packages; a package that is broken has none."""
    found: dict[str, list[EntryPoint]] = {}  # the first of a name is the one that is imported
    for package in distributions():
        with contextlib.suppress(Exception):  # whatever the parser says of a file that is none
            if points := [point for point in package.entry_points if point.group == GROUP]:
                found.setdefault(package.name, points)
    return [point for points in found.values() for point in points]


def find_folder(point: EntryPoint) -> Path:
    """Return the folder that `package.folder` names, beside the metadata of the package."""
    assert point.dist is not None  # of every entry point that importlib finds
    return Path(str(point.dist.locate_file(point.value.replace(".", "/"))))


def list_models() -> str:
    """Return what installed models there are, or how they come, to end an error message."""
    names = ", ".join(sorted({point.name for point in list_points()}))
    return f"installed: {names or 'none; docs/models.md says how a wheel of some is made'}"
