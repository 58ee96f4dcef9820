"""Words of a glossary's phrases and all others: counts by hand, and against the WER."""

import dataclasses
import json
import random

import numpy as np
import pytest

from lmtools.cli import main
from lmtools.evaluate.metrics import METRICS
from lmtools.formats import kaldi_text
from lmtools.phrases.evaluate import (
    PhraseAlignment,
    PhraseDifference,
    PhraseEvaluation,
    compare_phrases,
    count_texts,
    differ,
    list_changes,
    list_errors,
)
from lmtools.phrases.glossary import make_glossary

GLOSSARY = make_glossary(["New York", "york", "Kubernetes | cooper netties"])
REFS = {"u1": "we work in new york", "u2": "on kubernetes today", "u3": "nothing"}
HYPS = {"u1": "we york in new work", "u2": "on cooper netties", "u3": "nothing"}


def test_by_hand():
    # u1: york inserted beside work (U), york of new york substituted (B); New York missed
    # u2: kubernetes (B) and today (U) substituted; what was said is found all the same
    rows = count_texts(REFS, HYPS, GLOSSARY)
    assert rows.tolist() == [[1, 2, 1, 3, 0, 1, 1], [1, 1, 1, 2, 1, 1, 1], [0, 0, 0, 1, 0, 0, 0]]
    result = PhraseEvaluation(rows, seconds=1800)
    assert result.score("B-WER") == pytest.approx(200 / 3) and result.score(
        "U-WER"
    ) == pytest.approx(100 / 3)
    assert result.score("recall") == 50 and result.score("precision") == 50
    assert result.score("F1") == pytest.approx(50)
    assert result.false_alarms == 1 and result.per_hour(1) == 2
    errors = list_errors(REFS, HYPS, GLOSSARY)
    assert [(e["utt"], e["kind"], e["phrase"], e["ref"], e["hyp"]) for e in errors] == [
        ("u1", "missed", "New York", "new york", "new work"),
        ("u1", "false alarm", "york", "work", "york"),
    ]
    better = {**REFS, "u2": "on kubernetes york today"}
    kinds = [
        (c["utt"], c["kind"], c["phrase"]) for c in list_changes(REFS, (better, HYPS), GLOSSARY)
    ]
    assert kinds == [
        ("u1", "found", "New York"),
        ("u1", "false alarm avoided", "york"),
        ("u2", "false alarm", "york"),
    ]


@pytest.mark.parametrize("seed", range(100))
def test_errors_add_up(seed):
    rng = random.Random(seed)
    words = ["new", "york", "york's", "cooper", "netties", "kubernetes", "a", "New-York,"]
    ref, hyp = (" ".join(rng.choices(words, k=rng.randint(0, 8))) for _ in range(2))
    row = PhraseAlignment.of(ref, hyp, GLOSSARY.unweighted("u")).count()
    counts = METRICS["wer"].statistics(ref, [hyp])[0]
    assert row[0] + row[2] == counts[:3].sum() and row[1] + row[3] == counts[3]
    assert row[4] <= min(row[5], row[6])
    aligned = PhraseAlignment.of(ref, hyp, GLOSSARY.unweighted("u"))
    assert len(aligned.missed()) == row[5] - row[4]
    assert len(aligned.false_alarms()) == row[6] - row[4]


def test_comparison():
    rows = np.tile(count_texts(REFS, HYPS, GLOSSARY), (20, 1))
    right = np.tile(count_texts(REFS, REFS, GLOSSARY), (20, 1))
    gaps = compare_phrases(PhraseEvaluation(right), PhraseEvaluation(rows))
    assert gaps["B-WER"].difference == pytest.approx(-200 / 3) and gaps["B-WER"].p < 0.001
    assert gaps["false alarms"].difference == -20
    same = compare_phrases(PhraseEvaluation(rows), PhraseEvaluation(rows))
    assert all(gap.p == 1 and gap.difference == 0 for gap in same.values())


def test_differ():
    assert differ(["a", "b", "c", "d"], ["a", "x", "d"]) == (["b", "c"], ["x"])
    assert differ(["a"], ["a"]) == ([], [])
    assert differ(["a", "a"], ["a"]) == (["a"], [])


def test_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g").write_text("New York\nyork\nKubernetes | cooper netties\n")
    (tmp_path / "utt2dur").write_text("u1 600\nu2 600.0\nu3 600\n")
    kaldi_text.write(REFS, "ref")
    kaldi_text.write(HYPS, "hyp")
    command = ["evaluate", "--ref", "ref", "--words", "g", "--out", "o.json", "--hyp"]
    assert main([*command, "hyp", "--utt2dur", "utt2dur"]) == 0
    out = capsys.readouterr().out
    assert "B-WER 66.67% [95% CI" in out and "(2 of 3)" in out
    assert "false alarms 1, 2.00 an hour of 1800 s" in out
    assert "u1: false alarm 'york': said 'work', is 'york'" in out
    tree = json.loads((tmp_path / "o.json").read_text())["words"]
    assert tree["counts"]["phrase errors"] == 2 and tree["false alarms an hour"] == 2
    assert [row["kind"] for row in tree["errors"]] == ["missed", "false alarm"]
    assert main([*command, "ref", "--against", "hyp"]) == 0
    out = capsys.readouterr().out
    assert "difference in recall +50.00" in out
    assert "u1: found 'New York': 'york in new work' -> 'work in new york'" in out
    (tmp_path / "utt2dur").write_text("u1 600\n")
    assert main([*command, "hyp", "--utt2dur", "utt2dur"]) == 1
    assert "utt2dur: no seconds of utterance 'u2'" in capsys.readouterr().err
    assert main(["evaluate", "--ref", "ref", "--hyp", "hyp", "--utt2dur", "utt2dur"]) == 1
    command = "evaluate --ref ref ref --hyp hyp --words g --metric bleu"
    assert main(command.split()) == 1
    assert "--words: utterance 'u1' has 2 references" in capsys.readouterr().err


def test_figures_of_nothing_are_undefined(tmp_path, monkeypatch, capsys):
    """No phrase is said: no recall and no B-WER; nobody has any: no precision."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g").write_text("Kubernetes\n")
    kaldi_text.write({"u1": "the red fox", "u2": "yes"}, "ref")
    kaldi_text.write({"u1": "the red kubernetes", "u2": "yes"}, "hyp")
    command = ["evaluate", "--ref", "ref", "--words", "g", "--out", "o.json", "--hyp"]
    assert main([*command, "hyp", "--against", "ref"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "B-WER - (0 of 0)" in out and "recall - (0 of 0)" in out
    assert any(line.startswith("precision 0.00% [95% CI 0.00, 95.00] (0 of 1)") for line in out)
    assert "against ref: precision - (0 of 0)" in out and "against ref: F1 -" in out
    assert "difference in recall -" in out and "difference in precision -" in out
    tree = json.loads((tmp_path / "o.json").read_text())["words"]
    assert tree["figures"]["recall"] == {"score": None, "interval": None}
    assert tree["figures"]["U-WER"]["score"] == 25
    assert tree["differences"]["B-WER"] == dataclasses.asdict(PhraseDifference())


def test_draws_without_phrases_have_no_recall():
    """One of four utterances has a phrase: many draws lack it, which is no recall of 0."""
    refs = {"u1": "on kubernetes", "u2": "a", "u3": "b", "u4": "c"}
    result = PhraseEvaluation(count_texts(refs, refs, GLOSSARY))
    assert result.intervals()["recall"] == (pytest.approx(5), 100)  # one of one
    assert result.intervals()["F1"] is None
