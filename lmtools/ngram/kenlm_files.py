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
from lmtools.ngram.arpa_lines import CHUNK, ArpaLines
from lmtools.ngram.parsing import WordTable
from lmtools.ngram.sentences import BOS, EOS, SYMBOLS

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
DIGITS = rb"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
PROBABILITY = rb"\s*(?:-(?:inf|%b)|\+?0*\.?0*)\t" % DIGITS
BACKOFF = rb"\t[+-]?%b" % DIGITS
ZERO = rb"\t-?0+(?:\.0*)?"  # a back-off weight of the highest order
# what KenLM says of n-grams that others leave out, whose probability back-off gives
LEFT_OUT = {
    "The context of every": "has n-grams whose beginnings it leaves out",
    "Avoid pruning n-grams": "has n-grams whose endings it leaves out",
}
MENDED = "which KenLM does not read; write it as KenLM does: lmtools ngram convert {} NEW.arpa"


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
    """Return the first line of an ARPA file that is not UTF-8; UserError, of `name`, for what KenLM
    would die of: impossible numbers of n-grams, endless lines.
    """
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
    """Return build_binary in directory `where` (or its bin); "auto": in PLACE's directory,
    INSTALLED or PATH; "none": None. UserError if a named directory has it not.
    """
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


def explain_refusal(path, file, cause: str) -> UserError:
    """Return the error on an ARPA file that KenLM refuses: the line, and what mends it."""
    try:
        quirk = find_quirk(ArpaLines(file, path))
    except UserError as error:
        return error
    if quirk:
        number, what = quirk
        return UserError(f"{path}:{number}: {what}, {MENDED.format(path)}")
    for words, what in LEFT_OUT.items():
        if words in cause:
            return UserError(f"{path}: {what}, {MENDED.format(path)}")
    if order := ORDER.search(cause):
        return UserError(
            f"{path}: a model of order {order[1]}, but KenLM reads {order[2]} at most; estimate it"
            " with a lower --order"
        )
    return UserError(f"{path}: KenLM cannot read it ({cause:.{CAUSE}}); estimate or fetch it again")


def find_quirk(lines: ArpaLines) -> tuple[int, str] | None:
    """Find the first line of a file that our reader takes and KenLM does not, and why; None where
    no line is seen to be such. UserError where our reader does not take it either.
    """
    sizes = lines.read_header()
    ids: dict[str, int] = {}
    table = None
    for n in range(1, len(sizes) + 1):
        if lines.quirks:
            break
        lines.expect_section(n, sizes)
        table = WordTable(ids) if n == 2 else table
        read_section(lines, n, sizes, ids, table=table)
        if n == 1 and SYMBOLS[BOS] not in ids and SYMBOLS[BOS].upper() in ids:
            raise lines.refuse_capitals()
        if n == 1 and not lines.quirks:
            missing = (symbol for symbol in (SYMBOLS[BOS], SYMBOLS[EOS]) if symbol not in ids)
            lines.quirks += [(lines.following - 1, f"no unigram {each} stands") for each in missing]
    else:
        lines.expect_end(sizes)
        if len(sizes) == 1:
            lines.quirks.append((lines.following - 1, "no bigrams stand before the end"))
    return lines.quirks[0] if lines.quirks else None


def read_section(
    lines: ArpaLines, n: int, sizes: list[int], ids: dict[str, int], *, table: WordTable | None
) -> None:
    """Take the n-grams of an order up to the first that KenLM does not read, a quirk of `lines`."""
    size, at = sizes[n - 1], 0
    backoff = BACKOFF if n < len(sizes) else ZERO
    plain = re.compile(
        PROBABILITY + rb"[^ \t\r\n]+(?:[ \t][^ \t\r\n]+){%d}(?:%b)?\r?\n?" % (n - 1, backoff)
    )
    while at < size and (block := lines.take(size - at)):
        at += len(lines.parse(block, n, ids, table)[0])
        for number, raw in enumerate(lines.split(block), lines.number):
            if not plain.fullmatch(raw) and raw.strip():
                lines.quirks.append((number, describe_row(raw)))
                return
    if at < size:
        raise lines.cut_off(f"after {at} of `ngram {n}={size}`")


def describe_row(raw: bytes) -> str:
    """Return the unusual form of the line of an n-gram, in words."""
    if b"\t" not in raw.strip():
        return "blanks stand in place of tabs"
    if raw.rstrip(b"\r\n").endswith((b" ", b"\t")):
        return "white space ends the line"
    return "the line has another form"
