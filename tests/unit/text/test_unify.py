import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.text.unify import UNIFIERS, unifier
from lmtools.types import Hypothesis, NBest

SCRIPT = Path(__file__).parents[3] / "utils/unify.py"
# the same words in two forms, and the one form that makes them equal
PAIRS = [
    ("nfc", unicodedata.normalize("NFD", "été à Đà Nẵng, 한국어 が"), "été à Đà Nẵng, 한국어 が"),
    ("nfc", "10 \u2126", "10 Ω"),
    ("nfkc", "ｋｉｎｇ １２ ﬁn ﻻ", "king 12 fin لا"),
    ("nfkc", "ﾊﾛｰ ﾊﾞｽ", "ハロー バス"),
    ("apostrophes", "don’t he`s l´été ʼokina", "don't he's l'été 'okina"),
    ("dashes", "well–known e‐mail −2", "well-known e-mail -2"),
    ("quotes", "“so” «da»", '"so" "da"'),
    ("invisible", "\ufeffthe qu\u00adick\u200b br\u2060own \u202aend\u202c", "the quick brown end"),
    ("invisible", "مـــحـمد", "محمد"),
    ("invisible", "می\u200cخواهم", "میخواهم"),
    ("invisible", "a\x07b ❤\ufe0f", "ab ❤"),
    ("separators", "می\u200cخواهم", "می خواهم"),
    ("separators", "the\u200bquick \u200b fox", "the quick fox"),
    ("digits", "٢١ ۲۱ २१ ２１", "21 21 21 21"),
    ("blanks", "今天 天气 很 好 ， 用 Python 写", "今天天气很好，用Python写"),
    ("blanks", "สวัสดี ครับ", "สวัสดีครับ"),
    ("letters", "كيف ţară сhаt", "کیف țară снat".replace("снat", "сhаt")),
    ("diacritics", "Été ŁÓDŹ smørrebrød Ἀθήνα ещё الْعَرَبِيَّةُ أحمد إلى שָׁלוֹם",
     "Ete LODZ smorrebrod Αθηνα еще العربية احمد الى שלום"),
]  # fmt: skip
# of which one form makes what another takes away
MADE = ["a\u0149b", "a\u1fefb", "a\u0626b", "a\u2034", "a\ufcf2b", "a\u207bb"]
KEPT = ["the king: it's well-known", "한국어 는 좋 다", "हिन्दी में", "ภาษาไทย", "мой дом", "がば", ""]


@pytest.mark.parametrize(("name", "one", "other"), PAIRS)
def test_what_makes_texts_equal(name, one, other):
    unify = unifier([name])
    assert unify(one) == unify(other)
    if name != "letters":
        assert unify(one) == other
    assert one != other or name == "letters"


@pytest.mark.parametrize("names", [[name] for name in UNIFIERS] + [list(UNIFIERS)])
@pytest.mark.parametrize("text", [*KEPT, *MADE] + [text for _, *texts in PAIRS for text in texts])
def test_twice_changes_nothing_more(names, text):
    unify = unifier(names)
    assert unify(unify(text)) == unify(text)
    if text in KEPT:
        assert unify(text) == text


def test_the_order_in_which_they_are_named_is_none():
    assert unifier(["nfkc", "apostrophes"])("don´t") == "don't"
    assert unifier(["invisible", "separators"])("می\u200cخ\u00adواهم") == "می خواهم"


def test_an_unknown_form():
    with pytest.raises(UserError, match=r"NFC: no form of Unicode; known are pieces,"):
        unifier(["nfkc", "NFC"])
    with pytest.raises(SystemExit):
        main(["convert", "a", "b", "--unify", "NFC"])


def test_convert_and_evaluate(tmp_path, monkeypatch, capsys):
    """Hypotheses, references and further references alike; a changed text loses its tokens."""
    monkeypatch.chdir(tmp_path)
    hyp = Hypothesis("i don’t know", {"am": -1.0}, {"words": "old"})
    jsonl.write([NBest("u", (hyp, Hypothesis("i do know", {"am": -2.0})), "i don't know")], "n")
    assert main(["evaluate", "--hyp", "n"]) == 0
    assert "WER 33.33%" in capsys.readouterr().out
    assert main(["evaluate", "--hyp", "n", "--unify", "apostrophes,nfc", "--oracle"]) == 0
    out = capsys.readouterr().out
    assert "WER 0.00%" in out and "|norm:apostrophes+nfc|" in out
    assert main(["convert", "n", "out", "--unify", "apostrophes"]) == 0
    (nbest,) = jsonl.read("out")
    assert [hyp.text for hyp in nbest.hyps] == ["i don't know", "i do know"]
    assert not nbest.hyps[0].extra and nbest.hyps[0].scores == {"am": -1.0}
    Path("text").write_text("u i don’t know\n")
    Path("ref").write_text("u i don't know\n")
    command = "evaluate --ref ref --hyp text --against n --unify apostrophes"
    assert main(command.split()) == 0
    assert capsys.readouterr().out.count("WER 0.00%") == 2


def test_the_script():
    done = subprocess.run(
        [sys.executable, SCRIPT, "apostrophes"], input="don’t\n\ngo\n".encode(), capture_output=True
    )
    assert done.stdout.decode() == "don't\n\ngo\n"
    done = subprocess.run([sys.executable, SCRIPT, "x"], input=b"", capture_output=True)
    assert done.returncode == 1 and done.stderr.count(b"\n") == 1
