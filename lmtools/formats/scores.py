"""ScoreTable files: a header `# lmtools-scores {signature}`, then `utt#rank TAB log-probability TAB
tokens`, ranks from 1.

Log-probabilities are natural, higher is better, the end of sentence counted. The id may hold '#':
the last one ends it. Each line ends in a TAB and a check, so that a row vouches for itself and for
the text that it was made of: see `vouch`. Files without any check are read too.
"""

import contextlib
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.checks import identifier, number
from lmtools.types import NBest, ScoreTable

HEADER = "# lmtools-scores "
ROW = re.compile(r"(\S+)#([0-9]{1,9})\t(\S+)\t([0-9]{1,9})(?:\t([0-9a-f]{12}))?")
REMEDY = "score these very lists again"


def vouch(row: str, text: str = "") -> str:
    """Return the check of a line: 12 hexadecimal digits of the SHA-256 of the line, a TAB, and the
    single-spaced text of its hypothesis.
    """
    return hashlib.sha256(
        f"{row}\t{' '.join(text.split())}".encode("utf-8", "surrogatepass")
    ).hexdigest()[:12]


def spell_row(utt: str, rank: int, value: float, count: int) -> str:
    """Return a row without its check; a float has one spelling only."""
    return f"{utt}#{rank}\t{float(value)!r}\t{int(count)}"


def read(path, lines: Iterator[tuple[int, str]] | None = None) -> ScoreTable:
    """Read the table in `path`, or in its numbered `lines` where something has read them; UserError
    with the line of a row that is malformed, out of rank order, not finite, or seen to be damaged.
    """
    lines = read_lines(path) if lines is None else lines
    first = next(lines, (1, ""))[1]
    signature, checked = header(path, first), has_check(first)
    log_prob: dict[str, list[float]] = {}
    tokens: dict[str, list[int]] = {}
    checks: dict[str, list[str]] = {}
    for line, utt, rank, value, count, check in read_rows(path, lines, checked):
        expected = len(log_prob.setdefault(utt, [])) + 1
        if rank != expected:
            raise UserError(
                f"{path}:{line}: utterance {utt!r} has rank {rank} where {expected} is due; score"
                " the lists again"
            )
        log_prob[utt].append(value)
        tokens.setdefault(utt, []).append(count)
        if checked:
            checks.setdefault(utt, []).append(check)
    return ScoreTable(
        {utt: np.array(values) for utt, values in log_prob.items()},
        {utt: np.array(counts, dtype=np.int64) for utt, counts in tokens.items()},
        signature,
        checks if checked else None,
    )


def has_check(line: str) -> bool:
    """Return whether a first line ends in a check: then every row has one."""
    return bool(re.search(r"\t[0-9a-f]{12}$", line))


def header(path, line: str) -> Mapping[str, str]:
    """Return the signature in the first line; UserError for none or another line's check."""
    head, _, check = line.rpartition("\t") if has_check(line) else (line, "", None)
    if check is not None and check != vouch(head):
        raise UserError(
            f"{path}:1: the header is damaged: it does not fit its check; score the lists again"
        )
    try:
        signature = json.loads(head.removeprefix(HEADER)) if head.startswith(HEADER) else None
    except (ValueError, RecursionError):
        signature = None
    if not isinstance(signature, dict):
        raise UserError(
            f"{path}:1: no header; score files start with `{HEADER}{{...}}`, as `lmtools score`"
            " writes them"
        )
    return signature


