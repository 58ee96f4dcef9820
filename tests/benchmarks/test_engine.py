"""What `bench.py engine` measures of a model (never how fast it was)."""

import json

import pytest
import torch
from bench import main as measure_speed
from measures import engine as bench
from toys import sentences, settings

from lmtools import Hypothesis, NBest, UserError
from lmtools.cli import main
from lmtools.formats import write
from lmtools.models import engine
from lmtools.models.checkpoint import prepare_directory, save_weights
from lmtools.models.lm import LanguageModel
from lmtools.text.subword import load_subword


@pytest.fixture
def model(tiny, tmp_path):
    torch.manual_seed(0)
    subword = load_subword(tiny / "sw")
    lm = LanguageModel(settings("causal"), subword.size)
    prepare_directory(tmp_path / "lm", settings("causal"), subword)
    save_weights(tmp_path / "lm", lm)
    return tmp_path / "lm"


def test_bench_engine(model, tmp_path, monkeypatch, capsys):
    # not in processes of their own, which take seconds to start
    monkeypatch.setattr(bench, "measure_alone", bench.load_and_score)
    nbests = [
        NBest(f"u{i}", [Hypothesis(text, {"am": float(-rank)}) for rank, text in enumerate(texts)],
              ref=texts[0])
        for i, texts in enumerate([sentences(5, seed) for seed in range(6)])
    ]  # fmt: skip
    lists, scores, weights, out = (
        str(tmp_path / name) for name in ("l.jsonl", "a.scores", "w.json", "b.json")
    )
    write(nbests, lists, "jsonl")
    how = ["--lm", str(model), "--nbest", lists]
    assert main(["score", *how, "--out", scores, "--cache", "none", "--device", "cpu"]) == 0
    assert main(["tune", "--nbest", lists, "--scores", f"a={scores}", "--out", weights]) == 0
    capsys.readouterr()
    arguments = ["--weights", weights, "--words", "5", "--repeats", "1", "--out", out]
    assert measure_speed(["engine", *how, *arguments]) == 0
    rows = json.loads((tmp_path / "b.json").read_text())["rows"]
    differences = {(row["precision"], row["engine"]): row["greatest_difference"] for row in rows}
    lacking = {
        *([] if engine.multiplies_int8() else [("int8", "prepared"), ("int8", "onnx")]),
        *([] if engine.onednn_computes_bfloat16() else [("bfloat16", "prepared")]),
    }
    assert list(differences) == [way for way in bench.WAYS if way not in lacking]
    assert differences["float32", "torch"] == 0
    assert all(differences["float32", name] < 1e-4 for name in ("prepared", "onnx"))
    assert all(0 < far < 0.5 for way, far in differences.items() if way[0] == "int8")
    if ("bfloat16", "prepared") in differences:
        assert differences["bfloat16", "torch"] == differences["bfloat16", "prepared"]
    assert all(0 <= row["changed"] <= 1 and row["wer"] >= 0 for row in rows)
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(rows)
    assert measure_speed(["engine", *how, "--precision", "int8"]) == 1


def test_ways_that_do_not_take_the_model_are_skipped(trained, capsys):
    rows, scorers = zip(*bench.load_ways(str(trained["lstm"])), strict=True)
    assert {"float32"} <= {row["precision"] for row in rows} and len(rows) == len(scorers)
    assert "onnx" not in {row["engine"] for row in rows}
    assert "skipped: float32 onnx: " in capsys.readouterr().err
    with pytest.raises(UserError, match="no such language model"):
        list(bench.load_ways("none"))
