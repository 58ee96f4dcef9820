"""Files that KenLM loads: checked and plain before its Python module sees them, why it refuses one,
and its build_binary, whose files load at once.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from lmtools.base.errors import UserError, install_extra
from lmtools.base.files import OPENERS, cannot, count_byte, raw_chunks, raw_lines
from lmtools.ngram.arrays import CHUNK, ArpaLines

try:
    import kenlm  # PyPI's ufal-kenlm and its kenlm both have it
except ImportError:  # open_kenlm tells
    kenlm = None

BINARY = b"mmap lm "  # how KenLM's binary files begin
PLACE = "LMTOOLS_KENLM"  # the environment variable that names KenLM's directory
INSTALLED = Path("tools/kenlm")  # where SCRIPT puts it, seen from the repository's root
SCRIPT = "utils/install_kenlm.sh"
PROGRAM = "build_binary"
CAUSE = 200  # characters of KenLM's own words in a message
ORDER = re.compile(r"has order ([0-9]+) but KenLM was compiled to support up to ([0-9]+)")


def open_kenlm(path: Path) -> tuple["kenlm.Model", int | None]:
    """Return KenLM's model of `path`, and an ARPA file's first line that is not UTF-8."""
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
                raise explain_refusal(path, cause) from None
            raise UserError(
                f"{path}: KenLM cannot read it ({cause}); estimate or fetch it again"
            ) from None


def check_text(file: Path, name: Path) -> int | None:
    """Return an ARPA file's first line not UTF-8; UserError for what KenLM would die of."""
    ArpaLines(file, name).read_header()
    odd, number = None, 1
    for text in raw_chunks(file, CHUNK):
        if odd is None and not (text.isascii() or is_utf8(text)):
            odd = number + [*map(is_utf8, text.split(b"\n"))].index(False)
        number += count_byte(text, b"\n")
    return odd


def is_utf8(raw: bytes) -> bool:
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
    """Yield the file, or a temporary plain copy of a compressed one: KenLM reads no others."""
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


def find_program(where: str = "auto") -> Path | None:
    """Return build_binary in `where`; "auto": in usual places; "none": None; else UserError."""
    if where == "none":
        return None
    named = [os.environ.get(PLACE), INSTALLED] if where == "auto" else [where]
    places = [str(Path(place, part)) for place in named if place for part in ("", "bin")]
    for path in [*places, None] if where == "auto" else places:  # None: PATH
        if program := shutil.which(PROGRAM, path=path):
            return Path(program).absolute()
    if where != "auto":
        raise UserError(f"{where}: has no {PROGRAM}; run {SCRIPT} {where}, or leave --kenlm out")
    return None


def binarise(
    program: Path, arpa: Path, binary: Path, form: str = "probing", options: Sequence[str] = ()
) -> None:
    """Write `arpa` as KenLM's probing or trie `form`; UserError where `program` fails."""
    room = ["-T", f"{binary.parent}/", "-S", f"{1 << 30}b"]
    done = subprocess.run(
        [program, *options, *room, form, arpa, binary],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        cause = lines[-1] if lines else "no message"
        cause = "it was killed, perhaps for want of memory" if done.returncode == -9 else cause
        raise UserError(
            f"{PROGRAM} failed (status {done.returncode}): {cause}; check memory and disk, or give"
            " --kenlm none"
        )


def explain_refusal(path, cause: str) -> UserError:
    """Return the error on an ARPA file that KenLM refuses: the line of damage, or what mends it."""
    from lmtools.ngram.arrays import new_vocabulary, read_arpa  # a query goes without these

    try:
        read_arpa(path, new_vocabulary())
    except UserError as error:
        return error
    if order := ORDER.search(cause):
        return UserError(
            f"{path}: a model of order {order[1]}, but KenLM reads {order[2]} at most; estimate it"
            " with a lower --order"
        )
    return UserError(
        f"{path}: KenLM does not read it as it stands ({cause:.{CAUSE}}); write it as KenLM does:"
        f" lmtools ngram convert {path} NEW.arpa"
    )