def read_rows(
    path, lines: Iterator[tuple[int, str]], checked: bool
) -> Iterator[tuple[int, str, int, float, int, str | None]]:
    """Yield (line number, utterance, rank, log-probability, tokens, check) of every row; UserError
    unless all have checks or, as told, none.
    """
    for line, row in lines:
        match = ROW.fullmatch(row)
        if not match:
            raise UserError(
                f"{path}:{line}: expected `utt#rank TAB log-probability TAB tokens TAB check`;"
                " score the lists again"
            )
        if checked != (match[5] is not None):
            which = (
                "no check, and the header has one"
                if checked
                else "a check, and the header has none"
            )
            raise UserError(
                f"{path}:{line}: the row has {which}: the file is damaged or put together; score"
                " the lists again"
            )
        value = number(match[3], f"{path}:{line}", "log-probability")
        if checked and not row.startswith(
            spell_row(match[1], int(match[2]), value, int(match[4])) + "\t"
        ):
            raise UserError(
                f"{path}:{line}: the row is damaged: its numbers are not as they are written; score"
                " the lists again"
            )
        yield line, match[1], int(match[2]), value, int(match[4]), match[5]


def make_table(
    nbests: Sequence[NBest],
    values: Sequence[np.ndarray],
    counts: Sequence[np.ndarray],
    signature: Mapping[str, str],
) -> ScoreTable:
    """Return the table of log-probabilities and tokens, arrays (hypotheses,) a list; its rows vouch
    for the texts of `nbests` as those of a file do.
    """
    utterances = [nbest.utt for nbest in nbests]
    checks = [
        [
            vouch(spell_row(nbest.utt, rank, value, count), hyp.text)
            for rank, (hyp, value, count) in enumerate(zip(nbest.hyps, *row, strict=True), 1)
        ]
        for nbest, *row in zip(nbests, values, counts, strict=True)
    ]
    columns = (dict(zip(utterances, part, strict=True)) for part in (values, counts, checks))
    log_prob, tokens, checks = columns
    return ScoreTable(log_prob, tokens, signature, checks)


def write(table: ScoreTable, nbests: Iterable[NBest], path) -> None:
    """Write the scores in `table` of `nbests` so that `read` gives back the same floats; UserError
    for one that is not finite.
    """
    with writing(path, table.signature) as add:
        for nbest in nbests:
            add(nbest, table.log_prob.get(nbest.utt, ()), table.tokens.get(nbest.utt, ()))


@contextlib.contextmanager
def writing(
    path, signature: Mapping[str, str], gaps: bool = False
) -> Iterator[Callable[[NBest, Sequence[float], Sequence[int]], None]]:
    """Yield a function that writes the scores and tokens of one list to `path`; pipes at once.
    With `gaps` a score of NaN, which another part has, is an empty line.
    """
    with atomic_text(path) as out:
        first = HEADER + json.dumps(dict(signature), ensure_ascii=False, sort_keys=True)
        out.write(f"{first}\t{vouch(first)}\n")

        def add(nbest, values, counts):
            identifier(nbest.utt, str(path))
            for rank, (hyp, value, count) in enumerate(
                zip(nbest.hyps, values, counts, strict=True), 1
            ):
                if gaps and np.isnan(value):
                    out.write("\n")
                    continue
                if not np.isfinite(value):
                    raise UserError(
                        f"{path}: the score of {nbest.utt}#{rank} is {value}; find out why the"
                        " model gave no number"
                    )
                row = spell_row(nbest.utt, rank, value, count)
                out.write(f"{row}\t{vouch(row, hyp.text)}\n")
            if str(path) == "-":
                out.flush()

        yield add


def join_parts(paths: Sequence, out) -> None:
    """Write the file of those that `writing` wrote with gaps, each with rows of its own; UserError
    where they are not parts of one.
    """
    with contextlib.ExitStack() as stack:
        streams = [
            stack.enter_context(open(path, encoding="utf-8", newline="\n")) for path in paths
        ]
        joined = stack.enter_context(atomic_text(out))
        for number, lines in enumerate(itertools.zip_longest(*streams)):
            rows = [line for line in lines if line != "\n"]
            if number and (len(rows) != 1 or None in rows):
                raise UserError(
                    f"{out}: line {number + 1} is in {len(rows)} parts; {REMEDY}, in parts on"
                    " machines of one kind"
                )
            if not number and len(set(rows)) > 1:
                raise UserError(
                    f"{out}: parts by several models or on several devices ({rows[0]!r:.150} ...);"
                    " give --device, and make them again"
                )
            joined.write(rows[0])


