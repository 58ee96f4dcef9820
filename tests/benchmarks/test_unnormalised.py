"""T-TA scored without the softmax, beside T-TA scored with it."""

import pytest
from measures.score import bench_score, format_ratios, random_scorers
from scoring import CPU

ARCH = {"layers": 2, "dim": 16, "heads": 2, "ffn": 32, "positions": 64}
SIZE = 500


@pytest.fixture(scope="module")
def figures():
    return bench_score(random_scorers(ARCH, SIZE, CPU), [5, 9], 2)


def test_it_has_the_rows_of_the_others(figures):
    keys = {
        (row["task"], row["words"]) for row in figures["rows"] if row["lm"] == "tta-unnormalised"
    }
    assert keys == {(task, words) for task in ("hidden", "rerank") for words in (5, 9)}
    assert (
        figures["models"]["tta-unnormalised"]["normalise"] == "none"
        and "normalise" not in figures["models"]["tta"]
    )
    line = next(
        line
        for line in format_ratios(figures["rows"])
        if "5 words rerank: tta-unnormalised" in line
    )
    assert "ms; tta " in line and "causal" in line


def test_its_work_is_that_of_the_other_without_the_output_matrix(figures):
    each = {
        name: row["gflops"] / row["hypotheses_per_second"] * 1e9
        for name, row in figures["batched"].items()
    }
    tokens = figures["batched"]["tta"]["tokens"]
    assert each["tta"] - each["tta-unnormalised"] == pytest.approx(2 * (tokens + 1) * 16 * SIZE)
