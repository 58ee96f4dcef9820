"""The user's own key, by which lmtools knows what it wrote itself: whoever lacks the key can write
nothing that it acts on.

The key lies in the user's state directory, so that no archive and no data directory brings one
along. All nodes of a cluster see it, as they see the home directory.
"""

import contextlib
import hashlib
import hmac
import os
import stat
import tempfile
from pathlib import Path

from lmtools.base.errors import UserError

SIZE = 32  # bytes of a key, and of a signature
STATE = "XDG_STATE_HOME"
REMEDY = f"let ${STATE} name a directory of your own that all nodes see"
OTHERS = stat.S_IWGRP | stat.S_IWOTH  # the right of others to write


def find_key() -> Path:
    """Return where the key lies: below $XDG_STATE_HOME, else ~/.local/state. UserError without an
    absolute path, which the working directory could supply.
    """
    base = os.environ.get(STATE) or ""
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/state")
    if not os.path.isabs(base):
        raise UserError(f"{base}: the home directory has no absolute path; {REMEDY}")
    return Path(base, "lmtools", "key")


def read_key(create: bool = True) -> bytes:
    """Return the user's key (SIZE bytes), made if there is none and `create`; UserError where it
    cannot be read or made, or where others can read or exchange it.
    """
    path = find_key()
    try:
        if create and not os.path.lexists(path):
            make_key(path)
        folder = path.parent.stat()
        if folder.st_uid != os.geteuid() or folder.st_mode & OTHERS:
            raise UserError(
                f"{path.parent}: others may write there, and the key in it would be theirs; take"
                f" the right from them (chmod go-w), or {REMEDY}"
            )
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
            status, key = os.fstat(stream.fileno()), stream.read(SIZE + 1)
    except FileNotFoundError:
        raise UserError(
            f"{path}: the key of who submitted the task is not there; {REMEDY}, and submit again"
        ) from None
    except OSError as error:
        cause = error.strerror or error
        raise UserError(f"{path}: no key of your own ({cause}); {REMEDY}") from None
    private = status.st_uid == os.geteuid() and not status.st_mode & 0o077
    if not stat.S_ISREG(status.st_mode) or not private or len(key) != SIZE:
        raise UserError(
            f"{path}: not a key that is yours alone (mode 0600, {SIZE} bytes); remove it, or"
            f" {REMEDY}"
        )
    return key


def make_key(path: Path) -> None:
    """Write a new key to `path`, whole at once; one that another process wrote first stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".key.")  # mode 0600
    try:
        with open(handle, "wb") as stream:
            stream.write(os.urandom(SIZE))
            stream.flush()
            os.fsync(stream.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)


def sign(key: bytes, *parts: bytes) -> bytes:
    """Return the HMAC-SHA256 (SIZE bytes) of the parts, each with its length."""
    mac = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        mac.update(len(part).to_bytes(8, "little"))
        mac.update(part)
    return mac.digest()


def is_signed(signature: bytes, key: bytes, *parts: bytes) -> bool:
    """Return whether `signature` is that of the parts by `key`."""
    return hmac.compare_digest(signature, sign(key, *parts))
