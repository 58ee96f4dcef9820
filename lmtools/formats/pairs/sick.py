"""SICK: a header with `pair_ID sentence_A sentence_B relatedness_score`, tab-separated; columns are
found by name and nothing is quoted.

Both releases are read: a file a set (SICK_train.txt, SICK_trial.txt, SICK_test_annotated.txt) and
the one file SICK.txt, whose column `SemEval_set` tells sets apart. Scores are from 1 (unrelated) to
5; files without them hold pairs without a similarity. Entailment is not read. Marelli et al. 2014.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from lmtools.atomic import atomic_text
from lmtools.errors import UserError
from lmtools.formats.pairs.common import agreeing, check_pairs, line, read_headed, spell_similarity
from lmtools.types import SentencePair

ABOUT = "SICK: tab-separated, with a header, one file or one a set"
OPTIONS = {
    "set": (
        "train, trial or test: the pairs of one set of the release in one file (default: all that"
        " the file holds)"
    )
}
SETS = ("train", "trial", "test")
HEADER = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score")


def recognises(path: Path, first: str) -> bool:
    """Return whether the first line is a header with both sentences."""
    return set(HEADER[:3]) <= set(first.split("\t"))


def read(path, set: str | None = None) -> Iterator[SentencePair]:
    """Read the pairs of a file, or those of `set` in it."""
    if set not in (None, *SETS):
        raise UserError(f"{path}: set={set}; expected {', '.join(SETS)}")
    return agreeing(parse_lines(path, set), path if set is None else f"{path}: set={set}")


def parse_lines(path, chosen: str | None) -> Iterator[tuple[str, SentencePair]]:
    """(`path:line`, pair) of each line of the set `chosen` (None: of each line)."""
    for where, row, item in read_headed(path, *HEADER[1:]):
        if chosen and "SemEval_set" not in row:
            raise UserError(
                f"{path}:1: set={chosen}, but there is no column SemEval_set; drop the option or"
                " give the release in one file"
            )
        if not chosen or row["SemEval_set"].lower() == chosen:
            yield where, item


def write(pairs: Iterable[SentencePair], path) -> None:
    """Write pairs, numbered from 1."""
    with atomic_text(path) as out:
        for rank, item in enumerate(check_pairs(pairs, path), 1):
            score = [spell_similarity(item)] * (item.similarity is not None)
            if rank == 1:
                out.write(line(HEADER if score else HEADER[:-1]))
            out.write(line([str(rank), item.left, item.right, *score]))
