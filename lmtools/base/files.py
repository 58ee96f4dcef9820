"""Reading text of any compression, and what to say where a file cannot be read or written.

The text `-` is standard input or output; a Path of this name, which was found in a directory, is a
file.
"""

import bz2
import contextlib
import errno
import functools
import gzip
import hashlib
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lmtools.base.context import current
from lmtools.base.errors import UserError

OPENERS = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
MAGIC = {  # how compressed files begin: what compressed them, the suffix by which they are read
    rb"\x1f\x8b": ("gzip", ".gz"), rb"\xfd7zXZ\0": ("xz", ".xz"),
    rb"BZh[1-9](1AY|\x17rE)": ("bzip2", ".bz2"),
    rb"\(\xb5/\xfd": ("Zstandard", ""), rb"\x04\x22\x4d\x18": ("LZ4", ""),
    rb"\x1f\x9d": ("compress", ""), rb"PK\x03\x04": ("zip", ""),
}  # fmt: skip
ENCODING = "write it as UTF-8: iconv -f WINDOWS-1252 -t UTF-8, or from the encoding that it has"
LOOKED_AT = 1 << 16  # bytes in which a NUL byte shows binary data
DAMAGED = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)
WHOLE = 16  # longest lines that a file may have which is read whole
REMEDIES = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.ELOOP: "check the symbolic links on the path",
    errno.EACCES: "check the permissions of it and its directory",
    errno.EPERM: "check the permissions of it and its directory",
    errno.EROFS: "give a place that can be written",
    errno.ENOSPC: "free space on its disk and run again",
    errno.EDQUOT: "free space of your quota and run again",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or give another disk",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}


def longest_line() -> int:
    return current().max_line


def in_units(count: int) -> str:
    """Return a number of bytes as text."""
    return f"{count >> 20} MB" if count % (1 << 20) == 0 else f"{count} bytes"


def too_long(where: str, most: int, what: str = "a line") -> UserError:
    """Return the refusal of a line of more than `most` bytes."""
    return UserError(
        f"{where}: {what} of more than {in_units(most)}; check that it is the right file, or give"
        " --max-line a larger size"
    )


def stream_of(path) -> contextlib.AbstractContextManager:
    """Return a context with the decompressed bytes of `path` (`-`: standard input, left open)."""
    if path == "-":
        return contextlib.nullcontext(sys.stdin.buffer)
    return OPENERS.get(Path(path).suffix, open)(path, "rb")


@contextlib.contextmanager
def read_errors(path, place: Callable[[], str] | None = None) -> Iterator[None]:
    """Turn errors of reading `path` inside the block into UserErrors; `place` says where."""
    try:
        yield
    except DAMAGED as error:
        where = place() if place else path
        raise UserError(f"{where}: damaged archive ({error}); fetch or write it again") from None
    except OSError as error:
        raise cannot("read", path, error) from None


def refuse_pipe(path) -> None:
    """Raise UserError for a named pipe in place of an artifact; a shell's are under /dev."""
    if Path(path).is_fifo() and not Path(path).is_relative_to("/dev"):
        raise UserError(f"{path}: is a pipe; give a file")


def read_bytes(path, most: int | None = None) -> bytes:
    """Return all of `path` (`-`: standard input), decompressed; UserError beyond `most` bytes."""
    limit = WHOLE * longest_line() if most is None else most
    with read_errors(path), stream_of(path) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        larger = f", or give --max-line a larger size: it may have {WHOLE} times that"
        larger = larger if most is None else ""
        raise UserError(
            f"{path}: more than {in_units(limit)}, too much for a file of its kind; check that it"
            f" is the right one{larger}"
        )
    return data


def read_lines(path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line) of a UTF-8 text, lazily, without byte-order mark and CR
    before LF. Only LF ends a line: others occur inside real transcripts. UserError for a line
    longer than longest_line().
    """
    number = 0
    try:
        for number, raw in raw_lines(path):
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            yield number, line.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise not_utf8(path, f"{path}:{number}") from None


def raw_lines(path) -> Iterator[tuple[int, bytes]]:
    """Yield pairs (line number from 1, bytes of the line with its end), lazily."""
    number, most = 0, longest_line()
    with read_errors(path, lambda: f"{path}:{number + 1}"), stream_of(path) as stream:
        lines = iter(functools.partial(stream.readline, most + 1), b"")
        for number, raw in enumerate(lines, 1):
            if number == 1:
                refuse_cr(raw, path)
            if len(raw) > most:
                raise too_long(f"{path}:{number}", most)
            yield number, raw


def refuse_cr(first: bytes, path) -> None:
    """Raise UserError for a file that begins with `first` where several CRs and no LF are in it."""
    if b"\n" not in first and first.count(b"\r") > 1:
        raise UserError(
            f"{path}:1: its lines end in CR alone; end them in LF: tr '\\r' '\\n' < {path} > NEW"
        )


def raw_chunks(path, size: int, end: bytes = b"\n") -> Iterator[bytes]:
    """Yield the bytes of a file in pieces of about `size`, each of whole lines with their ends:
    `raw_lines` for many of them, and for files whose lines end in CR. A longer line is a piece.
    """
    number, longest, rest = 0, longest_line(), b""
    with read_errors(path, lambda: f"{path}:{number + 1}"), stream_of(path) as stream:
        while piece := stream.read(size):
            text = rest + piece
            cut = text.rfind(end, len(rest)) + 1
            text, rest = text[:cut], text[cut:]
            if longest < max(len(text), len(rest)):
                for row, line in enumerate([*text.split(end)[:-1], rest], number + 1):
                    if len(line) > longest - (line is not rest):
                        raise too_long(f"{path}:{row}", longest)
            if text:
                yield text
                number += count_byte(text, end)
        if rest:
            yield rest


def count_byte(text: bytes, byte: bytes) -> int:
    """Count a byte that is frequent in a large text, for which bytes.count is slow."""
    import numpy as np  # which is slow to import

    return int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8) == byte[0]))


def not_as_named(path) -> UserError | None:
    """Return `compression_error` of the file `path`; None of what is no file."""
    try:
        # a pipe could wait for ever
        with open(path if os.path.isfile(path) else os.devnull, "rb") as stream:
            return compression_error(path, stream.read(8), Path(path).suffix)
    except OSError:
        return None


def compression_error(path, head: bytes, suffix: str = "") -> UserError | None:
    """Return the error for `head` of a compressed file that `suffix` does not say, or None."""
    name, right = next((kind for magic, kind in MAGIC.items() if re.match(magic, head)), ("", ""))
    if not name or right == suffix != "":
        return None
    why = "which lmtools does not read;"
    if right:
        why = f"which its name does not say; call it {Path(path).name}{right}, or"
    return UserError(f"{path}: is compressed with {name}, {why} decompress it")


def not_utf8(path, where: str, remedy: str = ENCODING) -> UserError:
    """Return the user's view of bytes at `where` that are no UTF-8: perhaps of no text at all."""
    head = read_head(path)
    if what := name_binary(head):
        return UserError(f"{path}:1: is no text but {what}; give text")
    if error := not_as_named(path):
        return error
    if UTF16.match(head):
        return in_utf16(path)
    cause = "binary data; give text" if b"\0" in head else f"not UTF-8; {remedy}"
    return UserError(f"{where}: {cause}")


