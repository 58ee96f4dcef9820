"""T-TA scored without the softmax, beside T-TA scored with it."""

import pytest
import torch
from measures.score import (
    bench_score,
    format_ratios,
    random_family,
    random_scorers,
    trained_scorers,
)
from scoring import CPU
from toys import settings

from lmtools.train import train

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


def test_it_makes_no_pass_over_the_vocabulary(monkeypatch):
    scorer = random_family("tta", ARCH, SIZE, CPU, normalise="none")
    sentence = (7, 9, 8)
    # (V, 4)
    z = (
        scorer.output.weight
        @ scorer.lm.trunk.head(scorer.predicting_states(scorer.lm.objective.scoring([sentence]))).T
    )
    monkeypatch.setattr(scorer.output, "log_normaliser", None)
    expected = [
        z[i, row] + scorer.output.bias[i]
        for row, i in enumerate(scorer.lm.objective.scoring([sentence]).targets)
    ]
    torch.testing.assert_close(
        torch.from_numpy(scorer.log_probs([sentence])[0]).float(), torch.stack(expected).detach()
    )


def test_trained_models_have_it_where_they_learned_by_sampling(tiny, trained, tmp_path):
    sampled = settings("tta", criterion="bce-nce", output={"samples": 8}, steps=3)
    train(sampled, tiny / "train.bin", tiny / "valid.bin", tmp_path / "nce", "cpu")
    lms = {"tta-nce": str(tmp_path / "nce"), "tta": str(trained["tta"])}
    scorers = trained_scorers(lms, CPU)
    assert {name: scorer.normalised for name, scorer in scorers.items()} == {
        "tta-nce": True,
        "tta": True,
        "tta-nce-unnormalised": False,
    }
