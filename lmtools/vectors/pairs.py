"""Formats of sentence pairs and their similarity, as data: PAIRS names them, and each reads to
SentencePair; tsv is written, too.

All are lines of fields between tabs; quotation marks are letters. A format is a `PairLayout`: its
columns, which stand in a header or are the same in every file. A file holds one pair at least, and
all have a similarity or none has; UserError with the line of what is not as the format says.

- stsb: sts-dev.csv and its like, which are no csv; scores are from 0 (unrelated) to 5 (equivalent).
  Cer et al. 2017, SemEval-2017 task 1.
- glue: its copy, whose test set has no score. Wang et al. 2019.
- sick: a file a set (SICK_train.txt ..), or one of all, whose column SET tells them apart; scores
  are from 1 (unrelated) to 5. Entailment is not read. Marelli et al. 2014.
- tsv: as a recipe keeps them.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.checks import NUMBER, encodable, number
from lmtools.formats.registry import Format, Formats
from lmtools.types import EMPTY, SentencePair

PARTS = LEFT, RIGHT, SCORE = "left", "right", "score"
SETS = ("train", "trial", "test")  # of SICK's release in one file, by its column
SET = "SemEval_set"


class PairLayout(NamedTuple):
    """What the columns of PARTS are called and, where no first line names them, the columns in
    their order. With a `header` the score may be missing; lines of a format with a `description`
    always have one, and may go on with other fields.
    """

    names: Mapping[str, str] = EMPTY
    columns: Sequence[str] = ()
    description: str = ""

    def read(self, path, **options: str) -> Iterator[SentencePair]:
        """Read the pairs of a file: of its `set`, its columns as the option `columns` says."""
        chosen = options.get("set")
        if chosen not in (None, *SETS):
            raise UserError(f"{path}: set={chosen}; expected {', '.join(SETS)}")
        first, source = None, path if chosen is None else f"{path}: set={chosen}"
        for where, row in self.read_rows(path, parse_columns(path, options) or self.columns):
            if chosen and SET not in row:
                raise UserError(
                    f"{path}:1: set={chosen}, but there is no column {SET}; drop the option or give"
                    " the release in one file"
                )
            left, right, score = (row.get(self.names.get(part, part)) for part in PARTS)
            similarity = None if score is None else number(score, where, "the similarity")
            pair = SentencePair(*check_words(left, right, where), similarity)
            if not chosen or row[SET].lower() == chosen:
                first = check_alike(pair, first, where)
                yield pair
        if first is None:
            raise UserError(f"{source}: holds no sentence pair; give a file that does")

    def read_rows(self, path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield (`path:line`, fields by name) of each line, without the header."""
        lines = ((f"{path}:{place}", line.split("\t")) for place, line in read_lines(path))
        header = not columns
        if header:
            where, columns = next(lines, (f"{path}:1", []))
            for part in PARTS:
                name = self.names.get(part, part)
                count = columns.count(name)
                if count > 1 or (count == 0 and part != SCORE):
                    raise UserError(
                        f"{where}: the header names {count} columns {name!r}; add the file's header"
                        " or name its format"
                    )
        most = len(columns)
        least = most - (columns[-1] == SCORE and not header)
        expected = self.description or f"{', '.join(columns)}, with tabs between, or another format"
        if header:
            expected = f"{most} as its header has"
        for where, fields in lines:
            if len(fields) < least or (len(fields) > most and not self.description):
                raise UserError(f"{where}: {len(fields)} fields; expected {expected}")
            yield where, dict(zip(columns, fields, strict=False))


def parse_columns(path, options: Mapping[str, str]) -> list[str] | None:
    """Return what the option `columns` names; UserError unless left and right are there, score at
    most once, and nothing else but `-`.
    """
    if "columns" not in options:
        return None
    names = re.split("[+,]", options["columns"])
    if sorted(name for name in names if name != "-") not in ([LEFT, RIGHT], [LEFT, RIGHT, SCORE]):
        raise UserError(
            f"{path}: columns={options['columns']}; give left, right and, if there is one, score,"
            " each once, as in score+left+right"
        )
    return names


def check_words(left: str, right: str, where: str) -> tuple[str, str]:
    """Return both sentences; UserError for an empty one."""
    for side, sentence in (("first", left), ("second", right)):
        if not sentence.strip():
            raise UserError(
                f"{where}: the {side} sentence is empty; add its words or drop the pair"
            )
    return left, right


