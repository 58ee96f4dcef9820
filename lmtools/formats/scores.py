"""ScoreTable files: a header `# lmtools-scores {signature}`; rows `utt#rank TAB log-probability TAB
tokens`, ranks from 1; and, as the last line, `# lists HASH` of the lists that were scored.

Log-probabilities are natural, higher is better, the end of sentence counted. The id may hold '#':
the last one ends it. The hash stands last since lists may come from a pipe. Files without it are
read too.

Columns of plain numbers, one a hypothesis, need no header: what another program says of the
hypotheses of lists.

- a number a line, in the order of the lists;
- or lines `utt rank value` in any order, ranks from 1;
- or a directory with a file an utterance, UTT, UTT.gz or UTT.score, with a number a line: the score
  directories of SRILM's nbest-optimize and rescore-reweight.

Numbers are taken as they stand: tuning finds their scale. They say nothing of the texts that they
are of, so only their number is checked.
"""

import contextlib
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.checks import identifier, number
from lmtools.formats.nbest import srilm
from lmtools.types import NBest, ScoreTable

HEADER = "# lmtools-scores "
LAST = "# lists "
OLD_CHECK = r"\t[0-9a-f]{12}"  # behind each line of files before 1.0, which nothing looks at now
ROW = re.compile(rf"(\S+)#([0-9]{{1,9}})\t(\S+)\t([0-9]{{1,9}})(?:{OLD_CHECK})?")
REMEDY = "score these very lists again"


def hash_list(nbest: NBest) -> int:
    """Return a list's share in its set's hash: 128 bits of the SHA-256 of id and words."""
    if not nbest.hyps:
        return 0
    said = [nbest.utt, [" ".join(hyp.text.split()) for hyp in nbest.hyps]]
    return int.from_bytes(hashlib.sha256(json.dumps(said).encode()).digest()[:16], "big")


def spell_hash(total: int) -> str:
    """Return the hash of a set from the sum of its lists' shares: 32 hexadecimal digits."""
    return f"{total % 2**128:032x}"


def hash_lists(nbests: Iterable[NBest]) -> str:
    """Return the hash of lists, which do not depend on their order, format or scores."""
    return spell_hash(sum(map(hash_list, nbests)))


def read(path, lines: Iterator[tuple[int, str]] | None = None) -> ScoreTable:
    """Read the table in `path`, or in its numbered `lines` where something has read them; UserError
    with the line of a row that is malformed, out of rank order, or not finite.
    """
    lines = read_lines(path) if lines is None else lines
    signature = header(path, next(lines, (1, ""))[1])
    log_prob: dict[str, list[float]] = {}
    tokens: dict[str, list[int]] = {}
    lists = None
    for line, row in lines:
        match = ROW.fullmatch(row)
        if lists or not match:
            lists = read_last(f"{path}:{line}", None if lists else row)
            continue
        utt, value = match[1], number(match[3], f"{path}:{line}", "log-probability")
        expected = len(log_prob.setdefault(utt, [])) + 1
        if int(match[2]) != expected:
            raise UserError(
                f"{path}:{line}: utterance {utt!r} has rank {match[2]} where {expected} is due;"
                " score the lists again"
            )
        log_prob[utt].append(value)
        tokens.setdefault(utt, []).append(int(match[4]))
    return ScoreTable(
        {utt: np.array(values) for utt, values in log_prob.items()},
        {utt: np.array(counts, dtype=np.int64) for utt, counts in tokens.items()},
        signature,
        lists,
    )


def read_last(where: str, line: str | None) -> str:
    """Return the hash in the last line; UserError for any other line, and (None) for one behind."""
    if line is None:
        raise UserError(f"{where}: a line after `{LAST}HASH`, the last; score the lists again")
    match = re.fullmatch(LAST + "([0-9a-f]{32})", line)
    if not match:
        raise UserError(
            f"{where}: expected `utt#rank TAB log-probability TAB tokens`, and at the end"
            f" `{LAST}HASH`; score the lists again"
        )
    return match[1]


def header(path, line: str) -> Mapping[str, str]:
    """Return the signature in the first line; UserError if there is none."""
    text = re.sub(OLD_CHECK + "$", "", line.removeprefix(HEADER))
    try:
        signature = json.loads(text) if line.startswith(HEADER) else None
    except (ValueError, RecursionError):
        signature = None
    if not isinstance(signature, dict):
        raise UserError(
            f"{path}:1: no header; score files start with `{HEADER}{{...}}`, as `lmtools score`"
            " writes them"
        )
    return signature


