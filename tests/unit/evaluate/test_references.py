"""Several references of an utterance, from files to figures, against sacrebleu."""

import json

import pytest
import sacrebleu.metrics

from lmtools.cli import main
from lmtools.formats import jsonl

REFS = {
    "a": ["the house is small", "it rains a lot today", "he left"],
    "b": ["the home is little", "today it rains very much", "he went away"],
}
HYPS = [
    ["the house is little", "the hose is small"],
    ["it rains very much today", "rain"],
    ["he went", "he left away"],
]
SACRE = {
    "bleu": sacrebleu.metrics.BLEU,
    "chrf": sacrebleu.metrics.CHRF,
    "ter": sacrebleu.metrics.TER,
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Lists as jsonl, references as plain text; lists with both, as convert attaches."""
    monkeypatch.chdir(tmp_path)
    hyps = [
        [{"text": text, "scores": {"am": -float(rank)}} for rank, text in enumerate(texts)]
        for texts in HYPS
    ]
    lists = [{"utt": str(number), "hyps": some} for number, some in enumerate(hyps, 1)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lists))
    for name, texts in REFS.items():
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts))
    (tmp_path / "hyp").write_text("".join(f"{texts[0]}\n" for texts in HYPS))
    assert main(["convert", "in.jsonl", "both.jsonl", "--ref-lines", "a", "b"]) == 0
    return tmp_path


@pytest.mark.parametrize("metric", SACRE)
def test_figures_are_sacrebleus(here, capsys, metric):
    expected = SACRE[metric]().corpus_score([texts[0] for texts in HYPS], list(REFS.values())).score
    plain = "evaluate", "--plain", "--ref", "a", "b", "--hyp", "hyp"
    for arguments in (plain, ("evaluate", "--hyp", "both.jsonl", "--oracle")):
        assert main([*arguments, "--metric", metric, "--out", "out.json"]) == 0
        tree = json.loads((here / "out.json").read_text())
        assert tree["score"] == pytest.approx(expected) and "nrefs:2" in capsys.readouterr().out
    assert tree["oracle"][0] == pytest.approx(expected)


def test_lists_keep_them_and_are_tuned_on_them(here, capsys):
    kept = list(jsonl.read("both.jsonl"))
    assert [(nbest.ref, *nbest.more_refs) for nbest in kept] == list(
        zip(*REFS.values(), strict=True)
    )
    jsonl.write(kept, "again.jsonl")
    assert (here / "again.jsonl").read_text() == (here / "both.jsonl").read_text()
    assert main(["tune", "--nbest", "both.jsonl", "--metric", "bleu", "--out", "w.json"]) == 0
    first = json.loads((here / "w.json").read_text())["dev"]["first_pass"]
    assert first == pytest.approx(
        SACRE["bleu"]().corpus_score([texts[0] for texts in HYPS], list(REFS.values())).score
    )


@pytest.mark.parametrize("verb", ["tune", "evaluate"])
def test_error_rates_take_one(here, capsys, verb):
    arguments = {
        "tune": ["--nbest", "both.jsonl", "--out", "w.json"],
        "evaluate": ["--hyp", "both.jsonl"],
    }[verb]
    assert main([verb, *arguments, "--metric", "wer"]) == 1
    assert capsys.readouterr().err.startswith(
        f"lmtools {verb}: both.jsonl: 2 references of an utterance: WER takes one; give one"
    )


def test_files_must_be_of_the_same_utterances(here, capsys):
    (here / "c").write_text("u1 x\n")
    (here / "d").write_text("u2 x\n")
    assert main(["evaluate", "--ref", "c", "d", "--hyp", "c", "--metric", "bleu"]) == 1
    assert "d: not the utterances of c (first 'u1')" in capsys.readouterr().err
    (here / "short").write_text("one\n")
    assert main(["convert", "in.jsonl", "out.jsonl", "--ref-lines", "a", "short"]) == 1
    assert "short: 1 lines for 3 lists" in capsys.readouterr().err
    assert not (here / "out.jsonl").exists()