def check_alike(pair: SentencePair, first: bool | None, where: str) -> bool:
    """Return whether a pair has a similarity; UserError where the `first` one differs in that."""
    has = pair.similarity is not None
    if first not in (None, has):
        raise UserError(
            f"{where}: has {'a' if has else 'no'} similarity, unlike those before; give every pair"
            " one or none"
        )
    return has


def write_tsv(pairs: Iterable[SentencePair], path, **options: str) -> None:
    """Write pairs; UserError for what would be read otherwise, for similarities without a column,
    and for a column in front without similarities.
    """
    columns, first = parse_columns(path, options) or PARTS, None
    with atomic_text(path) as out:
        for rank, pair in enumerate(pairs, 1):
            where = f"{path}: pair {rank}"
            for sentence in check_words(pair.left, pair.right, where):
                # a CR is dropped at a line's end only, a byte-order mark at a file's start only;
                # neither belongs in a sentence
                if re.search(r"[\t\n]|\r\Z|\A\ufeff", sentence):
                    raise UserError(
                        f"{where}: {sentence[:40]!a} holds a tab, a line's end or a byte-order"
                        " mark; put a space there"
                    )
                encodable(sentence, where)
            first = check_alike(pair, first, where)
            if first and not math.isfinite(pair.similarity):
                raise UserError(
                    f"{where}: the similarity is '{pair.similarity}'; give a finite number"
                )
            names = columns[:-1] if not first and columns[-1] == SCORE else columns
            if (SCORE in names) != first:
                raise UserError(
                    f"{path}: columns={'+'.join(names)}, but the pairs have"
                    f" {'similarities' if first else 'no similarities'}; give columns that fit"
                )
            # the shortest text of the similarity that reads back the same
            score = repr(float(pair.similarity)) if first else ""
            row = {LEFT: pair.left, RIGHT: pair.right, SCORE: score}
            out.write("\t".join(row.get(name, "-") for name in names) + "\n")
        if first is None:
            raise UserError(f"{path}: holds no sentence pair; give a file that does")


def refuse_writing(name: str, pairs: Iterable[SentencePair], path) -> None:
    """UserError: nobody but its makers writes a published form."""
    raise UserError(f"{path}: {name} is a form that is read alone; write tsv")


def names_columns(*names: str) -> Callable[[Path, str], bool]:
    return lambda path, first: set(names) <= set(first.split("\t"))


def is_stsb(path: Path, first: str) -> bool:
    """Return whether the first line has a score at its place and two fields after it."""
    fields = first.split("\t")
    return len(fields) >= len(STSB) and NUMBER.fullmatch(fields[4]) is not None


def is_tsv(path: Path, first: str) -> bool:
    """Return whether the first line has two fields, or three of which the last is a number."""
    fields = first.split("\t")
    return len(fields) == 2 or (len(fields) == 3 and NUMBER.fullmatch(fields[2]) is not None)


STSB = ("genre", "file", "year", "number", SCORE, LEFT, RIGHT)
GLUE = {LEFT: "sentence1", RIGHT: "sentence2"}
SICK = {LEFT: "sentence_A", RIGHT: "sentence_B", SCORE: "relatedness_score"}
FORMS = (
    ("stsb", "STS Benchmark's csv: genre, file, year, id, score and two sentences between tabs",
     is_stsb, PairLayout(columns=STSB, description="genre, file, year, id, score and two"
                         " sentences, with tabs between"), {}),
    ("glue", "GLUE's STS-B: tab-separated, with a header",
     names_columns("index", *GLUE.values()), PairLayout(GLUE), {}),
    ("sick", "SICK: tab-separated, with a header, one file or one a set",
     names_columns("pair_ID", "sentence_A", "sentence_B"), PairLayout(SICK),
     {"set": "train, trial or test: the pairs of one set of the release in one file (default: all"
             " that the file holds)"}),
    ("tsv", "two sentences and their similarity, if there is one, between tabs; no header",
     is_tsv, PairLayout(columns=PARTS),
     {"columns": "what the columns are, as score+left+right; - for one to skip (default"
                 " left+right+score, a file may lack the last)"}),
)  # fmt: skip
PAIRS = Formats(
    {
        name: Format(
            summary, recognises, layout.read, partial(refuse_writing, name), options=options
        )
        for name, summary, recognises, layout, options in FORMS
    }
)
PAIRS["tsv"] = replace(PAIRS["tsv"], write=write_tsv)

detect, read = PAIRS.detect, PAIRS.read


def write(pairs: Iterable[SentencePair], path, spec: str = "tsv") -> None:
    """Write `pairs` to `path`; UserError for what a reader could not give back."""
    PAIRS.write(pairs, path, spec)
