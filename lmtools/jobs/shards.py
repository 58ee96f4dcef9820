"""The shards of a piece of work, in a directory that all machines see.

DIRECTORY/DIGEST/ is one call's work: `work` (what is done with an item), N.items, N.log, and, once
task N has ended well, N.results. DIGEST covers the work, all items, their split and what the work
reads by name, so that results of anything else are never taken for these. Until N.results is there,
whole, under its name, each attempt writes its own N.*.part; the next one goes on behind the last
whole result of the longest.

Items and results are pickles, as between processes of one machine; the directory has to be the
user's own (SECURITY.md).
"""

import contextlib
import hashlib
import itertools
import os
import pickle
import shutil
import stat
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from lmtools.errors import UserError

WORK, ITEMS, RESULTS, LOG, PART = "work", ".items", ".results", ".log", ".part"
LENGTH, CHECK = struct.Struct("<Q"), 16  # bytes before a record, and of its checksum


class Shards:
    """The shards in `folder`: how many, and the items of all together."""

    def __init__(self, folder: Path, count: int, items: int):
        self.folder, self.count, self.items = folder, count, items

    def missing(self) -> list[int]:
        """Numbers of the shards without results."""
        there = set(os.listdir(self.folder))  # a listing is what network file systems refresh
        return [n for n in range(self.count) if f"{n}{RESULTS}" not in there]

    def results(self) -> Iterator:
        """The result of each item, in order, each exactly once; UserError where a file is not
        whole.
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
        """The records of shard N's results; UserError where one is not what was written there."""
        path, end = self.folder / f"{n}{RESULTS}", 0
        for record, end in read_records(path):  # noqa: B007
            yield record
        if end != path.stat().st_size:
            raise damaged(path)

    def forget(self) -> None:
        """Take away what was done."""
        for path in [*self.folder.glob(f"*{RESULTS}"), *self.folder.glob(f"*{PART}")]:
            path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Take it all away."""
        shutil.rmtree(self.folder, ignore_errors=True)


def damaged(path: Path) -> UserError:
    """What to say of results that are not those that a task wrote."""
    return UserError(f"{path}: damaged; remove it and run the same command again")


def write_shards(
    directory: Path,
    work: Callable,
    load: Callable | None,
    items: Iterable,
    count: int,
    reads: Iterable = (),
) -> Shards:
    """Items dealt out to `count` shards (fewer where they are fewer), one after the other; those of
    an earlier call that was the same, with the results that are there, if it left any.
    """
    own_directory(directory)
    folder = Path(tempfile.mkdtemp(dir=directory, prefix=".new-"))
    try:
        content = pickle.dumps((work, load), pickle.HIGHEST_PROTOCOL)
        (folder / WORK).write_bytes(content)
        whole = hashlib.sha256(content)
        whole.update(repr((count, *map(describe_files, reads))).encode())
        total, streams = 0, []
        with contextlib.ExitStack() as opened:
            for item in items:
                if len(streams) < count:
                    path = folder / f"{len(streams)}{ITEMS}"
                    streams.append(opened.enter_context(open(path, "wb")))
                payload = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
                write_record(streams[total % count], total // count, payload)
                whole.update(hashlib.sha256(payload).digest())
                total += 1
        place = directory / whole.hexdigest()[:24]
        if not place.exists():
            os.rename(folder, place)
        return Shards(place, len(streams), total)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def own_directory(directory: Path) -> None:
    """Make the directory; UserError where others could put something there that is unpickled."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.stat()
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UserError(
            f"{directory}: others may write there, and jobs run what they find there; take the"
            " right from them (chmod go-w), or name another directory"
        )


def describe_files(path) -> list[tuple]:
    """Name, size and time of change of each file at `path`; nothing where there is none."""
    path = Path(path)
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return [
        (str(file), found.st_size, found.st_mtime_ns)
        for file in files
        if stat.S_ISREG((found := file.stat()).st_mode)
    ]


def write_record(stream, number: int, payload: bytes) -> None:
    """Append a record, whose checksum covers its number, so that none comes twice or elsewhere."""
    stream.write(LENGTH.pack(len(payload)) + checksum(number, payload) + payload)


def checksum(number: int, payload: bytes) -> bytes:
    return hashlib.sha256(LENGTH.pack(number) + payload).digest()[:CHECK]


def read_records(path: Path) -> Iterator[tuple[bytes, int]]:
    """Pairs (record, where it ends), up to the first that is not whole."""
    with open(path, "rb") as stream:
        for number in itertools.count():
            head = stream.read(LENGTH.size + CHECK)
            if len(head) < LENGTH.size + CHECK:
                return
            payload = stream.read(LENGTH.unpack_from(head)[0])
            if checksum(number, payload) != head[LENGTH.size :]:
                return
            yield payload, stream.tell()


def run_shard(folder: Path, n: int) -> None:
    """Task N of an array: write N.results, going on from what earlier attempts left."""
    results, own = folder / f"{n}{RESULTS}", folder / f"{n}.{os.urandom(6).hex()}{PART}"
    if results.exists():
        return
    work, load = pickle.loads((folder / WORK).read_bytes())
    bound = None
    with open(own, "xb") as stream:
        done = copy_longest(folder.glob(f"{n}.*{PART}"), stream)
        for number, (payload, _) in enumerate(read_records(folder / f"{n}{ITEMS}")):
            if number < done:
                continue
            if bound is None:
                bound = partial(work, load()) if load else work
            answer = pickle.dumps(bound(pickle.loads(payload)), pickle.HIGHEST_PROTOCOL)
            write_record(stream, number, answer)
            stream.flush()
        os.fsync(stream.fileno())
    os.replace(own, results)
    for path in folder.glob(f"{n}.*{PART}"):
        path.unlink(missing_ok=True)


def copy_longest(parts: Iterable[Path], stream) -> int:
    """Copy the whole records of the part that has the most; how many they are."""
    best, count = None, 0
    for path in parts:
        ends = [end for _, end in read_records(path)]
        if len(ends) > count:
            best, count, size = path, len(ends), ends[-1]
    if best:
        with open(best, "rb") as source:
            stream.write(source.read(size))
    return count
