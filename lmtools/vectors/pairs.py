"""Formats of sentence pairs and their similarity: PAIRS names them, and each reads to SentencePair;
tsv is written, too.

All are lines of fields between tabs; quotation marks are letters. A file holds one pair at least,
and all have a similarity or none has; UserError with the line of what is not as the format says.

- stsb: sts-dev.csv and its like, which are no csv; scores are from 0 (unrelated) to 5 (equivalent),
  and known by that, wherever they stand. Cer et al. 2017, SemEval-2017 task 1.
- glue: its copy, whose test set has no score. Wang et al. 2019.
- sick: a file a set (SICK_train.txt ..), or one of all, whose column SET tells them apart; scores
  are from 1 (unrelated) to 5. Entailment is not read. Marelli et al. 2014.
- tsv: as a recipe keeps them.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.checks import NUMBER, encodable, number
from lmtools.formats.registry import Format, Formats, read_beginning
from lmtools.text.blocks import HEAD
from lmtools.types import SentencePair

SETS = ("train", "trial", "dev", "test")  # of a release in one file, by its column, one of:
SET = ("SemEval_set", "split")
STSB = "as many as the first line has"
TSV = "left, right, score, with tabs between, or another format"
GLUE = ("sentence1", "sentence2", "score")
SICK = ("sentence_A", "sentence_B", "relatedness_score")
ASK = "name the columns, --columns LEFT RIGHT SCORE, by numbers from 1 or by the header's names"
MOST = 5  # similarity of the STS Benchmark: its ids and years pass that
Row = tuple[str, Sequence[str | None]]  # path:line; first sentence, second, score or None


def read_table(
    path, names: Sequence[str | None], set: str | None = None, judged: bool = False
) -> Iterator[SentencePair]:
    """Read pairs under a header: sentences and score by `names`; of a `set` alone. If they are
    `judged`, the score's column has to be there.
    """
    if set not in (None, *SETS):
        raise UserError(f"{path}: set={set}; expected {', '.join(SETS)}")
    lines = ((f"{path}:{place}", line.split("\t")) for place, line in read_lines(path))
    where, columns = next(lines, (f"{path}:1", []))
    for name in filter(None, names):
        count = columns.count(name)
        if count > 1 or (count == 0 and (judged or name != names[-1])):
            raise UserError(
                f"{where}: the header names {count} columns {name!r}; add the file's header or name"
                " its format"
            )
    sets = next((column for column in SET if column in columns), "")
    if set and not sets:
        raise UserError(
            f"{path}:1: set={set}, but there is no column {' or '.join(SET)}; drop the option or"
            " give the release in one file"
        )

    def rows() -> Iterator[Row]:
        for where, fields in lines:
            if len(fields) != len(columns):
                raise UserError(
                    f"{where}: {len(fields)} fields; expected {len(columns)} as its header has"
                )
            row = dict(zip(columns, fields, strict=True))
            if not set or row[sets].lower() == set:
                yield where, [row.get(name) for name in names]

    yield from check_pairs(rows(), path if set is None else f"{path}: set={set}")


def read_stsb(path) -> Iterator[SentencePair]:
    least, places = find_columns(path, share=0.5)  # a wrong field is told with its line
    if not least:
        raise UserError(f"{path}: holds no sentence pair; give text")
    if not places:
        raise UserError(
            f"{path}:1: no column of similarities from 0 to {MOST} beside two of text; {ASK}"
        )
    for place, pair in enumerate(
        check_pairs(split_lines(path, least, math.inf, STSB, places), path), 1
    ):
        if not 0 <= pair.similarity <= MOST:
            raise UserError(
                f"{path}:{place}: the similarity is {pair.similarity:g}, beyond {MOST}; {ASK}"
            )
        yield pair


def find_columns(path, share: float = 1.0) -> tuple[int, tuple[int, int, int] | None]:
    """Return how many fields each line has at a file's beginning, and the places of two sentences
    and their similarity: text beside text, of most words, and beside them numbers from 0 to MOST
    that do not count the lines, in a `share` of them. None: there are no such columns, or more.
    """
    text = read_beginning(path)
    lines = text.decode("utf-8-sig", "replace").split("\n")
    rows = [line.rstrip("\r").split("\t") for line in lines[: -1 if len(text) == HEAD else None]]
    rows = [row for row in rows if row != [""]]
    least = min(map(len, rows), default=0)
    columns = list(zip(*(row[:least] for row in rows), strict=True))
    texts = [2 * sum(map(has_letters, column)) > len(rows) - (share < 1) for column in columns]
    if sum(sum(" " in field for field in column) > len(rows) / 2 for column in columns) > 2:
        return least, None
    scores = {place for place, column in enumerate(columns) if holds_similarities(column, share)}
    found = [
        (sum(len(field.split()) for field in columns[left] + columns[left + 1]), left, score)
        for left in range(least - 1)
        if texts[left] and texts[left + 1]
        for score in scores & {left - 1, left + 2}
    ]
    best = [(left, left + 1, score) for words, left, score in found if words == max(found)[0]]
    return least, best[0] if len(best) == 1 else None


def has_letters(field: str) -> bool:
    return re.search(r"[^\W\d_]", field) is not None


def holds_similarities(column: Sequence[str], share: float) -> bool:
    """Return whether a share of fields are numbers from 0 to MOST, no ids or lines' numbers."""
    known = [field for field in column if NUMBER.fullmatch(field) and 0 <= float(field) <= MOST]
    numbers = len(known) >= share * len(column)
    padded = any(re.match(r"0\d", field) for field in column)
    return numbers and not padded and not counts_lines(column)


