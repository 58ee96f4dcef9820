"""Content that is given as text and is none: N-best lists, models, archives, markup. Any of them
could be read as lines of words, and be learnt.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from lmtools.base.binary import BINARY, UTF16
from lmtools.base.errors import UserError
from lmtools.base.files import compression_error, in_utf16

HEAD = 1 << 16  # bytes that are looked at

PLAIN = "give text, one sentence a line"
SOURCE = "give the text that it is made of"
LISTS = "take its hypotheses with lmtools convert --to kaldi-text, or give text"
PATHS = "take texts with lmtools lattice rescore --text"


class Foreign(NamedTuple):
    """Kind of content that is no text: the mark at its beginning, its name, and the remedy."""

    mark: re.Pattern
    what: str
    remedy: str


# What is neither text nor lists nor lattices
ARTIFACTS = tuple(
    Foreign(re.compile(mark, re.DOTALL), what, remedy)
    for mark, what, remedy in (
        (
            rb"(?:[^\n]*\n){0,20}?\\data\\\s*\n\s*ngram\s+1\s*=",
            "an ARPA language model, which goes to --lm",
            SOURCE,
        ),
        (
            rb"lmtools-corpus-(?:index-)?[0-9]+\n",
            "a binarised corpus, which goes to lmtools train",
            SOURCE,
        ),
        (rb"# lmtools-scores", "a file of scores, which goes to --scores", PLAIN),
        *((mark, what, PLAIN) for mark, what in BINARY.items()),
    )
)
# What may be lists or lattices, or else markup
SHAPES = tuple(
    Foreign(re.compile(mark), what, remedy)
    for mark, what, remedy in (
        (rb"NBestList", "SRILM's N-best lists", LISTS),
        (rb"[\[\s]*\{\s*\"[^\"\n]*\"\s*:", "JSON, such as N-best lists", LISTS),
        (rb"(?i)\s*<(?:\?xml\b|!doctype\b|html\b"
         rb"|[a-z]\w*(?:\s+[\w:-]+\s*=\s*[\"'][^\"'\n]*[\"'])+\s*/?>)",
         "XML or HTML", "take the text out of it"),
        (rb"\S+ \|\|\| [^\n]* \|\|\| ", "Moses's or Marian's N-best lists", LISTS),
        (rb"(?:#[^\n]*\n)*VERSION=\d", "a lattice (HTK SLF)", PATHS),
        (rb"\S+[ \t]*\n\d+[ \t]+\d+[ \t]+\S+[ \t]+[-\d.]+,[-\d.]+", "Kaldi lattices", PATHS),
        (rb"\(\(\(\s*['\"]", "lattices (PLF)", PATHS),
        (rb"\S+ \0[B4]", "a Kaldi archive (binary)", PLAIN),
        (rb"\S+[ \t]+\[\s*[-+]?\d+\.\d", "a Kaldi archive of vectors or matrices", PLAIN),
        (rb"(?:\S+[ \t]+[-+]?\d+\.\d+(?:[eE][-+]?\d+)?(?:[ \t]+\d+)?[ \t]*\r?\n){5}",
        "a file of scores, a number a line", PLAIN),
    )
)  # fmt: skip


def identify(head: bytes, kinds: Iterable[Foreign]) -> Foreign | None:
    """Return the first of `kinds` that begins like `head` (decompressed); None where in doubt."""
    head = head[:HEAD].removeprefix(b"\xef\xbb\xbf")
    return next((kind for kind in kinds if kind.mark.match(head)), None)


def refuse_foreign(head: bytes, path) -> None:
    """Raise UserError with what a file is that begins with `head` (decompressed) and holds no text;
    nothing is said of what might be text.
    """
    if kind := identify(head, (*ARTIFACTS, *SHAPES)):
        raise UserError(f"{path}:1: is no text but {kind.what}; {kind.remedy}")
    if error := compression_error(path, head):
        raise error
    if UTF16.match(head):
        raise in_utf16(path)


def refuse_nul(block: bytes, path, first: int) -> None:
    """Raise UserError with the line of the first NUL byte of `block`, whose first line is
    `first`.
    """
    if (place := block.find(b"\0")) >= 0:
        line = first + block.count(b"\n", 0, place)
        raise UserError(
            f"{path}:{line}: holds a NUL byte, as binary data does; give text, or remove it"
        )
