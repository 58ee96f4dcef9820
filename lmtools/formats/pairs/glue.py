"""GLUE's copy of STS Benchmark: a header `index genre filename year old_index source1 source2
sentence1 sentence2 score`, tab-separated.

Columns are found by name; nothing is quoted. The test set has no `score`, and its pairs no
similarity. Wang et al. 2019. What SentencePair does not hold is written as `none`, as GLUE itself
does where a source is not known.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from lmtools.atomic import atomic_text
from lmtools.formats.pairs.common import agreeing, check_pairs, line, read_headed, spell_similarity
from lmtools.types import SentencePair

ABOUT = "GLUE's STS-B: tab-separated, with a header"
HEADER = (
    "index",
    "genre",
    "filename",
    "year",
    "old_index",
    "source1",
    "source2",
    "sentence1",
    "sentence2",
    "score",
)
COLUMNS = HEADER[7:]


def recognises(path: Path, first: str) -> bool:
    """Return whether the first line is a header with both sentences."""
    return {"index", *COLUMNS[:2]} <= set(first.split("\t"))


def read(path) -> Iterator[SentencePair]:
    """Read the pairs of a file."""
    return agreeing(((where, item) for where, _, item in read_headed(path, *COLUMNS)), path)


def write(pairs: Iterable[SentencePair], path) -> None:
    """Write pairs, numbered from 0."""
    with atomic_text(path) as out:
        for rank, item in enumerate(check_pairs(pairs, path)):
            score = [spell_similarity(item)] * (item.similarity is not None)
            if rank == 0:
                out.write(line(HEADER if score else HEADER[:-1]))
            out.write(line([str(rank), *["none"] * 6, item.left, item.right, *score]))
