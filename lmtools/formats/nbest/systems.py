"""Outputs of several systems pooled into one list an utterance: plain files with one hypothesis a
line, the same utterances in each.

The path is several files with commas between them, or a directory of nothing but them. Utterance
ids are line numbers from 1, or, with ids=kaldi, the first word of each line. Every system gives one
hypothesis, in the order of the files, repeated texts included; its name, that of the file, is the
extra `system`, and a score `system:NAME` for each system is 1 for its own hypotheses and 0 for
others', so that tuning can trust systems differently. Where equal texts were merged (`lmtools
convert --dedup`), one hypothesis is of several systems. The format is read, not written.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import OPENERS, read_lines
from lmtools.base.log import say
from lmtools.formats import kaldi_text
from lmtools.formats.checks import component, refuse_write
from lmtools.formats.edits import SYSTEM
from lmtools.formats.registry import list_children
from lmtools.types import Hypothesis, NBest

SUMMARY = (
    "outputs of several systems, plain text, one line an utterance: `a.txt,b.txt` or a directory"
)
OPTIONS = {
    "ids": (
        "lines (the default: utterances are numbered from 1), or kaldi (the first word of each line"
        " is the utterance id)"
    )
}

write = refuse_write


def recognises(path: Path, first: str) -> bool:
    """Return False: any text could be a system's output."""
    return False


def read(path, ids: str = "lines") -> Iterator[NBest]:
    """Read the pooled lists; UserError if the systems have not all the same utterances."""
    files = files_of(path)
    names = name_systems(files)
    pool = {"lines": by_line, "kaldi": by_id}.get(ids)
    if not pool:
        raise UserError(f"ids={ids}: neither lines nor kaldi; give one of them")
    say(f"{path}: {names[0]} comes first in each list, as the name of its file does")
    indicators = [{f"{SYSTEM}{other}": float(other == name) for other in names} for name in names]
    for utt, texts in pool(files):
        hyps = zip(texts, indicators, names, strict=True)
        yield NBest(
            utt, tuple(Hypothesis(text, scores, {"system": name}) for text, scores, name in hyps)
        )


def files_of(path) -> list[Path]:
    if Path(path).is_dir():
        files = [child for child in list_children(path) if not child.name.startswith(".")]
    else:
        files = [Path(part) for part in str(path).split(",") if part]
    if not files:
        raise UserError(
            f"{path}: no files; give the systems' outputs, `a.txt,b.txt` or a directory of them"
        )
    return files


def name_systems(files: Sequence[Path]) -> list[str]:
    """Return a name for each file: its own, or with its directory where needed."""
    short = [strip_suffix(file.name) for file in files]
    names = short if len(set(short)) == len(short) else [strip_suffix(str(file)) for file in files]
    for file, name in zip(files, names, strict=True):
        component(name, str(file))
        if names.count(name) > 1:
            raise UserError(
                f"{file}: two systems are called {name!r}; give each output once, under its own"
                " name"
            )
    return names


def strip_suffix(name: str) -> str:
    """Return `name` without .gz, .xz or .bz2, and without .txt."""
    name = name.removesuffix(Path(name).suffix) if Path(name).suffix in OPENERS else name
    return name.removesuffix(".txt")


def by_line(files: Sequence[Path]) -> Iterator[tuple[str, list[str]]]:
    """Yield (number, texts) of every line."""
    for number, lines in enumerate(zip_longest(*[read_lines(file) for file in files]), 1):
        if None in lines:
            short = files[lines.index(None)]
            long = next(file for file, line in zip(files, lines, strict=True) if line)
            raise UserError(
                f"{short}:{number}: the file ends where {long} goes on; give outputs for the same"
                " utterances"
            )
        yield str(number), [" ".join(text.split()) for _, text in lines]


def by_id(files: Sequence[Path]) -> Iterator[tuple[str, list[str]]]:
    """Yield (id, texts) of every utterance, in the first file's order."""
    tables = [kaldi_text.read(file) for file in files]
    for file, table in zip(files, tables, strict=True):
        if alone := table.keys() ^ tables[0].keys():
            utt = min(alone)
            lacking = file if utt in tables[0] else files[0]
            raise UserError(
                f"{lacking}: no utterance {utt!r}, which other systems have; add a line with its id"
            )
    for utt in tables[0]:
        yield utt, [table[utt] for table in tables]
