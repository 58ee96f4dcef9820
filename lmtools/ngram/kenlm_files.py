"""Files that KenLM's Python module loads: checked and plain before it sees them."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.extras import install_extra
from lmtools.base.files import OPENERS, cannot, count_byte, raw_chunks, raw_lines
from lmtools.ngram.arpa_lines import CHUNK, ArpaLines
from lmtools.ngram.dialects import explain_refusal

try:
    import kenlm  # PyPI's ufal-kenlm and its kenlm both have it
except ImportError:  # open_kenlm tells
    kenlm = None

BINARY = b"mmap lm "  # how KenLM's binary files begin


def open_kenlm(path: Path) -> tuple["kenlm.Model", int | None]:
    """Return KenLM's model in `path`, loaded without chatter, and the first line of an ARPA file
    that is not UTF-8; UserError if KenLM cannot read it or is not installed.
    """
    if kenlm is None:
        raise UserError(
            f"{path}: n-gram models need KenLM's Python module; {install_extra('ngram')}, or kenlm"
            " where that is built already"
        )
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(uncompressed(path))
        text = not binary(file)
        odd = check_text(file, path) if text else None
        stack.enter_context(silenced())
        try:
            return kenlm.Model(str(file), config), odd
        except (OSError, RuntimeError, ValueError) as error:
            cause = (
                "not an ARPA or KenLM file"
                if isinstance(error, ValueError)
                else str(error).rpartition(" threw ")[2]
            )
            cause = " ".join(cause.split())
            if text:
                raise explain_refusal(path, file, cause) from None
            raise UserError(
                f"{path}: KenLM cannot read it ({cause}); estimate or fetch it again"
            ) from None


def check_text(file: Path, name: Path) -> int | None:
    """Return the first line of an ARPA file that is not UTF-8.

    UserError, of `name`, for what KenLM would die of: numbers of n-grams that the file cannot hold,
    and lines so long that it would need many times as much memory.
    """
    ArpaLines(file, name).read_header()
    odd, number = None, 1
    for text in raw_chunks(file, CHUNK):
        if odd is None and not (text.isascii() or is_utf8(text)):
            odd = number + [*map(is_utf8, text.split(b"\n"))].index(False)
        number += count_byte(text, b"\n")
    return odd


def is_utf8(raw: bytes) -> bool:
    """Return whether bytes are UTF-8 text."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Send standard error nowhere: KenLM says there what it puts in place of <unk>."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextlib.contextmanager
def uncompressed(path: Path, directory=None) -> Iterator[Path]:
    """Yield the file, or while it is asked for a plain copy of a compressed one (in `directory`),
    which KenLM does not read.
    """
    if path.suffix not in OPENERS:
        yield path
        return
    with tempfile.NamedTemporaryFile(suffix=".arpa", dir=directory) as plain:
        plain.writelines(raw for _, raw in raw_lines(path))
        plain.flush()
        yield Path(plain.name)


def binary(path: Path) -> bool:
    """Return whether a file is in KenLM's binary form."""
    try:
        with open(path, "rb") as stream:
            return stream.read(len(BINARY)) == BINARY
    except OSError as error:
        raise cannot("read", path, error) from None
