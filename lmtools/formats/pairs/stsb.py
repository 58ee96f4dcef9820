"""STS Benchmark: `genre TAB file TAB year TAB id TAB score TAB sentence TAB sentence`, without a
header (sts-dev.csv and its like).

The files are no csv: nothing is quoted, and some lines go on with the sources of the sentences,
which are not read. Scores are from 0 (unrelated) to 5 (equivalent). Cer et al. 2017, SemEval-2017
task 1. What SentencePair does not hold is written as `none`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from lmtools.atomic import atomic_text
from lmtools.errors import UserError
from lmtools.formats.checks import NUMBER
from lmtools.formats.pairs.common import agreeing, check_pairs, line, pair, rows, spell_similarity
from lmtools.types import SentencePair

ABOUT = "STS Benchmark's csv: genre, file, year, id, score and two sentences between tabs"
SCORE, LEFT, RIGHT = 4, 5, 6


def recognises(path: Path, first: str) -> bool:
    """Return whether the first line has a score at its place and two fields after it."""
    fields = first.split("\t")
    return len(fields) > RIGHT and NUMBER.fullmatch(fields[SCORE]) is not None


def read(path) -> Iterator[SentencePair]:
    """Read the pairs of a file."""
    return agreeing(parse_lines(path), path)


def parse_lines(path) -> Iterator[tuple[str, SentencePair]]:
    """(`path:line`, pair) of each line."""
    for where, fields in rows(path):
        if len(fields) <= RIGHT:
            raise UserError(
                f"{where}: {len(fields)} fields; expected genre, file, year, id, score and two"
                " sentences, with tabs between"
            )
        yield where, pair(fields[LEFT], fields[RIGHT], fields[SCORE], where)


def write(pairs: Iterable[SentencePair], path) -> None:
    """Write pairs, their number as id; UserError for pairs without a similarity."""
    with atomic_text(path) as out:
        for rank, item in enumerate(check_pairs(pairs, path)):
            if item.similarity is None:
                raise UserError(
                    f"{path}: pair {rank + 1}: has no similarity, and stsb has no lines without;"
                    " write it as tsv or glue"
                )
            out.write(
                line(
                    [
                        "none",
                        "none",
                        "none",
                        f"{rank:04}",
                        spell_similarity(item),
                        item.left,
                        item.right,
                    ]
                )
            )
