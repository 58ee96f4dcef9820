"""Records in files that tasks and verbs leave for each other: each signed by the user's key, and
read once: the bytes that were checked are those that are decoded.

A record is its length, its signature and its content. The signature covers what the file is of, the
number of the record and its content, so that none comes twice, elsewhere, or from another call.
"""

import errno
import itertools
import os
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from lmtools.base.errors import UserError
from lmtools.base.files import cannot
from lmtools.base.keys import OTHERS, SIZE, is_signed, sign

LENGTH = struct.Struct("<Q")  # bytes of a record's content


class Signer(NamedTuple):
    """A key, and what the records of a file are of."""

    key: bytes
    subject: tuple[bytes, ...]

    def write_record(self, stream: BinaryIO, number: int, content: bytes) -> None:
        """Append record `number`."""
        signature = sign(self.key, *self.subject, LENGTH.pack(number), content)
        stream.write(LENGTH.pack(len(content)) + signature + content)

    def read_records(self, stream: BinaryIO) -> Iterator[tuple[bytes, int]]:
        """Yield pairs (content, where the record ends) of an open file, up to the first record that
        is not whole or that this key did not sign.
        """
        size, end = os.fstat(stream.fileno()).st_size, stream.tell()
        for number in itertools.count():
            head = stream.read(LENGTH.size + SIZE)
            if len(head) < LENGTH.size + SIZE:
                return
            length = LENGTH.unpack_from(head)[0]
            if length > size - end - len(head):  # before memory is taken for it
                return
            content = stream.read(length)
            parts = (*self.subject, LENGTH.pack(number), content)
            if not is_signed(head[LENGTH.size :], self.key, *parts):
                return
            end += len(head) + length
            yield content, end


def damaged(path: Path) -> UserError:
    """Return what to say of a file that is not as lmtools wrote it for this user."""
    return UserError(
        f"{path}: damaged, or not written by your own lmtools; remove {path.parent} and run the"
        " same command again"
    )


def open_own(path: Path) -> BinaryIO:
    """Return a file open for reading, if it is a regular file of this user in which others may not
    write; UserError otherwise. A link is not followed.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise damaged(path) from None
        raise cannot("read", path, error) from None
    if not is_own(os.fstat(handle)):
        os.close(handle)
        raise damaged(path)
    return os.fdopen(handle, "rb")


def is_own(status: os.stat_result, kind: Callable = stat.S_ISREG, mode: int = OTHERS) -> bool:
    """Return whether a file is of a kind, this user's, and grants others nothing of `mode`."""
    return kind(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & mode
