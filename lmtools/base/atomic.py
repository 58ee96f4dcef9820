"""Writing so that a crash leaves the old file or the new one, never a torn one.

What is written goes into a hidden directory beside its place, `.NAME.BOOT.RANDOM.tmp`, which its
writer holds a lock on. A kill leaves it; the next writer of NAME takes it away if it gets the lock.
The lock ends with the process and its children, so that neither a process number given anew nor one
of another container misleads; BOOT stands for the running kernel, outside which the lock would say
nothing, so that what another machine writes on a shared disk, or wrote before a restart, is never
touched.
"""

import contextlib
import errno
import fcntl
import functools
import gzip
import hashlib
import io
import os
import re
import shutil
import socket
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import DAMAGED, OPENERS, cannot, system_error

# the directory that a writer works in
LEFT = re.compile(r"\.(.+)\.([0-9a-f]{16})\.[a-z0-9_]{8}\.tmp")
LONGEST_NAME = 150  # bytes of a name that such a directory's name repeats; file systems permit 255
STDOUT = ("-", "/dev/stdout")  # which may be a file that holds more than is written now
NEW, OLD = "new", "old"  # what a directory that is being replaced is called there
# what only writing gives, where no name comes with the error
DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


@contextlib.contextmanager
def atomic_path(
    path, follow: bool = True, failures: tuple[type[Exception], ...] = ()
) -> Iterator[Path]:
    """Yield an empty file of the same name on the disk of `path`; when the block ends well it is
    flushed and takes that place. A link is followed, or replaced if not `follow`; a pipe or device
    is given as it is. UserError if it cannot be written, also for `failures`.
    """
    if follow and os.path.exists(path) and not os.path.isfile(path):
        if os.path.isdir(path):
            raise UserError(f"{path}: cannot write: is a directory; give the name of a file")
        yield Path(path)  # a link of /dev/fd to a pipe leads to no name
        return
    path = Path(os.path.realpath(path)) if follow else Path(path)
    with workplace(path, failures) as folder:
        temporary = folder / path.name
        temporary.touch()
        yield temporary
        flush(temporary)
        os.replace(temporary, path)


def is_stream(path) -> bool:
    """Return whether what is written to `path` goes on, to standard output, a pipe or a device."""
    other = os.path.isfile(path) or os.path.isdir(path)
    return path in STDOUT or (os.path.exists(path) and not other)


@contextlib.contextmanager
def atomic_directory(path, marker: str, follow: bool = True) -> Iterator[Path]:
    """Yield an empty directory on the disk of `path` that takes its place when the block ends well.
    What stood there is replaced only if it is empty or holds the file `marker`; a link is followed,
    or taken away if not `follow`. UserError otherwise.
    """
    if not follow and os.path.islink(path):
        os.unlink(path)
    path = Path(os.path.realpath(path))
    empty = path.is_dir() and not any(path.iterdir())
    if path.exists() and not empty and not (path / marker).is_file():
        raise UserError(
            f"{path}: exists and holds no {marker}; give another directory or remove it"
        )
    with new_directory(path) as temporary:
        yield temporary


@contextlib.contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Yield the same for a directory `path` that may be replaced whatever it holds."""
    with workplace(path) as folder:
        new, old = folder / NEW, folder / OLD
        new.mkdir()
        try:
            yield new
        except UserError as error:  # about what will be called otherwise
            raise UserError(str(error).replace(str(new), str(path))) from None
        for file in new.rglob("*"):
            if file.is_file():
                flush(file)
        if path.exists():
            os.rename(path, old)
        try:
            os.rename(new, path)
        finally:
            restore(folder, path)


@contextlib.contextmanager
def workplace(path: Path, failures: tuple[type[Exception], ...] = ()) -> Iterator[Path]:
    """Yield a directory beside `path`, removed in the end with what killed writers left. Errors of
    writing, and `failures`, become a UserError about `path`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path)
        folder, lock = claim(path)
    except OSError as error:
        raise cannot("write", path, error) from None
    try:
        yield folder
    except failures as error:
        raise cannot("write", path, system_error(error)) from None
    except OSError as error:
        if not concerns(error, folder):
            raise
        raise cannot("write", path, error) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def concerns(error: OSError, folder: Path) -> bool:
    """Return whether an error that came up beside writing in `folder` is one of that."""
    if error.filename is not None:
        return folder in Path(os.fsdecode(error.filename)).parents
    # numpy counts the items and gives no number
    return error.errno in DISK or (error.errno is None and not isinstance(error, DAMAGED))


