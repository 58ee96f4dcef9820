"""The shards of a piece of work, in a directory that all machines see.

DIRECTORY/NAME/ is one call's work: `work` (what is done with an item), N.items, N.log, and, once
task N has ended well, N.results. NAME stands for a digest of the work, all items, their split and
what the work reads by name, so that results of anything else are never taken for these. Until
N.results is there, whole, under its name, each attempt writes its own N.*.part; the next one goes
on behind the last whole result of the longest.

Work, items and results are pickles, as between processes of one machine, in records that the user's
own key signs (lmtools.base.keys): none is decoded unless its very bytes were signed, for this work,
this shard and this place in it. NAME comes of the key, too.
"""

import contextlib
import hashlib
import os
import pickle
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from lmtools.base.errors import UserError
from lmtools.base.files import cannot
from lmtools.base.jobs.records import Signer, damaged, is_own, open_own
from lmtools.base.jobs.work import Work
from lmtools.base.keys import OTHERS, SIZE, read_key, sign

WORK, ITEMS, RESULTS, LOG, PART = "work", ".items", ".results", ".log", ".part"
FILES = re.compile(r"work|[0-9]+\.(items|results|[0-9a-f]+\.part)")  # what tasks and verbs read
NONCE = 16  # bytes that are other ones in each directory


class ShardKeys(NamedTuple):
    """Keys of signatures: the user's key; the digest of a call's work; the nonce of the directory
    that holds it, by which items are known.
    """

    key: bytes
    digest: bytes
    nonce: bytes

    @property
    def name(self) -> str:
        """Return the directory's name, which nobody else can tell before."""
        return sign(self.key, b"name", self.digest).hex()[:24]

    @property
    def head(self) -> bytes:
        """Return the bytes that the file `work` begins with."""
        return self.digest + self.nonce

    def work(self) -> Signer:
        """Return what signs the file `work`."""
        return Signer(self.key, (b"work", self.digest, self.nonce))

    def items(self, n: int) -> Signer:
        """Return what signs the items of shard N."""
        return Signer(self.key, (b"items", self.nonce, b"%d" % n))

    def results(self, n: int) -> Signer:
        """Return what signs the results of shard N."""
        return Signer(self.key, (b"results", self.digest, b"%d" % n))


