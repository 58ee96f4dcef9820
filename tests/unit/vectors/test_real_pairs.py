"""STS Benchmark and SICK as they are published: all of their pairs, against Python's own reader of
tables.
"""

import csv
import lzma
import math
from pathlib import Path

import pytest

from lmtools.vectors.pairs import detect, read, write

HERE = Path(__file__).resolve().parents[4] / "shared/data/sts"
pytestmark = pytest.mark.skipif(not HERE.is_dir(), reason="no STS Benchmark and no SICK")
FILES = {
    "sts-train.csv": ("stsb", 5749, (5, 6, 4)),
    "sts-dev.csv": ("stsb", 1500, (5, 6, 4)),
    "sts-test.csv": ("stsb", 1379, (5, 6, 4)),
    "SICK_train.txt": ("sick", 4500, (1, 2, 3)),
    "SICK_trial.txt": ("sick", 500, (1, 2, 3)),
    "SICK_test_annotated.txt": ("sick", 4927, (1, 2, 3)),
}


@pytest.mark.parametrize("name", FILES)
def test_all_pairs(tmp_path, name):
    form, count, columns = FILES[name]
    path = HERE / f"{name}.xz"
    assert detect(path) == form
    pairs = read(path)
    with lzma.open(path, "rt", encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))[form == "sick" :]
    assert len(pairs) == len(rows) == count
    assert [(pair.left, pair.right) for pair in pairs] == [
        tuple(row[column] for column in columns[:2]) for row in rows
    ]
    assert math.fsum(pair.similarity for pair in pairs) == pytest.approx(
        math.fsum(float(row[columns[2]]) for row in rows), abs=0
    )
    assert all(0 <= pair.similarity <= 5 for pair in pairs)
    write(pairs, tmp_path / "p")
    assert read(tmp_path / "p") == pairs and detect(tmp_path / "p") == "tsv"


def test_quotes_are_letters():
    """A reader that takes them for csv's joins lines; some sentences have one that never closes."""
    pairs = read(HERE / "sts-train.csv.xz")
    assert sum((pair.left + pair.right).count('"') % 2 for pair in pairs) > 0
