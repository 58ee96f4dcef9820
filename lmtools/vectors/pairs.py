"""Formats of sentence pairs and their similarity: PAIRS names them, and each reads to SentencePair;
tsv is written, too.

All are lines of fields between tabs; quotation marks are letters. A file holds one pair at least,
and all have a similarity or none has; UserError with the line of what is not as the format says.

- stsb: sts-dev.csv and its like, which are no csv; scores are from 0 (unrelated) to 5 (equivalent).
  Cer et al. 2017, SemEval-2017 task 1.
- glue: its copy, whose test set has no score. Wang et al. 2019.
- sick: a file a set (SICK_train.txt ..), or one of all, whose column SET tells them apart; scores
  are from 1 (unrelated) to 5. Entailment is not read. Marelli et al. 2014.
- tsv: as a recipe keeps them.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.checks import NUMBER, encodable, number
from lmtools.formats.registry import Format, Formats
from lmtools.types import SentencePair

SETS = ("train", "trial", "test")  # of SICK's release in one file, by its column
SET = "SemEval_set"
STSB = "genre, file, year, id, score and two sentences, with tabs between"
TSV = "left, right, score, with tabs between, or another format"
GLUE = ("sentence1", "sentence2", "score")
SICK = ("sentence_A", "sentence_B", "relatedness_score")
Row = tuple[str, Sequence[str | None]]  # path:line; first sentence, second, score or None


def read_table(path, names: Sequence[str], set: str | None = None) -> Iterator[SentencePair]:
    """Read pairs under a header: sentences and score by `names`; of a `set` alone."""
    if set not in (None, *SETS):
        raise UserError(f"{path}: set={set}; expected {', '.join(SETS)}")
    lines = ((f"{path}:{place}", line.split("\t")) for place, line in read_lines(path))
    where, columns = next(lines, (f"{path}:1", []))
    for name in names:
        count = columns.count(name)
        if count > 1 or (count == 0 and name != names[-1]):
            raise UserError(
                f"{where}: the header names {count} columns {name!r}; add the file's header or name"
                " its format"
            )
    if set and SET not in columns:
        raise UserError(
            f"{path}:1: set={set}, but there is no column {SET}; drop the option or give the"
            " release in one file"
        )

    def rows() -> Iterator[Row]:
        for where, fields in lines:
            if len(fields) != len(columns):
                raise UserError(
                    f"{where}: {len(fields)} fields; expected {len(columns)} as its header has"
                )
            row = dict(zip(columns, fields, strict=True))
            if not set or row[SET].lower() == set:
                yield where, [row.get(name) for name in names]

    yield from check_pairs(rows(), path if set is None else f"{path}: set={set}")


def read_stsb(path) -> Iterator[SentencePair]:
    return check_pairs(split_lines(path, 7, math.inf, STSB, (5, 6, 4)), path)


def read_tsv(path) -> Iterator[SentencePair]:
    return check_pairs(split_lines(path, 2, 3, TSV, (0, 1, 2)), path)


def split_lines(
    path, least: int, most: float, expected: str, places: tuple[int, int, int]
) -> Iterator[Row]:
    """Yield what stands at the places of the two sentences and the score on each line."""
    for line_number, line in read_lines(path):
        where, fields = f"{path}:{line_number}", line.split("\t")
        if not least <= len(fields) <= most:
            raise UserError(f"{where}: {len(fields)} fields; expected {expected}")
        yield where, [fields[place] if place < len(fields) else None for place in places]


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
    fields = first.split("\t")
    return len(fields) >= 7 and NUMBER.fullmatch(fields[4]) is not None


def is_tsv(path: Path, first: str) -> bool:
    fields = first.split("\t")
    return len(fields) == 2 or (len(fields) == 3 and NUMBER.fullmatch(fields[2]) is not None)


ONE_SET = "train, trial or test: the pairs of one set of the release in one file (default: all)"
PAIRS = Formats(
    {
        "stsb": Format(
            "STS Benchmark's csv: genre, file, year, id, score and two sentences between tabs",
            is_stsb,
            read_stsb,
            partial(refuse_writing, "stsb"),
        ),
        "glue": Format(
            "GLUE's STS-B: tab-separated, with a header",
            names_columns("index", *GLUE[:2]),
            partial(read_table, names=GLUE),
            partial(refuse_writing, "glue"),
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
detect, read, write = PAIRS.detect, PAIRS.read, partial(PAIRS.write, spec="tsv")
