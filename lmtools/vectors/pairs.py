"""Formats of sentence pairs and their similarity, as data: PAIRS names them, and each reads to and
writes from SentencePair.

All are lines of fields between tabs; quotation marks are letters. A format is a `PairLayout`: its
columns, which stand in a header or are the same in every file. A file holds one pair at least, and
all have a similarity or none has; UserError with the line of what is not as the format says. What
SentencePair does not hold is written as `none`.

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
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.checks import NUMBER, encodable, number
from lmtools.formats.registry import Format, Formats
from lmtools.types import EMPTY, SentencePair

LEFT, RIGHT, SCORE, NUMBERED = PARTS = "left", "right", "score", "number"
SETS = ("train", "trial", "test")  # of SICK's release in one file, by its column
SET = "SemEval_set"


@dataclass(frozen=True)
class PairLayout:
    """The columns of a format, and what those of PARTS are called in it (`names`).

    With `header` the names are the first line, in any order, and the score may be missing; else
    lines are as `columns`. Those of a format with a `description` always have a score, and may go
    on with other fields. `width` is that of a pair's number, which counts from `first`.
    """

    summary: str
    columns: Sequence[str]
    recognises: Callable[[Path, str], bool]
    header: bool = True
    names: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    description: str = ""
    first: int = 0
    width: int = 1
    options: Mapping[str, str] = field(default_factory=lambda: EMPTY)

    def name(self, part: str) -> str:
        return self.names.get(part, part)

    def as_format(self) -> Format:
        read, write = partial(read_pairs, self), partial(write_pairs, self)
        return Format(self.summary, self.recognises, read, write, options=self.options)


def read_pairs(layout: PairLayout, path, **options: str) -> Iterator[SentencePair]:
    """Read the pairs of a file: of its `set`, its columns as the option `columns` says."""
    chosen = options.get("set")
    if chosen not in (None, *SETS):
        raise UserError(f"{path}: set={chosen}; expected {', '.join(SETS)}")
    layout = arrange(layout, path, options)
    kept = []
    for where, row in read_rows(layout, path):
        if chosen and SET not in row:
            raise UserError(
                f"{path}:1: set={chosen}, but there is no column {SET}; drop the option or give"
                " the release in one file"
            )
        left, right, score = (row.get(layout.name(part)) for part in PARTS[:3])
        similarity = None if score is None else number(score, where, "the similarity")
        pair = SentencePair(*check_words(left, right, where), similarity)
        if not chosen or row[SET].lower() == chosen:
            kept.append((where, pair))
    yield from check_alike(kept, path if chosen is None else f"{path}: set={chosen}")


def arrange(layout: PairLayout, path, options: Mapping[str, str]) -> PairLayout:
    """Return the layout with the columns of the option `columns`; UserError unless left and right
    are there, score at most once, and nothing else but `-`.
    """
    if "columns" not in options:
        return layout
    names = re.split("[+,]", options["columns"])
    if sorted(name for name in names if name != "-") not in ([LEFT, RIGHT], [LEFT, RIGHT, SCORE]):
        raise UserError(
            f"{path}: columns={options['columns']}; give left, right and, if there is one, score,"
            " each once, as in score+left+right"
        )
    return replace(layout, columns=names)


def read_rows(layout: PairLayout, path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (`path:line`, fields by name) of each line, without the header."""
    lines = ((f"{path}:{place}", line.split("\t")) for place, line in read_lines(path))
    names = layout.columns
    if layout.header:
        where, names = next(lines, (f"{path}:1", []))
        for part in PARTS[:3]:
            count = names.count(layout.name(part))
            if count > 1 or (count == 0 and part != SCORE):
                raise UserError(
                    f"{where}: the header names {count} columns {layout.name(part)!r}; add the"
                    " file's header or name its format"
                )
    least, most = len(names) - (names[-1] == SCORE and not layout.header), len(names)
    for where, fields in lines:
        if layout.header and len(fields) != most:
            raise UserError(
                f"{where}: {len(fields)} fields below a header of {most}; give one a column, with"
                " tabs between"
            )
        if len(fields) < least or (len(fields) > most and not layout.description):
            usual = f"{', '.join(names)}, with tabs between, or name another format"
            raise UserError(
                f"{where}: {len(fields)} fields; expected {layout.description or usual}"
            )
        yield where, dict(zip(names, fields, strict=False))


def check_words(left: str, right: str, where: str) -> tuple[str, str]:
    """Return both sentences; UserError for an empty one."""
    for side, sentence in (("first", left), ("second", right)):
        if not sentence.strip():
            raise UserError(
                f"{where}: the {side} sentence is empty; add its words or drop the pair"
            )
    return left, right


def check_alike(pairs: Iterable[tuple[str, SentencePair]], path) -> Iterator[SentencePair]:
    """Yield the pairs of (where, pair); UserError for none, and for similarities in some only."""
    first = None
    for where, pair in pairs:
        has = pair.similarity is not None
        if first is not None and has != first:
            raise UserError(
                f"{where}: has {'a' if has else 'no'} similarity, unlike those before; give every"
                " pair one or none"
            )
        first = has
        yield pair
    if first is None:
        raise UserError(f"{path}: holds no sentence pair; give a file that does")


