"""What recipes' local scripts do with files of text: check a small corpus, unpack it, write whole or not at all. Standard library only."""

import contextlib
import gzip
import hashlib
import json
import lzma
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

OPENERS = {"": open, ".gz": gzip.open, ".xz": lzma.open}


def check(corpus: Path) -> None:
    """SystemExit if a file of the corpus's SHA256SUMS, where it has them, is missing or differs."""
    sums = corpus / "SHA256SUMS"
    for line in sums.read_text().splitlines() if sums.exists() else ():
        expected, name = line.split(maxsplit=1)
        path = corpus / name.lstrip("*")
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            sys.exit(f"{path}: missing, or not what {sums} says; restore it from the repository")


def unpack(corpus: Path, names: Sequence[str], out: Path) -> None:
    """The files `names` of the corpus (each plain, .gz or .xz), decompressed into the directory `out`, each whole or not at all."""
    for name in names:
        found = [(corpus / f"{name}{suffix}", opener) for suffix, opener in OPENERS.items() if (corpus / f"{name}{suffix}").exists()]
        if not found:
            sys.exit(f"{corpus / name}: neither it nor {name}.gz or {name}.xz is there; give a directory with {', '.join(names)}")
        path, opener = found[0]
        with opener(path, "rb") as packed, written(out / name) as plain:
            shutil.copyfileobj(packed, plain)


def copy(path: Path, out: Path) -> None:
    """The file as it is, whole or not at all."""
    with written(out) as text, open(path, "rb") as lines:
        shutil.copyfileobj(lines, text)


def references(lists: Path, out: Path) -> None:
    """The references of N-best lists, JSON lines, as Kaldi text; SystemExit if a list has none."""
    with written(out) as text, open(lists, "rb") as lines:
        for number, line in enumerate(lines, 1):
            nbest = json.loads(line)
            if nbest.get("ref") is None:
                sys.exit(f"{lists}:{number}: utterance '{nbest['utt']}' has no reference; add \"ref\"")
            text.write(f"{nbest['utt']} {nbest['ref']}\n".encode())


@contextlib.contextmanager
def written(path: Path):
    """A binary stream that becomes `path` when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        with open(temporary, "wb") as stream:
            yield stream
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