def counts_lines(column: Sequence[str]) -> bool:
    """Return whether fields, three or more, are whole numbers that follow each other."""
    whole = len(column) > 2 and all(field.isdecimal() for field in column)
    return whole and all(int(b) - int(a) == 1 for a, b in pairwise(column))


def read_columns(path, names: Sequence[str]) -> Iterator[SentencePair]:
    """Read pairs by the numbers of their columns from 1, or by names in the first line."""
    names = [name for given in names for name in given.split(",")]
    if len(names) not in (2, 3):
        raise UserError(f"--columns {' '.join(names)}: {len(names)} columns; {ASK}")
    if not all(map(str.isdecimal, names)):
        return read_table(path, (*names, None)[:3], judged=True)
    places = [int(name) - 1 for name in names]
    if min(places) < 0:
        raise UserError(f"--columns {' '.join(names)}: columns count from 1; {ASK}")
    expected = f"{max(places) + 1} or more, for --columns {' '.join(names)}"
    rows = split_lines(path, max(places) + 1, math.inf, expected, places)
    return check_pairs(rows, path)


def read_tsv(path) -> Iterator[SentencePair]:
    return check_pairs(split_lines(path, 2, 3, TSV, (0, 1, 2)), path)


def split_lines(
    path, least: int, most: float, expected: str, places: Sequence[int]
) -> Iterator[Row]:
    """Yield what stands at the places of the two sentences and maybe the score on each line."""
    for line_number, line in read_lines(path):
        where, fields = f"{path}:{line_number}", line.split("\t")
        if not least <= len(fields) <= most:
            raise UserError(f"{where}: {len(fields)} fields; expected {expected}")
        found = [fields[place] if place < len(fields) else None for place in places]
        yield where, (*found, None)[:3]


def check_pairs(rows: Iterable[Row], source) -> Iterator[SentencePair]:
    first = None
    for where, (left, right, score) in rows:
        similarity = None if score is None else number(score, where, "the similarity")
        pair = SentencePair(left, right, similarity)
        first = check_pair(pair, first, where)
        yield pair
    refuse_none(first, source)


def check_pair(pair: SentencePair, first: bool | None, where: str) -> bool:
    """Return whether a pair has a similarity; UserError unless as the `first`, and for no words."""
    for side, sentence in (("first", pair.left), ("second", pair.right)):
        if not sentence.strip():
            raise UserError(
                f"{where}: the {side} sentence is empty; add its words or drop the pair"
            )
    has = pair.similarity is not None
    if first not in (None, has):
        raise UserError(
            f"{where}: has {'a' if has else 'no'} similarity, unlike those before; give every pair"
            " one or none"
        )
    return has


