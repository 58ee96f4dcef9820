"""Outputs of several systems pooled into one list an utterance: plain files with one hypothesis a
line, the same utterances in each.

The path is several files with commas between them, or a directory of nothing but them. Utterance
ids are line numbers from 1, or, with ids=kaldi, the first word of each line. Every system gives one
hypothesis, in the order of the files, repeated texts included; its name, that of the file, is the
extra `system`, and a score `system:NAME` for each system is 1 for its own hypotheses and 0 for
others', so that tuning can trust systems differently. Where equal texts were merged (`lmtools
convert --dedup`), one hypothesis is of several systems.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from lmtools.base.atomic import atomic_directory, atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import OPENERS, read_lines
from lmtools.formats import kaldi_text
from lmtools.formats.checks import check_nbests, component, file_name
from lmtools.formats.edits import SYSTEM
from lmtools.formats.registry import list_children
from lmtools.types import TOTAL, Hypothesis, NBest

SUMMARY = (
    "outputs of several systems, plain text, one line an utterance: `a.txt,b.txt` or a directory"
)
OPTIONS = {
    "ids": (
        "lines (the default: utterances are numbered from 1), or kaldi (the first word of each line"
        " is the utterance id)"
    )
}


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
    """Return a name for each file: its own without suffixes of compression and text, or with its
    directory where that is not enough.
    """
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


def write(nbests: Iterable[NBest], path, ids: str = "lines") -> None:
    """Write one file a system, NAME.txt in the directory `path` or those that commas name; each
    list needs a hypothesis of each system.
    """
    if ids not in ("lines", "kaldi"):
        raise UserError(f"ids={ids}: neither lines nor kaldi; give one of them")
    nbests = check_nbests(nbests, path)
    first = next(nbests, None)
    names = [name for hyp in first.hyps for name in systems_of(hyp)] if first else []
    order = [name.removeprefix(SYSTEM) for name in first.hyps[0].scores] if names else []
    if {*names} <= {*order}:
        names.sort(key=order.index)
    if not names or not all(names) or len(set(names)) < len(names):
        raise UserError(
            f"{path}: the first list lacks hypotheses with the extra `system`, each another; keep"
            " these lists as jsonl"
        )
    with open_targets(names, path) as places, contextlib.ExitStack() as stack:
        streams = [stack.enter_context(atomic_text(place, follow=False)) for place in places]
        for number, nbest in enumerate((nbest for part in ((first,), nbests) for nbest in part), 1):
            where = f"{path}: utterance {nbest.utt!r}"
            if ids == "lines" and nbest.utt != str(number):
                raise UserError(
                    f"{where}: is not called by its line number, {number}; write with ids=kaldi"
                )
            for stream, text in zip(streams, order_texts(nbest, names, where), strict=True):
                stream.write(
                    " ".join([nbest.utt, *text.split()] if ids == "kaldi" else text.split()) + "\n"
                )


def order_texts(nbest: NBest, names: Sequence[str], where: str) -> list[str]:
    owned = [(name, hyp) for hyp in nbest.hyps for name in systems_of(hyp)]
    hypotheses = dict(owned)
    if sorted(name for name, _ in owned) != sorted(names):
        raise UserError(
            f"{where}: has not one hypothesis of each system ({', '.join(names)}); keep these lists"
            " as jsonl"
        )
    for hyp in nbest.hyps:
        others = [name for name in hyp.scores if not name.startswith(SYSTEM)]
        if others and TOTAL not in hyp.scores:
            listed = ", ".join(sorted(others))
            raise UserError(
                f"{where}: has the scores {listed}, for which plain text has no place; keep these"
                " lists as jsonl"
            )
    return [hypotheses[name].text for name in names]


def systems_of(hyp: Hypothesis) -> list[str]:
    votes = [n.removeprefix(SYSTEM) for n, v in hyp.scores.items() if n.startswith(SYSTEM) and v]
    return votes or [hyp.extra.get("system", "")]


@contextlib.contextmanager
def open_targets(names: Sequence[str], path) -> Iterator[list[Path]]:
    """Yield the path to write each system to: the files that `path` names, or temporary ones that
    become the directory `path` in the end.
    """
    places = [Path(part) for part in str(path).split(",") if part]
    if len(places) > 1:
        if len(places) != len(names):
            raise UserError(
                f"{path}: {len(places)} files for {len(names)} systems; name one a system, or a"
                " directory"
            )
        yield places
        return
    for name in names:
        file_name(name, str(path), "system")
    with atomic_directory(path, f"{names[0]}.txt") as temporary:
        yield [temporary / f"{name}.txt" for name in names]
