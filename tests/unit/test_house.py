"""What holds of the package as a whole; `python tests/house.py` prints the figures."""

import house
import pytest


@pytest.fixture(scope="module")
def figures():
    return house.count()


@pytest.mark.parametrize("name", ["classes of one name", "cycles", "reached by no verb"])
def test_there_is_none(figures, name):
    assert not figures[name]


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("lines of lmtools", 62_700),
        ("statements of lmtools", 39_400),
        ("files of lmtools", 350),
        ("files under 40 lines", 8),
        ("lines of tests", 61_600),
        ("frames of score by an n-gram", 7),
        ("frames of score by a T-TA", 12),
        ("modules that score by an n-gram imports", 100),
        ("rooms", 26),
        ("flags", 134),
        ("knobs", 164),
        ("declarations a flag", 1.2),
        ("columns a line (p90)", 96),
        ("longest function", 60),
        ("functions over 40 lines", 8),
        ("functions of eight parameters", 4),
        ("calls of five positional arguments", 21),
    ],
)
def test_is_small_enough(figures, name, most):
    assert figures[name] <= most


def test_the_page_shows_the_calls_as_they_are():
    page = (house.ROOT / "ARCHITECTURE.md").read_text().splitlines()
    lines = list(house.list_traces())
    assert any(page[start : start + len(lines)] == lines for start in range(len(page)))
