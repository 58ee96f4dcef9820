"""What Whisper and Vosk are told, without their models."""

import numpy as np
import pytest

from lmtools.asr.options import describe_options, parse_options
from lmtools.asr.vosk import Vosk, VoskOptions
from lmtools.asr.whisper import Whisper, WhisperOptions
from lmtools.errors import UserError


@pytest.fixture
def whisper(tmp_path):
    """A function that makes one of options, in a directory with files of the right names."""
    for name in ("model.bin", "config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    return lambda *opts: Whisper(str(tmp_path), parse_options(WhisperOptions, opts, "whisper"))


def test_long_utterances_have_the_best_combinations(whisper, monkeypatch):
    made = whisper("depth=3")
    lists = iter([[(-1.0, "a"), (-2.0, " b")], [(-0.5, " c"), (-0.75, "d"), (-3.0, "e")]])
    monkeypatch.setattr(made, "decode_part", lambda part: next(lists))
    hyps = made.decode(np.zeros(16_000 * 31, dtype=np.float32))
    assert [(hyp.text, hyp.scores["am"]) for hyp in hyps] == [
        ("a c", -1.5),
        ("a d", -1.75),
        ("b c", -2.5),
    ]


def test_depth_is_within_the_beam(whisper):
    with pytest.raises(UserError, match=r"--opts depth=20: more than the beam of 5 holds; "):
        whisper("beam=5")
    assert whisper("beam=5", "depth=5").options.depth == 5


def test_tokens_are_a_regular_expression(whisper):
    wanted = whisper().wanted
    assert all(map(wanted.fullmatch, (" the", "ing", "'s", " a")))
    assert not any(map(wanted.fullmatch, ("", " The", ".", " 7", "'", " 's", "é", "♪")))
    with pytest.raises(UserError, match=r"--opts tokens: no regular expression \("):
        whisper("tokens=[")


def test_a_directory_without_a_model(tmp_path):
    with pytest.raises(UserError, match=r"no model\.bin; give a Whisper model of CTranslate2"):
        Whisper(str(tmp_path))
    with pytest.raises(UserError, match=r"no am/final\.mdl; give a directory with a model of Vosk"):
        Vosk(str(tmp_path))


def test_vosk_reads_our_options(tmp_path):
    model, place = tmp_path / "model", tmp_path / "place"
    for name in ("am/final.mdl", "graph/HCLr.fst", "conf/mfcc.conf", "conf/model.conf"):
        (model / name).parent.mkdir(parents=True, exist_ok=True)
        (model / name).write_text("")
    (model / "conf/mfcc.conf").write_text("--use-energy=false\n--sample-frequency=8000\n")
    own = "--min-active=200\n--beam=10.0\n--max-active=3000\n--acoustic-scale=1.0\n"
    (model / "conf/model.conf").write_text(own)
    vosk = Vosk(str(model), parse_options(VoskOptions, ["beam=11", "depth=5"], "vosk"))
    assert vosk.rate == 8000
    place.mkdir()
    vosk.with_options(place)
    assert (place / "conf/model.conf").read_text().split() == [
        "--min-active=200",
        "--acoustic-scale=1.0",
        "--beam=11.0",
        "--max-active=7000",
        "--lattice-beam=8.0",
    ]
    assert (place / "am/final.mdl").exists() and (place / "conf/mfcc.conf").read_text()
    assert (model / "conf/model.conf").read_text() == own


def test_options_explain_themselves():
    for options in (WhisperOptions, VoskOptions):
        assert "depth: hypotheses of a list" in describe_options(options)
