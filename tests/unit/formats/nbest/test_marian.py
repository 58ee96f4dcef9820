from pathlib import Path

import pytest

from lmtools.base.errors import UserError
from lmtools.formats import FORMATS, detect
from lmtools.types import Hypothesis, NBest

REAL = Path(__file__).resolve().parents[5] / "shared/data/formats/marian.nbest"
marian = FORMATS["marian"]
LINES = "0 ||| blue finch ||| F0= -2.1 F1= -0.4 ||| -0.7\n0 |||  ||| F0= -2 F1= 0 ||| -1\n"


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("0 ||| blue ||| F0= -2.1 ||| -0.7\n", {}),
        ("0 ||| blue ||| 0-0 1-1 ||| F0= -2.1 ||| -0.7\n", {"alignment": "0-0 1-1"}),
        (
            "0 ||| blue ||| WordScores= -0.1 -0.2 ||| F0= -2.1 ||| -0.7\n",
            {"WordScores": "-0.1 -0.2"},
        ),
        (
            "0 ||| blue ||| 0-0 ||| WordScores= -0.1 ||| F0= -2.1 ||| -0.7\n",
            {"alignment": "0-0", "WordScores": "-0.1"},
        ),
    ],
)
def test_what_may_stand_between_text_and_features(tmp_path, line, extra):
    path = tmp_path / "n"
    path.write_text(line)
    assert detect(path) == "marian"
    assert list(marian.read(path)) == [
        NBest("0", (Hypothesis("blue", {"F0": -2.1, "am": -0.7}, extra),))
    ]
    marian.write(marian.read(path), tmp_path / "again")
    assert (tmp_path / "again").read_text() == line


def test_reads_lists_and_both_ways_to_write_features(tmp_path):
    want = [
        NBest(
            "0",
            (
                Hypothesis("blue finch", {"F0": -2.1, "F1": -0.4, "am": -0.7}),
                Hypothesis("", {"F0": -2, "F1": 0, "am": -1}),
            ),
        )
    ]
    for name, content in (("a", LINES), ("b", LINES.replace("= ", "="))):
        (tmp_path / name).write_text(content)
        assert list(marian.read(tmp_path / name)) == want
        assert detect(tmp_path / name) == "marian"


@pytest.mark.parametrize(
    "features",
    ["F0= -2.1 F1= -0.4 WordScores= -0.1 -1e-05", "WordScores= -0.1 -1e-05 F0= -2.1 F1= -0.4"],
)
def test_word_scores_among_the_features_of_older_versions(tmp_path, features):
    path = tmp_path / "n"
    path.write_text(
        f"0 ||| blue ||| {features} ||| -0.7\n0 ||| blue finch ||| F0= -1 F1= -2 ||| -0.8\n"
    )
    assert detect(path) == "marian"
    first, second = next(marian.read(path)).hyps
    extra = {"WordScores": "-0.1 -1e-05"}
    assert first == Hypothesis("blue", {"F0": -2.1, "F1": -0.4, "am": -0.7}, extra)
    assert second.extra == {}


def test_features_of_models_are_never_absent(tmp_path):
    (tmp_path / "n").write_text("0 ||| a ||| F0= -1 F1= -2 ||| -1\n0 ||| b ||| F0= -1 ||| -1\n")
    with pytest.raises(UserError, match="n:1: hypothesis 2 has scores"):
        list(marian.read(tmp_path / "n"))


@pytest.mark.parametrize(
    ("pieces", "marks", "text"),
    [
        ("▁the ▁fox es </s>", "sentencepiece", "the foxes"),
        ("the fox@@ es </s>", "subword_nmt", "the foxes"),
        ("</s>", "sentencepiece", ""),
        ("▁a </s> ▁b", "sentencepiece", "a</s> b"),  # no end
        ("the fox </s>", "none", "the fox </s>"),
    ],
)
def test_the_end_of_the_sentence_is_no_piece_of_its_last_word(tmp_path, pieces, marks, text):
    path = tmp_path / "n"
    path.write_text(f"0 ||| {pieces} ||| F0= -2.5 ||| -0.5\n")
    assert next(marian.read(path, bpe=marks)).hyps[0].text == text


def test_a_list_without_features_could_be_of_either_program(tmp_path):
    path = tmp_path / "n"
    path.write_text("0 ||| blue |||  ||| -0.7\n")
    with pytest.raises(UserError, match="could be moses or marian; name its format"):
        detect(path)


@pytest.mark.skipif(not REAL.exists(), reason="no list that Marian wrote")
def test_a_list_that_marian_wrote(tmp_path):
    found = list(marian.read(REAL, bpe="subword_nmt"))
    assert (len(found), {len(nbest.hyps) for nbest in found}) == (100, {5})
    assert not any("@@" in hyp.text for nbest in found for hyp in nbest.hyps)
    marian.write(marian.read(REAL), tmp_path / "n")
    assert (tmp_path / "n").read_bytes() == REAL.read_bytes()
