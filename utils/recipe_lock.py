"""The lock of an experiment's directory, which one run at a time has with all that it started, and
the folders and files that a recipe makes there. Standard library only.
"""

import contextlib
import fcntl
import os
import signal
import socket
import stat
import sys
import time
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import cannot


def ready(file: Path, *folders: Path) -> None:
    """Make the folders and the lock file; UserError if one is a link, through which files elsewhere
    would be made and changed.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for folder in folders:
            refuse_link(folder).mkdir(exist_ok=True)
        descriptor = os.open(refuse_link(file), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise cannot("write", error.filename, error) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise UserError(f"{file}: is no file; remove it")


def refuse_link(path: Path) -> Path:
    """Return `path`, a name that nobody chose, if it is no symbolic link."""
    if path.is_symlink():
        raise UserError(
            f"{path}: is a symbolic link, through which a recipe does not write; remove it"
        )
    return path


def lock(file: Path, descriptor: int, pid: int, kind: str = "") -> None:
    """Take the lock on the open descriptor of the lock file, and keep it with the descriptor; a
    message and exit status 1 if another run has it. Runs of the kind `shared` have it together,
    and no name in the file.

    What a killed run left working still holds its lock: that is waited for, since it may still
    write.
    """
    here = socket.gethostname()
    if not os.path.samestat(os.fstat(descriptor), os.lstat(refuse_link(file))):
        raise UserError(f"{file}: was replaced while the run started; run again")
    # between taking the lock and writing its name into the file a run has a moment without a name
    for _ in range(5):
        if try_lock(descriptor, fcntl.LOCK_SH if kind else fcntl.LOCK_EX):
            break
        holder, _, host = file.read_text().partition(" ")
        workers = find_holders(file)
        if host and (host != here or not workers or int(holder) in workers):
            run = f"process {holder}" if host == here else f"process {holder} on {host}"
            raise UserError(
                f"{file.parent} is in use by another run, {run}; wait for it, or stop it and run"
                " again"
            )
        time.sleep(0.1)
    else:
        if not host:
            raise UserError(f"{file.parent} is in use by {len(workers)} processes; wait for them")
        names = ", ".join(f"{worker} ({name})" for worker, name in workers.items())
        remedy = f"kill {' '.join(map(str, workers))} ends it"
        print(
            f"run {holder} was killed but left process {names} working; waiting for it ({remedy})",
            flush=True,
        )
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.ftruncate(descriptor, 0)
    if not kind:
        os.write(descriptor, f"{pid} {here}".encode())


def try_lock(descriptor: int, kind: int) -> bool:
    """Take the lock of a kind if it can be had at once; whether it was."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def stop(file: Path) -> None:
    """Ask what a run still has working to end: training saves its state; exit status 1 if there is
    nothing.
    """
    workers = find_holders(file)
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGTERM)
    sys.exit(0 if workers else 1)


def find_holders(path: Path) -> dict[int, str]:
    """Return the process ids, with their command's name, that hold the lock on the file `path`,
    apart from this process and its parents; a run that only waits for the lock has the file open,
    too.
    """
    this = {os.getpid(), os.getppid()}
    holders = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # a process that ended meanwhile, or is another user's
            if int(folder.name) not in this and any(
                is_same(link, path) and "lock:" in (folder / "fdinfo" / link.name).read_text()
                for link in (folder / "fd").iterdir()
            ):
                holders[int(folder.name)] = (folder / "comm").read_text().strip()
    return holders


def is_same(link: Path, path: Path) -> bool:
    """Return whether the open file `link` is the file `path`; pipes and sockets are not."""
    try:
        return os.path.samefile(link, path)
    except OSError:
        return False
