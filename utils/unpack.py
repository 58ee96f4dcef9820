#!/usr/bin/env python3
"""unpack.py DIRECTORY OUT NAME...: check a small corpus against its SHA256SUMS, if it has them, and
unpack files of it into OUT, each whole or not at all.

DIRECTORY holds each NAME plain, .gz, .xz or .bz2; one written NAME? may be missing, and is then
removed from OUT. A NAME SET.KIND.tar.xz may be missing too; the files in it come into OUT/KIND/SET,
all or none, without the archive's folders.
"""

import shutil
import sys
import tarfile
from pathlib import Path

from lmtools.base.atomic import atomic_binary, new_directory
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import OPENERS, sha256, unpacking

SUFFIXES = {"": open, **OPENERS}


def main(corpus: Path, out: Path, *names: str) -> None:
    """Check, then unpack."""
    check_sums(corpus)
    for name in names:
        if not name.endswith(".tar.xz"):
            needed = [name for name in names if not name.endswith("?")]
            unpack(corpus, name.removesuffix("?"), out, needed, name.endswith("?"))
        elif (corpus / name).exists():
            part, kind, *_ = name.split(".")
            unpack_tar(corpus / name, out / kind / part)


def check_sums(corpus: Path) -> None:
    """Raise UserError if a file of the corpus's SHA256SUMS, where it has them, is missing or
    differs.
    """
    sums = corpus / "SHA256SUMS"
    for line in sums.read_text().splitlines() if sums.exists() else ():
        expected, _, name = line.partition(" ")
        path = corpus / name.lstrip(" *")
        if not path.is_file() or sha256(path) != expected:
            raise UserError(
                f"{path}: missing, or not what {sums} says; restore it from the repository"
            )


def unpack(corpus: Path, name: str, out: Path, needed: list[str], optional: bool) -> None:
    """Decompress the file `name`; UserError, naming all that are needed, if it is not there and not
    optional.
    """
    members = [
        (corpus / f"{name}{suffix}", opener)
        for suffix, opener in SUFFIXES.items()
        if (corpus / f"{name}{suffix}").exists()
    ]
    if not members and optional:
        (out / name).unlink(missing_ok=True)
        return
    if not members:
        raise UserError(
            f"{corpus / name}: neither it nor {name}.gz or {name}.xz is there; give a directory"
            f" with {', '.join(needed)}"
        )
    path, opener = members[0]
    with atomic_binary(out / name) as plain, unpacking(path), opener(path, "rb") as packed:
        shutil.copyfileobj(packed, plain)


def unpack_tar(archive: Path, out: Path) -> None:
    """Extract the regular files of an archive; UserError for names that are none of files, or come
    twice.
    """
    with new_directory(out) as folder, unpacking(archive), tarfile.open(archive) as packed:
        for member in packed:
            name = Path(member.name).name
            if not member.isfile():
                continue
            if name in ("", "..") or "\0" in name or member.issparse() or (folder / name).exists():
                raise UserError(
                    f"{archive}: refused: its member {member.name[:80]!a} has no file's name, or"
                    " one that came before; make it again"
                )
            with open(folder / name, "wb") as plain:
                shutil.copyfileobj(packed.extractfile(member), plain)


if __name__ == "__main__":
    with exit_with_message():
        main(*map(Path, sys.argv[1:3]), *sys.argv[3:])
