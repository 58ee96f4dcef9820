"""The files of the embedded mini corpus of egs/stsb are those that its README tells of."""

import hashlib
from pathlib import Path

MINI = Path(__file__).parents[3] / "egs/stsb/mini"


def test_checksums_and_size():
    lines = [line.split() for line in (MINI / "SHA256SUMS").read_text().splitlines()]
    assert {name.lstrip("*") for _, name in lines} == {path.name for path in MINI.glob("*.xz")}
    for expected, name in lines:
        assert hashlib.sha256((MINI / name.lstrip("*")).read_bytes()).hexdigest() == expected
    assert sum(path.stat().st_size for path in MINI.iterdir()) < 1.6e6