def claim(path: Path) -> tuple[Path, int]:
    """Return a new directory to write `path` in, and the descriptor that locks it."""
    while True:
        prefix = f".{short(path.name)}.{boot()}."
        folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=prefix, suffix=".tmp"))
        # another process swept it before it was locked
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            # a file system without locks: nobody else gets it either
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            if stands(lock, folder):
                return folder, lock
            os.close(lock)


def stands(descriptor: int, path: Path) -> bool:
    """Return whether the open file or directory is still the one that `path` names."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def sweep(path: Path) -> None:
    """Remove what killed writers of `path` left; undo half a directory's replacement."""
    for name in left_in(path.parent).get(short(path.name), ()):
        folder = path.parent / name
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # gone meanwhile, or another user's
            continue
        with contextlib.suppress(OSError):  # its writer lives
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if stands(lock, folder):
                restore(folder, path)
                shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@functools.lru_cache(maxsize=64)
def left_in(parent: Path) -> Mapping[str, list[str]]:
    """Return the directories of writers in `parent`, by `short` name; listed once a process."""
    folders = defaultdict(list)
    for name in os.listdir(parent):
        if (match := LEFT.fullmatch(name)) and match[2] == boot():
            folders[match[1]].append(name)
    return folders


def restore(folder: Path, path: Path) -> None:
    """Put back the directory that stood at `path`, if it was taken away and nothing came."""
    if (folder / OLD).is_dir() and not os.path.lexists(path):
        os.rename(folder / OLD, path)


def short(name: str) -> str:
    whole = os.fsencode(name)
    if len(whole) <= LONGEST_NAME:
        return name
    begin = os.fsdecode(whole[: LONGEST_NAME - 17]).encode("ascii", "ignore").decode()
    return f"{begin}-{hashlib.sha256(whole).hexdigest()[:16]}"


@functools.cache
def boot() -> str:
    """Return 16 hexadecimal digits of this start of the kernel, else of this process."""
    try:
        identity = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        identity = os.urandom(16)
    return hashlib.sha256(identity).hexdigest()[:16]


def flush(path) -> None:
    """Have the disk hold what was written to the file `path`."""
    with open(path, "rb") as stream:
        os.fsync(stream.fileno())


@contextlib.contextmanager
def atomic_text(path, follow: bool = True) -> Iterator[io.TextIOBase]:
    """Yield a UTF-8 text stream that becomes `path` (`-` and /dev/stdout: standard output) when the
    block ends well; compressed by suffix (.gz, .xz, .bz2). A link is followed, or replaced if not
    `follow`, as at names that the user did not give.
    """
    if path in STDOUT:
        yield sys.stdout
        sys.stdout.flush()
        return
    with atomic_path(path, follow) as temporary, open_compressed(temporary) as stream:
        yield stream


@contextlib.contextmanager
def atomic_binary(path) -> Iterator[io.BufferedIOBase]:
    """Yield a binary stream that becomes `path`, which is no link, when the block ends well."""
    with atomic_path(path, follow=False) as temporary, open(temporary, "wb") as stream:
        yield stream


def copy_file(path, out) -> None:
    with atomic_path(out, follow=False) as copy:
        shutil.copyfile(path, copy)


@contextlib.contextmanager
def open_compressed(path: Path) -> Iterator[io.TextIOBase]:
    """Yield a text stream that writes `path`; equal content gives equal bytes, gzip's too."""
    with contextlib.ExitStack() as stack:
        opened = OPENERS.get(path.suffix, open) if path.suffix != ".gz" else open
        binary = stack.enter_context(opened(path, "wb"))
        if path.suffix == ".gz":
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=binary, mtime=0)
            binary = stack.enter_context(packed)
        # JSON can hold half a surrogate pair, which UTF-8 cannot: it becomes "?"
        text = io.TextIOWrapper(binary, encoding="utf-8", errors="replace", newline="\n")
        yield stack.enter_context(text)


ASIDE = "set_aside.txt"  # in a directory that made room for another: why

MOMENT = 0.05  # seconds between taking the lock and having written who took it, at most


@contextlib.contextmanager
def hold_lock(directory) -> Iterator[None]:
    """Keep other processes from writing `directory`; UserError at once where one does. The lock is
    on a file `.NAME.lock` beside it, and the kernel releases it when the process ends.
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
            if not stands(descriptor, path):  # who had it before has removed the file meanwhile
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
