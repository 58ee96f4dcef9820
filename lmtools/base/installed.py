"""Language models of installed packages, by name: `en-books-4gram` of the wheel lmtools-models-en.

A package lists its models as entry points of GROUP. What an entry point names is read as a folder
of the package, never imported: nothing of the package runs.
"""

import re
from importlib.metadata import EntryPoint, entry_points
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
    folders = {str(find_folder(point)) for point in entry_points(group=GROUP, name=lm)}
    if len(folders) > 1:
        raise UserError(
            f"{lm}: is in {' and in '.join(sorted(folders))}; give one of these, or uninstall one"
        )
    return folders.pop() if folders else lm


def find_folder(point: EntryPoint) -> Path:
    """Return the folder that `package.folder` names, beside the metadata of the package."""
    assert point.dist is not None  # of every entry point that importlib finds
    return Path(str(point.dist.locate_file(point.value.replace(".", "/"))))


def list_models() -> str:
    """Return what installed models there are, or how they come, to end an error message."""
    names = ", ".join(sorted({point.name for point in entry_points(group=GROUP)}))
    return f"installed: {names or 'none; docs/models.md says how a wheel of some is made'}"
