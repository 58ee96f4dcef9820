"""What the benchmark counts and writes (never how fast it was)."""

import json

from bench import main as measure_speed

from lmtools.cli import main


def test_rows_cover_models_tasks_and_lengths(tmp_path, trained, capsys):
    out = tmp_path / "speed.json"
    lms = [word for name, path in trained.items() for word in ("--lm", f"{name}={path}")]
    assert (
        measure_speed(["score", *lms, "--length", "2,5", "--repeats", "2", "--out", str(out)]) == 0
    )
    figures = json.loads(out.read_text())
    keys = {(row["lm"], row["task"], row["words"]) for row in figures["rows"]}
    assert keys == {
        (lm, t, w)
        for lm in (*trained, "masked-shared")
        for t in ("hidden", "rerank")
        for w in (2, 5)
    }
    assert all(
        len(row["seconds"]) == 2
        and min(row["seconds"]) <= row["seconds_median"] <= max(row["seconds"])
        for row in figures["rows"]
    )
    assert figures["batched"].keys() == {"tta", "causal"} and figures["threads"] == 1
    assert "5 words rerank" in capsys.readouterr().out


def test_lists_are_scored_by_models_of_any_kind(tmp_path, trained, capsys):
    texts = {"u1": ["the king", "the kings"], "u2": ["a", "a"], "u3": ["b"]}
    lists = [
        {"utt": utt, "ref": "a", "hyps": [{"text": t, "scores": {"am": 0}} for t in some]}
        for utt, some in texts.items()
    ]
    (tmp_path / "n.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lists))
    (tmp_path / "t").write_text("the king came\n" * 9)
    lm, out = str(tmp_path / "ngram"), str(tmp_path / "speed.json")
    assert main(["ngram", "--text", str(tmp_path / "t"), "--order", "2", "--out", lm]) == 0
    lms = ["--lm", f"causal={trained['causal']}", "--lm", f"ngram={lm}"]
    how = ["--nbest", str(tmp_path / "n.jsonl"), "--hypotheses", "3", "--repeats", "2"]
    assert measure_speed(["lists", *lms, *how, "--out", out]) == 0
    figures = json.loads((tmp_path / "speed.json").read_text())
    assert (figures["hypotheses"], figures["distinct"]) == (4, 3)
    assert [row["lm"] for row in figures["rows"]] == ["causal", "ngram"]
    assert all(len(row["seconds"]) == 2 for row in figures["rows"])
    assert figures["rows"][1]["tokens"] == 2 + 2 + 1 + 1 + 4
    assert "ngram: " in capsys.readouterr().out
