"""ScoreTable files: a header `# lmtools-scores {signature}`, then `utt#rank TAB log-probability TAB tokens`, ranks from 1.

Log-probabilities are natural, higher is better, the end of sentence counted. The id may hold '#': the last one ends it.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from lmtools.errors import UserError
from lmtools.files import atomic_text, read_lines
from lmtools.formats.checks import identifier, number
from lmtools.types import NBest, ScoreTable

HEADER = "# lmtools-scores "
ROW = re.compile(r"(\S+)#([0-9]{1,9})\t(\S+)\t([0-9]{1,9})")


def read(path) -> ScoreTable:
    """The table in `path`; UserError with the line of a row that is malformed, out of rank order, or not finite."""
    lines = read_lines(path)
    signature = header(path, next(lines, (1, ""))[1])
    log_prob: dict[str, list[float]] = {}
    tokens: dict[str, list[int]] = {}
    for line, utt, rank, value, count in rows(path, lines):
        expected = len(log_prob.setdefault(utt, [])) + 1
        if rank != expected:
            raise UserError(f"{path}:{line}: utterance {utt!r} has rank {rank} where {expected} is due; score the lists again")
        log_prob[utt].append(value)
        tokens.setdefault(utt, []).append(count)
    return ScoreTable(
        {utt: np.array(values) for utt, values in log_prob.items()},
        {utt: np.array(counts, dtype=np.int64) for utt, counts in tokens.items()},
        signature,
    )


def header(path, line: str) -> Mapping[str, str]:
    """The signature in the first line."""
    try:
        signature = json.loads(line.removeprefix(HEADER)) if line.startswith(HEADER) else None
    except (ValueError, RecursionError):
        signature = None
    if not isinstance(signature, dict):
        raise UserError(f"{path}:1: no header; score files start with `{HEADER}{{...}}`, as `lmtools score` writes them")
    return signature


def rows(path, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str, int, float, int]]:
    """(line number, utterance, rank, log-probability, tokens) of every row."""
    for line, row in lines:
        match = ROW.fullmatch(row)
        if not match:
            raise UserError(f"{path}:{line}: expected `utt#rank TAB log-probability TAB tokens`; score the lists again")
        yield line, match[1], int(match[2]), number(match[3], f"{path}:{line}", "log-probability"), int(match[4])


def write(table: ScoreTable, path) -> None:
    """Write `table` so that `read` gives back the same floats; UserError for a score that is not finite."""
    with writing(path, table.signature) as add:
        for utt, values in table.log_prob.items():
            add(utt, values, table.tokens[utt])


@contextlib.contextmanager
def writing(path, signature: Mapping[str, str]) -> Iterator[Callable[[str, Sequence[float], Sequence[int]], None]]:
    """A function that writes the scores and tokens of one utterance to `path`, at once where that is standard output."""
    with atomic_text(path) as out:
        out.write(HEADER + json.dumps(dict(signature), ensure_ascii=False, sort_keys=True) + "\n")

        def add(utt, values, counts):
            identifier(utt, str(path))
            for rank, (value, count) in enumerate(zip(values, counts, strict=True), 1):
                if not np.isfinite(value):
                    raise UserError(f"{path}: the score of {utt}#{rank} is {value}; find out why the model gave no number")
                out.write(f"{utt}#{rank}\t{float(value)!r}\t{int(count)}\n")
            if str(path) == "-":
                out.flush()

        yield add


def columns(table: ScoreTable, nbests: Sequence[NBest], path) -> list[np.ndarray]:
    """The log-probabilities of `nbests`' hypotheses, one array (hypotheses,) a list, joined by utterance and rank; checked."""
    check(table, nbests, path)
    nothing = np.zeros(0)
    return [table.log_prob.get(nbest.utt, nothing) for nbest in nbests]


def check(table: ScoreTable, nbests: Sequence[NBest], path) -> None:
    """UserError that names the first utterance that `table` lacks, has too much, or has in another length than `nbests`."""
    lengths = {nbest.utt: len(nbest.hyps) for nbest in nbests}
    missing = [utt for utt, length in lengths.items() if length and utt not in table.log_prob]
    extra = [utt for utt in table.log_prob if utt not in lengths]
    other = [utt for utt, values in table.log_prob.items() if utt in lengths and len(values) != lengths[utt]]
    remedy = "score these very lists again"
    if missing:
        raise UserError(f"{path}: no scores for {len(missing)} of {len(lengths)} utterances, first {missing[0]!r}; {remedy}")
    if extra:
        raise UserError(f"{path}: scores for {len(extra)} utterances that the lists do not have, first {extra[0]!r}; {remedy}")
    if other:
        utt = other[0]
        found = f"{len(table.log_prob[utt])} scores for the {lengths[utt]} hypotheses of {utt!r}"
        raise UserError(f"{path}: {found} ({len(other)} such lists); {remedy}")