def write_pairs(layout: PairLayout, pairs: Iterable[SentencePair], path, **options: str) -> None:
    """Write pairs; UserError for what would be read otherwise, for similarities without a column,
    and for a column in front without similarities.
    """
    layout = arrange(layout, path, options)
    numbered = ((f"{path}: pair {rank}", pair) for rank, pair in enumerate(pairs, 1))
    checked = check_alike(((where, check_pair(pair, where)) for where, pair in numbered), path)
    with atomic_text(path) as out:
        for rank, pair in enumerate(checked):
            scored = pair.similarity is not None
            if layout.description and not scored:
                raise UserError(
                    f"{path}: pair {rank + 1}: has no similarity, and stsb has no lines without;"
                    " write it as tsv or glue"
                )
            names, score = layout.columns, layout.name(SCORE)
            if not scored and names[-1] == score:
                names = names[:-1]
            if (score in names) != scored:
                raise UserError(
                    f"{path}: columns={'+'.join(names)}, but the pairs have"
                    f" {'similarities' if scored else 'no similarities'}; give columns that fit"
                )
            if layout.header and rank == 0:
                out.write("\t".join(map(layout.name, names)) + "\n")
            # the shortest text of the similarity that reads back the same
            row = {
                NUMBERED: f"{rank + layout.first:0{layout.width}}", "-": "-",
                layout.name(LEFT): pair.left, layout.name(RIGHT): pair.right,
                score: repr(float(pair.similarity)) if scored else "",
            }  # fmt: skip
            out.write("\t".join(row.get(name, "none") for name in names) + "\n")


def check_pair(pair: SentencePair, where: str) -> SentencePair:
    """Return a pair if a line can hold it."""
    for sentence in check_words(pair.left, pair.right, where):
        # a CR is dropped at a line's end only, a byte-order mark at a file's start only; neither
        # belongs in a sentence
        if re.search(r"[\t\n]|\r\Z|\A\ufeff", sentence):
            raise UserError(
                f"{where}: {sentence[:40]!a} holds a tab, a line's end or a byte-order mark; put a"
                " space there"
            )
        encodable(sentence, where)
    if pair.similarity is not None and not math.isfinite(pair.similarity):
        raise UserError(f"{where}: the similarity is '{pair.similarity}'; give a finite number")
    return pair


def names_columns(*names: str) -> Callable[[Path, str], bool]:
    return lambda path, first: set(names) <= set(first.split("\t"))


def is_stsb(path: Path, first: str) -> bool:
    """Return whether the first line has a score at its place and two fields after it."""
    fields = first.split("\t")
    return len(fields) >= len(STSB.columns) and NUMBER.fullmatch(fields[4]) is not None


def is_tsv(path: Path, first: str) -> bool:
    """Return whether the first line has two fields, or three of which the last is a number."""
    fields = first.split("\t")
    return len(fields) == 2 or (len(fields) == 3 and NUMBER.fullmatch(fields[2]) is not None)


STSB = PairLayout(
    "STS Benchmark's csv: genre, file, year, id, score and two sentences between tabs",
    ("genre", "file", "year", NUMBERED, SCORE, LEFT, RIGHT),
    is_stsb,
    header=False,
    description="genre, file, year, id, score and two sentences, with tabs between",
    width=4,
)
PAIRS = Formats({
    "stsb": STSB.as_format(),
    "glue": PairLayout(
        "GLUE's STS-B: tab-separated, with a header",
        (NUMBERED, "genre", "filename", "year", "old_index", "source1", "source2", "sentence1",
         "sentence2", SCORE),
        names_columns("index", "sentence1", "sentence2"),
        names={NUMBERED: "index", LEFT: "sentence1", RIGHT: "sentence2"},
    ).as_format(),
    "sick": PairLayout(
        "SICK: tab-separated, with a header, one file or one a set",
        (NUMBERED, "sentence_A", "sentence_B", "relatedness_score"),
        names_columns("pair_ID", "sentence_A", "sentence_B"),
        names={NUMBERED: "pair_ID", LEFT: "sentence_A", RIGHT: "sentence_B",
               SCORE: "relatedness_score"},
        first=1,
        options={"set": "train, trial or test: the pairs of one set of the release in one file"
                 " (default: all that the file holds)"},
    ).as_format(),
    "tsv": PairLayout(
        "two sentences and their similarity, if there is one, between tabs; no header",
        (LEFT, RIGHT, SCORE),
        is_tsv,
        header=False,
        options={"columns": "what the columns are, as score+left+right; - for one to skip (default"
                 " left+right+score, a file may lack the last)"},
    ).as_format(),
})  # fmt: skip

detect, read = PAIRS.detect, PAIRS.read


def write(pairs: Iterable[SentencePair], path, spec: str = "tsv") -> None:
    """Write `pairs` to `path`; UserError for what a reader could not give back."""
    PAIRS.write(pairs, path, spec)
