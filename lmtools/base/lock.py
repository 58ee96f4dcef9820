"""One writer at a time: a lock that a process holds on a directory it writes."""

import contextlib
import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import cannot

ASIDE = "set_aside.txt"  # in a directory that made room for another: why

MOMENT = 0.05  # seconds between taking the lock and having written who took it, at most


@contextlib.contextmanager
def hold_lock(directory) -> Iterator[None]:
    """Keep other processes from writing `directory` inside the block; UserError at once, naming it,
    where one does.

    The lock is on a file `.NAME.lock` beside the directory, so that the directory itself can be
    moved or replaced. The kernel releases it when the process ends, however that happens; processes
    that it started do not have it.
    """
    path = Path(os.path.realpath(directory))
    path = path.with_name(f".{path.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot("write", path, error) from None
    while True:
        descriptor = open_lock_file(path)
        try:
            take(descriptor, path, directory)
            if not is_there(descriptor, path):  # who had it before has removed the file meanwhile
                continue
            try:
                with contextlib.suppress(OSError):  # on a full disk nobody learns who has the lock
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, f"{os.getpid()} {socket.gethostname()}".encode(), 0)
                yield
            finally:
                path.unlink(missing_ok=True)
            return
        finally:
            os.close(descriptor)


def open_lock_file(path: Path) -> int:
    """Return a descriptor of the lock file, made if it is not there; a link is not followed."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError(f"{path}: a link stands where the lock belongs; remove it") from None
        raise cannot("write", path, error) from None


def take(descriptor: int, path: Path, directory) -> None:
    """Take the lock; UserError if another process has it."""
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise cannot("lock", path, error) from None
        time.sleep(MOMENT)
        pid, _, host = os.pread(descriptor, 300, 0).decode("utf-8", "replace").partition(" ")
        holder = f"process {pid} on {host}" if host else "another process"
        raise UserError(
            f"{directory}: {holder} is writing it; wait for it, stop it, or give another --out"
        ) from None


def is_there(descriptor: int, path: Path) -> bool:
    """Return whether the open file is still the one that `path` names."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
