#!/usr/bin/env python3
"""get_pairs.py stsb|sick OUT URL [DIRECTORY]: the sentence pairs of the STS Benchmark or of SICK,
as published, in OUT.

They come out of the archives that URL has or, if DIRECTORY is not empty, are that directory's,
plain, .gz or .xz. stsb.sha256 and sick.sha256 are the checksums of the files inside the archives;
nobody publishes those of the archives. A file of one's own that differs is taken, and it is said.
What is there already is not fetched again.
"""

import hashlib
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from lmtools.base.atomic import atomic_binary, atomic_text
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import OPENERS, read_lines
from lmtools.vectors import pairs

UTILS = Path(__file__).resolve().parents[3] / "utils"
ARCHIVES = {
    "stsb": {"Stsbenchmark.tar.gz": ("sts-dev.csv", "sts-test.csv")},
    "sick": {
        "sick_trial.zip": ("SICK_trial.txt",),
        "sick_test_annotated.zip": ("SICK_test_annotated.txt",),
    },
}
# what the release in one file, SICK.txt, calls them
SETS = {"SICK_trial.txt": "trial", "SICK_test_annotated.txt": "test"}
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, OSError)


def sums(corpus: str) -> dict[str, str]:
    """Return the SHA-256 of each published file."""
    lines = Path(__file__).with_name(f"{corpus}.sha256").read_text().splitlines()
    return {name: digest for digest, name in map(str.split, lines)}


def fetched(corpus: str, out: Path, url: str) -> None:
    """Fetch the files out of the archives at `url`; UserError if they are not the published ones,
    without keeping the archive.
    """
    for archive, names in ARCHIVES[corpus].items():
        missing = {
            name: sums(corpus)[name] for name in names if not same(out / name, sums(corpus)[name])
        }
        if not missing:
            continue
        path = out / archive
        call("fetch.py", f"{url}/{archive}", path)
        try:
            for name, digest in missing.items():
                extract(path, name, out / name, digest)
        except (ValueError, *DAMAGED) as error:
            path.unlink()
            path.with_name(f"{archive}.sha256").unlink(missing_ok=True)
            remedy = (
                f"removed: run again, or name a directory with {', '.join(names)} as --pairs-dir"
            )
            raise UserError(f"{url}/{archive}: {error}; {remedy}") from None


def extract(archive: Path, name: str, out: Path, digest: str) -> None:
    """Write the one file called `name` in the archive, whatever its folder; ValueError if it is not
    there or has another SHA-256.
    """
    content = next(
        (body for path, body in members(archive) if PurePosixPath(path).name == name), None
    )
    if content is None:
        raise ValueError(f"has no {name}")
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"its {name} is not the published one (SHA-256 {digest})")
    with atomic_binary(out) as stream:
        stream.write(content)


def members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file in a .zip or .tar.gz."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as files:
            yield from ((name, files.read(name)) for name in files.namelist())
    else:
        with tarfile.open(archive) as files:
            yield from (
                (member.name, files.extractfile(member).read())
                for member in files
                if member.isfile()
            )


def given(corpus: str, out: Path, directory: Path) -> None:
    """Copy the user's files; print a line for each that is not the published one."""
    names = [name for group in ARCHIVES[corpus].values() for name in group]
    whole = [
        directory / f"SICK.txt{suffix}"
        for suffix in ("", *OPENERS)
        if (directory / f"SICK.txt{suffix}").exists()
    ]
    if corpus == "sick" and whole and not list(directory.glob("SICK_trial.txt*")):
        header, *rows = (line for _, line in read_lines(whole[0]))
        for name in names:
            pairs.read(whole[0], f"sick:set={SETS[name]}")  # says what is wrong with it
            place = header.split("\t").index(pairs.SET[0])
            own = [row for row in rows if row.split("\t")[place].lower() == SETS[name]]
            with atomic_text(out / name) as stream:
                stream.writelines(f"{row}\n" for row in (header, *own))
    else:
        call("unpack.py", directory, out, *names)
    for name in names:
        if not same(out / name, sums(corpus)[name]):
            print(
                f"{name}: not the file that is published under this name; figures on it do not"
                " compare with others'"
            )


def call(script: str, *args) -> None:
    """Run a script of utils; its exit status, if it fails."""
    command = [sys.executable, str(UTILS / script), *map(str, args)]
    if status := subprocess.run(command).returncode:
        sys.exit(status)


def same(path: Path, digest: str) -> bool:
    """Return whether the file is there with this SHA-256."""
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


if __name__ == "__main__":
    called, target, address, *files_given = sys.argv[1:]
    with exit_with_message():
        if files_given and files_given[0]:
            given(called, Path(target), Path(files_given[0]))
        else:
            fetched(called, Path(target), address)