class Shards:
    """Shards in `folder` of one call's work: how many, and the items of all together."""

    def __init__(self, folder: Path, keys: ShardKeys, count: int, items: int):
        self.folder, self.keys, self.count, self.items = folder, keys, count, items

    def missing(self) -> list[int]:
        """Return numbers of the shards without results."""
        there = set(os.listdir(self.folder))  # a listing is what network file systems refresh
        return [n for n in range(self.count) if f"{n}{RESULTS}" not in there]

    def results(self) -> Iterator:
        """Yield the result of each item, in order, each exactly once; UserError where a file is not
        whole or not of these tasks.
        """
        streams = [self.records(n) for n in range(self.count)]
        for i in range(self.items):
            answer = next(streams[i % self.count], None)
            if answer is None:
                raise damaged(self.folder / f"{i % self.count}{RESULTS}")
            yield pickle.loads(answer)
        for n, stream in enumerate(streams):
            if next(stream, None) is not None:
                raise damaged(self.folder / f"{n}{RESULTS}")

    def records(self, n: int) -> Iterator[bytes]:
        """Return the records of shard N's results; UserError where one is not what was written."""
        return whole_records(self.folder / f"{n}{RESULTS}", self.keys.results(n))

    def forget(self) -> None:
        """Take away what was done."""
        for path in [*self.folder.glob(f"*{RESULTS}"), *self.folder.glob(f"*{PART}")]:
            path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Take it all away."""
        shutil.rmtree(self.folder, ignore_errors=True)


def whole_records(path: Path, signer: Signer) -> Iterator[bytes]:
    """Yield the records of a file, all of which this signer has signed; UserError otherwise."""
    with open_own(path) as stream:
        end = 0
        for content, end in signer.read_records(stream):  # noqa: B007
            yield content
        if end != os.fstat(stream.fileno()).st_size:
            raise damaged(path)


def write_shards(directory: Path, work: Work, items: Iterable, count: int) -> Shards:
    """Return the items, dealt out to `count` shards (fewer where they are fewer), one after the
    other; those of an earlier call that was the same, with the results that are there, if it left
    any. UserError where there is no key, or where not all in the directory is this user's own.
    """
    key = read_key()
    own_directory(directory)
    folder = Path(tempfile.mkdtemp(dir=directory, prefix=".new-"))
    try:
        content = pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
        nonce = os.urandom(NONCE)
        digest = hashlib.sha256(content)
        digest.update(repr((count, *map(describe_files, work.reads))).encode())
        total = deal_items(folder, ShardKeys(key, b"", nonce), items, count, digest=digest)
        keys = ShardKeys(key, digest.digest(), nonce)
        with create(folder / WORK) as stream:
            stream.write(keys.head)
            keys.work().write_record(stream, 0, content)
        place = directory / keys.name
        if os.path.lexists(place):
            check_files(place)
            read_work(place, key)
        else:
            os.rename(folder, place)
        return Shards(place, keys, min(count, total), total)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def deal_items(folder: Path, keys: ShardKeys, items: Iterable, count: int, *, digest) -> int:
    """Write the items of each shard, and have `digest` know all of them; return their number."""
    total, streams = 0, []
    with contextlib.ExitStack() as opened:
        for total, item in enumerate(items, 1):
            number, shard = divmod(total - 1, count)
            if not number:
                streams.append(opened.enter_context(create(folder / f"{shard}{ITEMS}")))
            payload = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
            keys.items(shard).write_record(streams[shard], number, payload)
            digest.update(hashlib.sha256(payload).digest())
    return total


def create(path: Path) -> BinaryIO:
    """Return a new file, which nobody else may write, open for writing."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def own_directory(directory: Path) -> None:
    """Make the directory; UserError where others could put something there, and for a link."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise cannot("write", directory, error) from None
    if not is_own(directory.lstat(), stat.S_ISDIR):
        raise UserError(
            f"{directory}: a link, or others may write there, where tasks leave their results; take"
            " the right from them (chmod go-w), or name another directory"
        )


def check_files(folder: Path) -> None:
    """Refuse a directory of work, by a UserError, with anything in it that is not a regular file of
    this user, or in which others may write; whoever reads one checks it again.
    """
    if not is_own(folder.lstat(), stat.S_ISDIR):
        raise damaged(folder / WORK)
    for entry in os.scandir(folder):
        mode = OTHERS if FILES.fullmatch(entry.name) else 0  # of logs: umask
        with contextlib.suppress(FileNotFoundError):  # a task took its part away
            if not is_own(entry.stat(follow_symlinks=False), mode=mode):
                raise damaged(Path(entry.path))


def read_work(folder: Path, key: bytes) -> tuple[ShardKeys, bytes]:
    """Return what the directory holds, and the pickle of what is done with an item; UserError where
    this key did not sign it for a directory of this name.
    """
    with open_own(path := folder / WORK) as stream:
        head = stream.read(SIZE + NONCE)
        keys = ShardKeys(key, head[:SIZE], head[SIZE:])
        contents = [content for content, _ in keys.work().read_records(stream)]
    if len(contents) != 1 or keys.name != folder.name:
        raise damaged(path)
    return keys, contents[0]


def describe_files(path) -> list[tuple]:
    """Return name, size and times of change of each file at `path`; nothing where there is none.
    An archive restores the time of the content, but not that of the file (ctime).
    """
    path = Path(path)
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return [
        (str(file), status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        for file in files
        if stat.S_ISREG((status := file.stat()).st_mode)
    ]


def run_shard(folder: Path, n: int) -> None:
    """Do task N of an array: write N.results, going on from what earlier attempts left."""
    results, part = folder / f"{n}{RESULTS}", folder / f"{n}.{os.urandom(6).hex()}{PART}"
    if results.exists():
        return
    check_files(folder)
    keys, content = read_work(folder, read_key(create=False))
    act, signer = None, keys.results(n)
    with create(part) as stream:
        done = copy_longest(folder.glob(f"{n}.*{PART}"), stream, signer)
        for number, payload in enumerate(whole_records(folder / f"{n}{ITEMS}", keys.items(n))):
            if number < done:
                continue
            act = act or pickle.loads(content).begin()
            answer = pickle.dumps(act(pickle.loads(payload)), pickle.HIGHEST_PROTOCOL)
            signer.write_record(stream, number, answer)
            stream.flush()
        os.fsync(stream.fileno())
    os.replace(part, results)
    for path in folder.glob(f"{n}.*{PART}"):
        path.unlink(missing_ok=True)


def copy_longest(parts: Iterable[Path], stream, signer: Signer) -> int:
    """Copy the records of the part that has the most, and return how many they are."""
    best, most, count = None, 0, 0
    for path in parts:
        with open_own(path) as part:
            here = sum(1 for _ in signer.read_records(part))
        if here > most:
            best, most = path, here
    if best:
        with open_own(best) as part:  # only what is sound now is copied
            for content, _ in signer.read_records(part):
                signer.write_record(stream, count, content)
                count += 1
    return count
