"""Plain text: one sentence a line, as language models are trained on it."""

from collections.abc import Iterable

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.formats.checks import encodable
from lmtools.text.blocks import read_text


def read(path) -> list[str]:
    """Read the lines of `path` without white space at their ends; empty ones keep their numbers."""
    return [line.strip() for _, line in read_text(path, nul=True)]


def write(sentences: Iterable[str], path) -> None:
    """Write one sentence a line; UserError if one holds a line break."""
    with atomic_text(path) as out:
        for number, sentence in enumerate(sentences, 1):
            where = f"{path}:{number}"
            if "\n" in sentence or "\r" in sentence:
                raise UserError(f"{where}: a line break inside a sentence; replace it by a space")
            out.write(encodable(sentence, where) + "\n")
