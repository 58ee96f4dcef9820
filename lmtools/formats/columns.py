"""Columns of plain numbers, one a hypothesis, that need no header: what another program says of the
hypotheses of lists.

- a number a line, in the order of the lists;
- or lines `utt rank value` in any order, ranks from 1;
- or a directory with a file an utterance, UTT, UTT.gz or UTT.score, with a number a line: the score
  directories of SRILM's nbest-optimize and rescore-reweight.

Numbers are taken as they stand: tuning finds their scale. They say nothing of the texts that they
are of, so only their number is checked.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats import scores
from lmtools.formats.checks import number
from lmtools.formats.nbest import srilm
from lmtools.types import NBest, ScoreTable

RANK = re.compile(r"[0-9]{1,9}")
REMEDY = "give one number for each hypothesis, in the order of the lists, or lines `utt rank value`"


def read_column_file(path, nbests: Sequence[NBest], source) -> ScoreTable:
    """Read the column in `path`, a score file or plain numbers (without signature, tokens or hash),
    of the lists from `source`. UserError with the line for what is neither.
    """
    if Path(path).is_dir():
        return plain_table(nbests, read_directory(path, nbests, source))
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        raise UserError(f"{path}: the file is empty; {REMEDY}")
    lines = chain([first], lines)
    words = first[1].split()
    if first[1].startswith("#") or scores.ROW.fullmatch(first[1]):
        return scores.read(path, lines)
    if len(words) == 3:
        return plain_table(nbests, read_ranked(path, lines, nbests, source))
    if len(words) == 1:
        return plain_table(nbests, read_ordered(path, lines, nbests, source))
    raise UserError(
        f"{path}:1: {len(words)} fields; a column is a score file of `lmtools score`, a number a"
        " line, or lines `utt rank value`"
    )


def plain_table(nbests: Sequence[NBest], values: Iterable[Sequence[float]]) -> ScoreTable:
    rows = zip(nbests, values, strict=True)
    return ScoreTable({nbest.utt: np.array(row, dtype=np.float64) for nbest, row in rows}, {})


def read_numbers(path, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[str, float]]:
    """Yield (where, number) of every line; UserError for lines that are not one finite number."""
    for line, text in lines:
        where = f"{path}:{line}"
        if len(text.split()) != 1:
            raise UserError(f"{where}: {len(text.split())} fields; expected one number a line")
        yield where, number(text.strip(), where, "the line")


def read_ordered(
    path, lines: Iterable[tuple[int, str]], nbests: Sequence[NBest], source
) -> list[list[float]]:
    due = sum(len(nbest.hyps) for nbest in nbests)
    values: list[float] = []
    where = str(path)
    for where, value in read_numbers(path, lines):
        if len(values) == due:
            raise UserError(f"{where}: {source} has {due} hypotheses, and no more; {REMEDY}")
        values.append(value)
    if len(values) < due:
        nbest, rank = list(list_ranks(nbests))[len(values)]
        raise UserError(
            f"{where}: the file ends after {len(values)} numbers, and {source} has {due} hypotheses"
            f" (the next is {rank} of {nbest.utt!r}); {REMEDY}"
        )
    rest = iter(values)
    return [[next(rest) for _ in nbest.hyps] for nbest in nbests]


def list_ranks(nbests: Sequence[NBest]) -> Iterator[tuple[NBest, int]]:
    return ((nbest, rank) for nbest in nbests for rank in range(1, len(nbest.hyps) + 1))


def read_ranked(
    path, lines: Iterable[tuple[int, str]], nbests: Sequence[NBest], source
) -> list[list[float]]:
    """Read the numbers of each list, from lines `utt rank value` in any order."""
    values: dict[str, list[float | None]] = {
        nbest.utt: [None] * len(nbest.hyps) for nbest in nbests
    }
    for line, text in lines:
        where, words = f"{path}:{line}", text.split()
        if len(words) != 3:
            raise UserError(f"{where}: {len(words)} fields; expected `utt rank value`")
        utt, rank, value = words
        if utt not in values:
            raise UserError(
                f"{where}: {source} has no utterance {utt!r}; give numbers for these very lists"
            )
        if not RANK.fullmatch(rank) or not 1 <= int(rank) <= len(values[utt]):
            raise UserError(
                f"{where}: rank {rank[:40]!r} is not from 1 to {len(values[utt])}, the hypotheses"
                f" of {utt!r} in {source}; count ranks from 1"
            )
        if values[utt][int(rank) - 1] is not None:
            raise UserError(
                f"{where}: a second number for hypothesis {rank} of {utt!r}; keep one of them"
            )
        values[utt][int(rank) - 1] = number(value, where, "the value")
    missing = [
        (nbest, rank) for nbest, rank in list_ranks(nbests) if values[nbest.utt][rank - 1] is None
    ]
    if missing:
        nbest, rank = missing[0]
        raise UserError(
            f"{path}: no number for {len(missing)} hypotheses of {source}, first {rank} of"
            f" {nbest.utt!r}; {REMEDY}"
        )
    return [values[nbest.utt] for nbest in nbests]


def read_directory(path, nbests: Sequence[NBest], source) -> list[list[float]]:
    """Read the numbers of each list, from a directory with a file an utterance."""
    files: dict[str, Path] = {}
    for file in srilm.list_files(Path(path)):
        utt = srilm.utterance_of(file)
        if utt in files:
            raise UserError(
                f"{file}: utterance {utt!r} is also in {files[utt].name}; remove one of them"
            )
        files[utt] = file
    known = {nbest.utt for nbest in nbests}
    for utt, file in files.items():
        if utt not in known:
            raise UserError(f"{file}: {source} has no utterance {utt!r}; remove the file")
    values = []
    for nbest in nbests:
        if nbest.utt not in files:
            if nbest.hyps:
                raise UserError(
                    f"{path}: no file for utterance {nbest.utt!r} of {source}; add one with a"
                    " number for each hypothesis"
                )
            values.append([])
            continue
        file = files[nbest.utt]
        values += read_ordered(file, read_lines(file), [nbest], f"{nbest.utt!r} in {source}")
    return values
