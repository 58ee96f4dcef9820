"""Texts scored by sound: by Whisper, by CTC, in lists; pooled lists; what is refused."""

import json

import numpy as np
import pytest
import soundfile
from tiny_whisper import write_model

import lmtools
from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import scores

pytest.importorskip("faster_whisper")
TEXTS = ["We call it bear.", "We call it bill.", "we", "Wir (nennen) es."]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory with a model, two recordings, and lists of these."""
    home = tmp_path_factory.mktemp("ears")
    write_model(home / "model")
    random = np.random.default_rng(1)
    lines = []
    for name, seconds in (("a", 2.0), ("b", 3.01)):
        samples = 0.1 * random.standard_normal(int(seconds * 16_000))
        soundfile.write(home / f"{name}.wav", samples, 16_000, subtype="FLOAT")
        hyps = [{"text": text.lower(), "written": text, "scores": {"am": -1}} for text in TEXTS]
        lines.append(json.dumps({"utt": name, "ref": "we call it bear", "hyps": hyps}) + "\n")
    (home / "lists.jsonl").write_text("".join(lines))
    return home


@pytest.fixture(scope="module")
def ear(home):
    return lmtools.listen(f"whisper:{home}/model")


def score(home, *more, out="o.scores", lists="lists.jsonl") -> int:
    options = ["--nbest", str(home / lists), "--out", str(home / out)]
    return main(["score", "--audio", str(home), *options, *more])


def test_lists_have_the_scores_of_their_sound(home, ear, monkeypatch):
    monkeypatch.setenv("LMTOOLS_CACHE", str(home / "cache"))
    asr = ("--asr", f"whisper:{home}/model", "--written")
    assert score(home, *asr) == 0
    table = scores.read(home / "o.scores")
    for name in "ab":
        samples, _ = soundfile.read(home / f"{name}.wav", dtype="float32")
        heard = ear.score(TEXTS, samples)
        assert table.log_prob[name] == pytest.approx([one.log_prob for one in heard], abs=1e-3)
        assert table.tokens[name].tolist() == [one.tokens for one in heard]
        assert heard[2].tokens == len(" we") + 1  # of bytes, and the end
    assert table.log_prob["a"][0] != table.log_prob["b"][0]
    # what is known is not heard again, nor a model loaded for it
    monkeypatch.setattr("lmtools.ears.lists.as_completed", None)
    assert score(home, *asr, out="again.scores") == 0
    assert (home / "again.scores").read_bytes() == (home / "o.scores").read_bytes()


def test_a_segment_is_a_part_of_its_session(home, ear, tmp_path):
    samples, _ = soundfile.read(home / "b.wav", dtype="float32")
    extra = {"session": "b", "start": "1", "end": "2.5"}
    line = {"utt": "b-1", "hyps": [{"text": TEXTS[0]}], "extra": extra}
    (tmp_path / "segments.jsonl").write_text(json.dumps(line) + "\n")
    options = ["--nbest", str(tmp_path / "segments.jsonl"), "--out", str(tmp_path / "o.scores")]
    ear_options = ["--asr", f"whisper:{home}/model", "--audio", str(home), "--cache", "none"]
    assert main(["score", *options, *ear_options]) == 0
    (heard,) = ear.score(TEXTS[:1], samples[16_000:40_000])
    table = scores.read(tmp_path / "o.scores")
    assert table.log_prob["b-1"] == pytest.approx([heard.log_prob], abs=1e-3)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--asr", "whisper:none"], "none: no model.bin"),
        (["--asr", "kaldi:x"], "no recogniser that scores texts is called so"),
        ([], "--asr, --audio: the recogniser and its recordings; give both"),
        (["--asr", "whisper:{}/model", "--lm", "x"], "--asr: reads sound; leave --lm"),
    ],
)
def test_what_is_refused(home, capsys, more, said):
    assert score(home, *(word.format(home) for word in more), out="no.scores") == 1
    assert said in capsys.readouterr().err
    assert not (home / "no.scores").exists()


def test_a_list_without_a_recording_and_too_much_sound(home, ear, tmp_path, capsys):
    (tmp_path / "lists.jsonl").write_text('{"utt": "c", "hyps": [{"text": "x"}]}\n')
    options = ["--nbest", str(tmp_path / "lists.jsonl"), "--out", str(tmp_path / "o")]
    asr = ["--asr", f"whisper:{home}/model", "--audio", str(home)]
    assert main(["score", *options, *asr]) == 1
    assert "no recording of list 'c' (there is 'a')" in capsys.readouterr().err
    with pytest.raises(UserError, match="Whisper hears 30 s at once"):
        ear.score(["x"], np.zeros(481_600, np.float32))


def test_pooled_lists_have_both_and_one_am(home, ear, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("LMTOOLS_CACHE", str(home / "cache"))
    hyps = [{"text": "we"}, {"text": "we call it bear"}]
    lines = [json.dumps({"utt": utt, "ref": "", "hyps": hyps}) + "\n" for utt in "ab"]
    (tmp_path / "other.jsonl").write_text("".join(lines))
    options = ["--out", str(tmp_path / "pool.jsonl"), "--asr", f"whisper:{home}/model"]
    files = [str(home / "lists.jsonl"), str(tmp_path / "other.jsonl")]
    assert main(["pool", *files, *options, "--audio", str(home), "--depth", "2"]) == 0
    first, _ = lmtools.read(tmp_path / "pool.jsonl")
    texts = [hyp.text for hyp in first.hyps]
    assert texts == ["we call it bear.", "we call it bill.", "we", "we call it bear"]
    assert [hyp.extra.get("source") for hyp in first.hyps] == [None, None, files[1], files[1]]
    samples, _ = soundfile.read(home / "a.wav", dtype="float32")
    heard = [one.log_prob for one in ear.score(texts, samples)]
    assert [hyp.scores["am"] for hyp in first.hyps] == pytest.approx(heard, abs=1e-3)
    assert "4 new hypotheses in 2 of 2 lists" in capsys.readouterr().err
    (tmp_path / "other.jsonl").write_text(lines[0])
    assert main(["pool", *files, "--out", str(tmp_path / "p.jsonl")]) == 1
    assert "no list of 'b'" in capsys.readouterr().err