def columns(table: ScoreTable, nbests: Sequence[NBest], path, source) -> list[np.ndarray]:
    """Return the log-probabilities of `nbests`' hypotheses, one array (hypotheses,) a list, joined
    by utterance and rank; checked.
    """
    check(table, nbests, path, source)
    nothing = np.zeros(0)
    return [table.log_prob.get(nbest.utt, nothing) for nbest in nbests]


def check(table: ScoreTable, nbests: Sequence[NBest], path, source) -> None:
    """Raise UserError unless `table`, read from `path`, was made of exactly `nbests`, read from
    `source`.

    It names both and the first utterance that the table lacks, has too much, has in another length,
    or with another text at some rank.
    """
    lengths = {nbest.utt: len(nbest.hyps) for nbest in nbests}
    missing = [utt for utt, length in lengths.items() if length and utt not in table.log_prob]
    extra = [utt for utt in table.log_prob if utt not in lengths]
    other = [
        utt
        for utt, values in table.log_prob.items()
        if utt in lengths and len(values) != lengths[utt]
    ]
    if missing:
        raise UserError(
            f"{path}: no scores for {len(missing)} of {len(lengths)} utterances of {source}, first"
            f" {missing[0]!r}; {REMEDY}"
        )
    if extra:
        raise UserError(
            f"{path}: scores for {len(extra)} utterances that {source} does not have, first"
            f" {extra[0]!r}; {REMEDY}"
        )
    if other:
        utt = other[0]
        counts = (
            f"{len(table.log_prob[utt])} scores for the {lengths[utt]} hypotheses of {utt!r} in"
            f" {source}"
        )
        raise UserError(f"{path}: {counts} ({len(other)} such lists); {REMEDY}")
    if table.checks is not None:
        wrong = [(nbest, ranks) for nbest in nbests if (ranks := find_strangers(table, nbest))]
        if wrong:
            raise UserError(
                describe_strangers(
                    table, wrong, f"{path}: the score of {{}} is not of that hypothesis in {source}"
                )
            )


def find_strangers(table: ScoreTable, nbest: NBest) -> list[int]:
    """Return the ranks from 1 of a list whose rows do not vouch for the hypothesis there."""
    rows = zip(
        *(column.get(nbest.utt, ()) for column in (table.log_prob, table.tokens, table.checks)),
        nbest.hyps,
        strict=True,
    )
    checked = (
        (vouch(spell_row(nbest.utt, rank, value, count), hyp.text), check)
        for rank, (value, count, check, hyp) in enumerate(rows, 1)
    )
    return [rank for rank, (due, check) in enumerate(checked, 1) if due != check]


def describe_strangers(
    table: ScoreTable, wrong: Sequence[tuple[NBest, Sequence[int]]], message: str
) -> str:
    """Return the message on rows that are not of the lists: the first, how many there are, and what
    may have happened.
    """
    nbest, ranks = wrong[0]
    count = sum(len(ranks) for _, ranks in wrong)
    total = sum(map(len, table.log_prob.values()))
    if is_shuffled(table, nbest):
        cause = "the lists hold the same hypotheses in another order"
    elif count == 1:
        cause = "the row is damaged, or this one text was changed"
    else:
        cause = "they were made of other lists, or the file is damaged"
    return (
        f"{message.format(f'{nbest.utt}#{ranks[0]}')} ({count} of {total} rows): {cause}; {REMEDY}"
    )


def is_shuffled(table: ScoreTable, nbest: NBest) -> bool:
    """Return whether the checks of an utterance's rows match its hypotheses' texts in another
    order.
    """
    columns = (table.log_prob[nbest.utt], table.tokens[nbest.utt], table.checks[nbest.utt])
    left = [hyp.text for hyp in nbest.hyps]
    for rank, (value, count, check) in enumerate(zip(*columns, strict=True), 1):
        row = spell_row(nbest.utt, rank, value, count)
        place = next((place for place, text in enumerate(left) if vouch(row, text) == check), None)
        if place is None:
            return False
        left.pop(place)
    return True