def in_utf16(path) -> UserError:
    """Return the refusal of text in UTF-16."""
    return UserError(f"{path}:1: in UTF-16; write it as UTF-8: iconv -f UTF-16 -t UTF-8")


def read_head(path) -> bytes:
    """Return the first LOOKED_AT bytes of a file, decompressed; none of what cannot be read."""
    try:
        # a pipe could wait for ever
        with stream_of(path if os.path.isfile(path) else Path(os.devnull)) as stream:
            return stream.read(LOOKED_AT)
    except (*DAMAGED, OSError):
        return b""


def cannot(verb: str, path, error: OSError) -> UserError:
    """Return the user's view of an operating-system error on `path`."""
    if verb == "read" and error.errno is None:  # of a decompressor
        return UserError(f"{path}: damaged archive ({error}); fetch or write it again")
    return UserError(f"{path}: cannot {verb}: {error.strerror or error}; {remedy(error)}")


def system_error(error: Exception) -> OSError:
    """Return the system's error, of which a library may keep only `(os error NUMBER)`."""
    number = re.search(r"\(os error (\d+)\)", str(error))
    if number:
        return OSError(int(number[1]), os.strerror(int(number[1])))
    return OSError(None, " ".join(str(error).split()))


def remedy(error: OSError) -> str:
    return REMEDIES.get(error.errno, "check the path, its permissions and the disk")


@contextlib.contextmanager
def unpacking(archive) -> Iterator[None]:
    """Raise UserError where what the block takes out of `archive` shows that it is damaged."""
    import tarfile
    import zipfile

    # the last two of odd headers and of encryption
    odd = (tarfile.TarError, zipfile.BadZipFile, RuntimeError, ValueError)
    try:
        yield
    except (*DAMAGED, *odd) as error:
        remedy = "remove it and run again"
        raise UserError(f"{archive}: damaged archive ({error}); {remedy}") from None
    except OSError as error:
        if error.filename != str(archive):
            raise
        raise cannot("read", archive, error) from None


def sha256(path) -> str:
    """Return the hexadecimal SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    refuse_pipe(path)
    with read_errors(path), open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


SOUND = {
    rb"RIFF.{4}WAVE|RF64": "WAV", rb"fLaC[\0\x80]": "FLAC", rb"OggS\0": "Ogg",
    rb"NIST_1A": "SPHERE",
    rb"ID3[\x02-\x04]|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]": "MP3", rb"FORM.{4}AIF": "AIFF",
    rb"\0\0.{2}ftyp": "MP4 or M4A", rb"\x1aE\xdf\xa3": "Matroska or WebM",
}  # fmt: skip
OTHERS = {
    rb"mmap lm http://kheafield": "KenLM's binary of a language model, which goes to --lm",
    rb".{4}\0{4}\{\"": "weights of a neural network (safetensors), whose directory goes to --lm",
    rb"PK\x03\x04.{26}[^\n]{0,99}\.npy|\x93NUMPY": "NumPy's arrays",
    rb"PK\x03\x04.{26}[^\n]{0,99}data\.pkl": "weights of PyTorch",
    rb"PK\x03\x04.{26}(?:\[Content_Types|mimetype)": "an office document",
    rb"SQLite format 3\0": "a database (SQLite)",
    rb"\x80[\x02-\x05]": "a pickle of Python",
    rb"\x89HDF": "an HDF5 file",
    rb"\x7fELF": "a program",
    rb"%PDF-": "a PDF document",
    rb"PAR1\x15": "a table (Parquet)",
    rb"\x89PNG|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP": "a picture",
    rb".{257}ustar": "a tar archive",
}
BINARY = {
    mark: f"a recording ({name}), which lmtools decode makes lists of"
    for mark, name in SOUND.items()
} | OTHERS
UTF16 = re.compile(rb"\xff\xfe|\xfe\xff|(?:[\t\n\r -~]\0){8}|(?:\0[\t\n\r -~]){8}")


def name_binary(head: bytes, kinds: Mapping[bytes, str] = BINARY) -> str | None:
    """Return which of `kinds` of files begins with these bytes; None for text and all else."""
    return next((what for mark, what in kinds.items() if re.match(mark, head, re.DOTALL)), None)
