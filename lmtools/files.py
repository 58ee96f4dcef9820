"""Reading text of any compression, and writing so that a crash leaves the old file or the new one, never a torn one.

The text `-` is standard input or output; a Path of this name, which was found in a directory, is a file.
"""

import bz2
import contextlib
import gzip
import hashlib
import io
import lzma
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from lmtools.errors import UserError

OPENERS = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
MAGIC = {  # how compressed files begin: what compressed them, the suffix by which they are read
    rb"\x1f\x8b": ("gzip", ".gz"), rb"\xfd7zXZ\0": ("xz", ".xz"), rb"BZh[1-9](1AY|\x17rE)": ("bzip2", ".bz2"),
    rb"\(\xb5/\xfd": ("Zstandard", ""), rb"\x04\x22\x4d\x18": ("LZ4", ""), rb"\x1f\x9d": ("compress", ""), rb"PK\x03\x04": ("zip", ""),
}  # fmt: skip
DAMAGED = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


def read_bytes(path) -> bytes:
    """The whole content of `path` (`-`: standard input), decompressed by its suffix (.gz, .xz, .bz2); UserError if it cannot be read."""
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        with OPENERS.get(Path(path).suffix, open)(path, "rb") as stream:
            return stream.read()
    except DAMAGED as error:
        raise UserError(f"{path}: damaged archive ({error}); fetch or write it again") from None
    except OSError as error:
        raise cannot("read", path, error) from None


def read_lines(path) -> Iterator[tuple[int, str]]:
    """Pairs (line number from 1, line without its end) of a UTF-8 text, lazily; a byte-order mark and CR before LF are dropped.

    Only LF ends a line: Unicode's other separators occur inside real transcripts.
    """
    number = 0
    try:
        stream = sys.stdin.buffer if path == "-" else OPENERS.get(Path(path).suffix, open)(path, "rb")
        with contextlib.nullcontext(stream) if path == "-" else stream as lines:
            for number, raw in enumerate(lines, 1):
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                yield number, line.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise not_utf8(path, f"{path}:{number}") from None
    except DAMAGED as error:
        raise UserError(f"{path}:{number + 1}: damaged archive ({error}); fetch or write it again") from None
    except OSError as error:
        raise cannot("read", path, error) from None


def not_as_named(path) -> UserError | None:
    """The user's view of a file whose first bytes show a compression that its name does not; None of other files."""
    try:
        with open(path if os.path.isfile(path) else os.devnull, "rb") as stream:  # a pipe could wait for ever
            head = stream.read(8)
    except OSError:
        return None
    name, suffix = next((found for magic, found in MAGIC.items() if re.match(magic, head)), ("", ""))
    if not name or suffix == Path(path).suffix != "":
        return None
    why = f"which its name does not say; call it {Path(path).name}{suffix}, or" if suffix else "which lmtools does not read;"
    return UserError(f"{path}: is compressed with {name}, {why} decompress it")


def not_utf8(path, where: str) -> UserError:
    """The user's view of bytes at `where` that are no text: compressed, or in another encoding."""
    return not_as_named(path) or UserError(f"{where}: not UTF-8; convert it with iconv")


def cannot(verb: str, path, error: OSError) -> UserError:
    """The user's view of an operating-system error on `path`."""
    if error.errno is None:  # of a decompressor
        return UserError(f"{path}: damaged archive ({error}); fetch or write it again")
    remedy = "check the path" if isinstance(error, FileNotFoundError) else "check the path, its permissions and the disk"
    return UserError(f"{path}: cannot {verb}: {error.strerror}; {remedy}")


@contextlib.contextmanager
def atomic_path(path) -> Iterator[Path]:
    """A temporary path beside `path`; on leaving without an error its content is flushed and renamed to `path`, else removed.

    A link is followed; a pipe or a device (/dev/stdout, /dev/null) cannot be replaced and is given as it is.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        if path.is_dir():
            raise UserError(f"{path}: cannot write: is a directory; give the name of a file")
        yield path
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=f".tmp{path.suffix}")
    except OSError as error:
        raise cannot("write", path, error) from None
    os.close(handle)
    try:
        yield Path(name)
        flush(name)
        os.chmod(name, 0o666 & ~umask())
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_directory(path, marker: str) -> Iterator[Path]:
    """A temporary directory beside `path` that takes its place when the block ends well, else is removed.

    What stood at `path` is replaced only if it is an empty directory or one that holds the file `marker`; UserError otherwise.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not (path / marker).is_file() and not (path.is_dir() and not any(path.iterdir())):
        raise UserError(f"{path}: exists and holds no {marker}; give another directory or remove it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except OSError as error:
        raise cannot("write", path, error) from None
    old = Path(f"{temporary}.old")
    try:
        yield Path(temporary)
        for file in Path(temporary).rglob("*"):
            if file.is_file():
                flush(file)
        os.chmod(temporary, 0o777 & ~umask())
        if path.exists():
            os.rename(path, old)
        os.rename(temporary, path)
    finally:
        if old.exists() and not path.exists():
            os.rename(old, path)
        for leftover in (temporary, old):
            shutil.rmtree(leftover, ignore_errors=True)


def flush(path) -> None:
    """Have the disk hold what was written to the file `path`."""
    with open(path, "rb") as stream:
        os.fsync(stream.fileno())


def umask() -> int:
    """The process's file mode mask (there is no call that only reads it)."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def atomic_text(path) -> Iterator[io.TextIOBase]:
    """A UTF-8 text stream that becomes `path` (`-`: standard output) when the block ends well; compressed by suffix (.gz, .xz, .bz2)."""
    if path == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    with atomic_path(path) as temporary, compressed(temporary) as stream:
        yield stream


@contextlib.contextmanager
def compressed(path: Path) -> Iterator[io.TextIOBase]:
    """A writing text stream for `path`; gzip carries no name and no time, so that equal content gives equal bytes."""
    with contextlib.ExitStack() as stack:
        opened = OPENERS.get(path.suffix, open) if path.suffix != ".gz" else open
        binary = stack.enter_context(opened(path, "wb"))
        if path.suffix == ".gz":
            binary = stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=binary, mtime=0))
        # JSON can hold half a surrogate pair, which UTF-8 cannot: it becomes "?"
        yield stack.enter_context(io.TextIOWrapper(binary, encoding="utf-8", errors="replace", newline="\n"))


def sha256(path) -> str:
    """Hexadecimal SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise cannot("read", path, error) from None
    return digest.hexdigest()
