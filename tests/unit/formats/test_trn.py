import pytest

from lmtools.errors import UserError
from lmtools.formats import trn


def test_reads_words_before_the_id(tmp_path):
    path = tmp_path / "h.trn"
    path.write_text(";; a comment\nblue finch  sings (spk1_zed1)\n(spk1_zed2)\n\noh (spk1-zed3) \n")
    assert trn.read(path) == {"spk1_zed1": "blue finch sings", "spk1_zed2": "", "spk1-zed3": "oh"}


def test_writes_what_it_reads(tmp_path):
    texts = {"s_1": "blue (finch a/b it's -ab", "s_2": "", "s_3": "é ü"}
    trn.write(texts, tmp_path / "h.trn")
    assert (tmp_path / "h.trn").read_text() == "blue (finch a/b it's -ab (s_1)\n(s_2)\né ü (s_3)\n"
    assert trn.read(tmp_path / "h.trn") == texts


@pytest.mark.parametrize(
    "line",
    [
        "blue finch",
        "blue (a b)",
        "{ um / uh } (a)",
        "(um) blue (a)",
        "@ (a)",
        "bl* (a)",
        "x;y (a)",
        "a\\b (a)",
        "x ()",
    ],
)
def test_refuses_markup_and_lines_without_id(tmp_path, line):
    path = tmp_path / "h.trn"
    path.write_text("ok (b)\n" + line + "\n")
    with pytest.raises(UserError, match=f"^{path}:2: .*; "):
        trn.read(path)


def test_refuses_repeated_ids(tmp_path):
    (tmp_path / "h.trn").write_text("x (a)\ny (a)\n")
    with pytest.raises(UserError, match=":2: utterance 'a' occurs a second time"):
        trn.read(tmp_path / "h.trn")


@pytest.mark.parametrize(
    ("utt", "text"), [("a(b", "x"), ("a)", "x"), ("a", "{ x }"), ("a b", "x"), ("a", "x @")]
)
def test_refuses_to_write_what_sclite_would_misread(tmp_path, utt, text):
    with pytest.raises(UserError):
        trn.write({utt: text}, tmp_path / "h.trn")
    assert not list(tmp_path.iterdir())
