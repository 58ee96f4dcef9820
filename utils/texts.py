"""What recipes' local scripts do with files of text: check a small corpus, unpack it, write whole
or not at all. Standard library only.
"""

import contextlib
import json
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

# lmtools.files needs the standard library only, too
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lmtools import files
from lmtools.errors import UserError, one_line
from lmtools.files import atomic_path, cannot, new_directory, sha256

OPENERS = {"": open, **files.OPENERS}
# the last two of odd headers and of encryption
DAMAGED = (*files.DAMAGED, tarfile.TarError, zipfile.BadZipFile, RuntimeError, ValueError)


def check(corpus: Path) -> None:
    """SystemExit if a file of the corpus's SHA256SUMS, where it has them, is missing or differs."""
    sums = corpus / "SHA256SUMS"
    for line in sums.read_text().splitlines() if sums.exists() else ():
        expected, _, name = line.partition(" ")
        path = corpus / name.lstrip(" *")
        if not path.is_file() or sha256(path) != expected:
            sys.exit(f"{path}: missing, or not what {sums} says; restore it from the repository")


def unpack(corpus: Path, names: Sequence[str], out: Path) -> None:
    """The files `names` of the corpus (each plain, .gz or .xz), decompressed into the directory
    `out`, each whole or not at all.
    """
    for name in names:
        found = [
            (corpus / f"{name}{suffix}", opener)
            for suffix, opener in OPENERS.items()
            if (corpus / f"{name}{suffix}").exists()
        ]
        if not found:
            sys.exit(
                f"{corpus / name}: neither it nor {name}.gz or {name}.xz is there; give a directory"
                f" with {', '.join(names)}"
            )
        path, opener = found[0]
        with written(out / name) as plain, readable(path), opener(path, "rb") as packed:
            shutil.copyfileobj(packed, plain)


def unpack_tar(archive: Path, out: Path) -> None:
    """The regular files of a tar archive in the directory `out`, all or none; folders inside the
    archive are left out.

    SystemExit for a damaged archive, and for names that are none of files, or come twice.
    """
    with told(), new_directory(out) as folder, readable(archive), tarfile.open(archive) as packed:
        for member in packed:
            name = Path(member.name).name
            if not member.isfile():
                continue
            if name in ("", "..") or "\0" in name or member.issparse() or (folder / name).exists():
                sys.exit(
                    f"{archive}: refused: its member {member.name[:80]!a} has no file's name, or"
                    " one that came before; make it again"
                )
            with open(folder / name, "wb") as plain:
                shutil.copyfileobj(packed.extractfile(member), plain)


def copy(path: Path, out: Path) -> None:
    """The file as it is, whole or not at all."""
    with written(out) as text, open(path, "rb") as lines:
        shutil.copyfileobj(lines, text)


def references(lists: Path, out: Path) -> None:
    """The references of N-best lists, JSON lines, as Kaldi text; SystemExit if a list has none."""
    with written(out) as text, open(lists, "rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                nbest = json.loads(line)
                utt, ref = nbest["utt"], nbest.get("ref")
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
                sys.exit(
                    f"{lists}:{number}: no list of hypotheses; write one utterance a line, as"
                    " lmtools convert does"
                )
            if ref is None:
                sys.exit(f"{lists}:{number}: utterance '{utt}' has no reference; add \"ref\"")
            text.write(f"{utt} {ref}\n".encode())


@contextlib.contextmanager
def written(path: Path):
    """A binary stream that becomes `path` when the block ends well; SystemExit where it cannot be
    written.
    """
    with told(), atomic_path(path, follow=False) as temporary, open(temporary, "wb") as stream:
        yield stream


@contextlib.contextmanager
def readable(archive: Path) -> Iterator[None]:
    """SystemExit where what is unpacked from `archive` shows that it is damaged."""
    try:
        yield
    except DAMAGED as error:
        sys.exit(
            one_line(UserError(f"{archive}: damaged archive ({error}); remove it and run again"))
        )
    except OSError as error:
        if error.filename != str(archive):
            raise
        sys.exit(one_line(cannot("read", archive, error)))


@contextlib.contextmanager
def told() -> Iterator[None]:
    """SystemExit with its message for a UserError."""
    try:
        yield
    except UserError as error:
        sys.exit(one_line(error))