def make_table(
    nbests: Sequence[NBest],
    values: Sequence[np.ndarray],
    counts: Sequence[np.ndarray],
    signature: Mapping[str, str],
) -> ScoreTable:
    """Return the table of log-probabilities and tokens, arrays (hypotheses,) a list of `nbests`."""
    utterances = [nbest.utt for nbest in nbests]
    log_prob, tokens = (dict(zip(utterances, part, strict=True)) for part in (values, counts))
    return ScoreTable(log_prob, tokens, signature, hash_lists(nbests))


def write(table: ScoreTable, nbests: Iterable[NBest], path) -> None:
    """Write the scores of `nbests` so that `read` gives the same floats; else UserError."""
    with writing(path, table.signature) as add:
        for nbest in nbests:
            add(nbest, table.log_prob.get(nbest.utt, ()), table.tokens.get(nbest.utt, ()))


@contextlib.contextmanager
def writing(
    path, signature: Mapping[str, str], gaps: bool = False
) -> Iterator[Callable[[NBest, Sequence[float], Sequence[int]], None]]:
    """Yield a function that writes a list's scores and tokens; `gaps`: NaN is an empty line."""
    total = 0
    with atomic_text(path) as out:
        out.write(HEADER + json.dumps(dict(signature), ensure_ascii=False, sort_keys=True) + "\n")

        def add(nbest, values, counts):
            nonlocal total
            identifier(nbest.utt, str(path))
            for rank, (_, value, count) in enumerate(
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
                out.write(f"{nbest.utt}#{rank}\t{float(value)!r}\t{int(count)}\n")
            total += hash_list(nbest)
            if str(path) == "-":
                out.flush()

        yield add
        out.write(f"{LAST}{spell_hash(total)}\n")


def join_parts(paths: Sequence, out) -> None:
    """Join files that `writing` wrote with gaps; UserError where they are no parts of one."""
    with contextlib.ExitStack() as stack:
        streams = [
            stack.enter_context(open(path, encoding="utf-8", newline="\n")) for path in paths
        ]
        joined = stack.enter_context(atomic_text(out))
        for number, lines in enumerate(itertools.zip_longest(*streams)):
            rows = [line for line in lines if line != "\n"]
            last = str(rows[0] if rows else "").startswith(LAST) and len(set(rows)) == 1
            if number and not last and (len(rows) != 1 or None in rows):
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
    """Return the log-probabilities of `nbests`, one array (hypotheses,) a list; checked."""
    check(table, nbests, path, source)
    nothing = np.zeros(0)
    return [table.log_prob.get(nbest.utt, nothing) for nbest in nbests]


def check(table: ScoreTable, nbests: Sequence[NBest], path, source) -> None:
    """Raise UserError, naming the first utterance that differs, unless `table`, read from `path`,
    was made of exactly `nbests`, read from `source`.
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
    if table.lists not in (None, hash_lists(nbests)):
        raise UserError(
            f"{path}: scores of other lists than {source}: the utterances are the same, and"
            f" hypotheses or their order are not; {REMEDY}"
        )


RANK = re.compile(r"[0-9]{1,9}")
WANTED = "give one number for each hypothesis, in the order of the lists, or lines `utt rank value`"


def read_column_file(path, nbests: Sequence[NBest], source) -> ScoreTable:
    """Read the column in `path`, a score file or plain numbers (without signature, tokens or hash),
    of the lists from `source`. UserError with the line for what is neither.
    """
    if Path(path).is_dir():
        return plain_table(nbests, read_directory(path, nbests, source))
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        raise UserError(f"{path}: the file is empty; {WANTED}")
    lines = chain([first], lines)
    words = first[1].split()
    if first[1].startswith("#") or ROW.fullmatch(first[1]):
        return read(path, lines)
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
            raise UserError(f"{where}: {source} has {due} hypotheses, and no more; {WANTED}")
        values.append(value)
    if len(values) < due:
        nbest, rank = list(list_ranks(nbests))[len(values)]
        raise UserError(
            f"{where}: the file ends after {len(values)} numbers, and {source} has {due} hypotheses"
            f" (the next is {rank} of {nbest.utt!r}); {WANTED}"
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
            f" {nbest.utt!r}; {WANTED}"
        )
    return [values[nbest.utt] for nbest in nbests]


def read_directory(path, nbests: Sequence[NBest], source) -> list[list[float]]:
    """Read the numbers of each list, from a directory with a file an utterance."""
    files = srilm.name_files(Path(path))
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