def refuse_none(first: bool | None, source) -> None:
    if first is None:
        raise UserError(f"{source}: holds no sentence pair; give a file that does")


def write_tsv(pairs: Iterable[SentencePair], path) -> None:
    """Write pairs; UserError for what would be read otherwise."""
    first = None
    with atomic_text(path) as out:
        for rank, pair in enumerate(pairs, 1):
            where = f"{path}: pair {rank}"
            first = check_pair(pair, first, where)
            for sentence in (pair.left, pair.right):
                # a CR is dropped at a line's end only, a byte-order mark at a file's start only;
                # neither belongs in a sentence
                if re.search(r"[\t\n]|\r\Z|\A\ufeff", sentence):
                    raise UserError(
                        f"{where}: {sentence[:40]!a} holds a tab, a line's end or a byte-order"
                        " mark; put a space there"
                    )
                encodable(sentence, where)
            if first and not math.isfinite(pair.similarity):
                raise UserError(
                    f"{where}: the similarity is '{pair.similarity}'; give a finite number"
                )
            # the shortest text of the similarity that reads back the same
            score = f"\t{float(pair.similarity)!r}" if first else ""
            out.write(f"{pair.left}\t{pair.right}{score}\n")
        refuse_none(first, path)


def refuse_writing(name: str, pairs: Iterable[SentencePair], path) -> None:
    raise UserError(f"{path}: {name} is a form that is read alone; write tsv")


def names_columns(*names: str):
    return lambda path, first: set(names) <= set(first.split("\t"))


def is_stsb(path: Path, first: str) -> bool:
    if path.is_dir() or is_tsv(path, first):
        return False
    return find_columns(path)[1] is not None


def is_tsv(path: Path, first: str) -> bool:
    fields = first.split("\t")
    if len(fields) == 3 and NUMBER.fullmatch(fields[2]):
        lines = read_beginning(path).decode("utf-8-sig", "replace").split("\n")[:-1]
        return not counts_lines([line.rpartition("\t")[2].rstrip("\r") for line in lines])
    return len(fields) == 2


ONE_SET = (
    "train, trial, dev or test: the pairs of one set of the release in one file (default: all)"
)
PAIRS = Formats(
    {
        "stsb": Format(
            "STS Benchmark's csv and its like: two sentences and a score from 0 to 5 among columns"
            " between tabs",
            is_stsb,
            read_stsb,
            partial(refuse_writing, "stsb"),
        ),
        "glue": Format(
            "GLUE's STS-B and its like: tab-separated, with a header",
            names_columns(*GLUE[:2]),
            partial(read_table, names=GLUE),
            partial(refuse_writing, "glue"),
            options={"set": ONE_SET},
        ),
        "sick": Format(
            "SICK: tab-separated, with a header, one file or one a set",
            names_columns("pair_ID", *SICK[:2]),
            partial(read_table, names=SICK),
            partial(refuse_writing, "sick"),
            options={"set": ONE_SET},
        ),
        "tsv": Format(
            "two sentences and their similarity, if there is one, between tabs; no header",
            is_tsv,
            read_tsv,
            write_tsv,
        ),
    }
)
detect, write = PAIRS.detect, partial(PAIRS.write, spec="tsv")


def read(path, spec: str | None = None, columns: Sequence[str] = ()) -> list[SentencePair]:
    """Return the pairs of a file, by a format or by its columns; UserError for none."""
    if columns and spec:
        raise UserError(f"--format {spec}: knows its columns; leave out --format or --columns")
    if columns:
        return list(read_columns(path, columns))
    try:
        return PAIRS.read(path, spec or detect(path))
    except UserError as error:
        raise UserError(f"{error}; or {ASK}" if "could be" in str(error) else str(error)) from None
