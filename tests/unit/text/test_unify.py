import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from whisper_normalizer.basic import BasicTextNormalizer
from whisper_normalizer.english import EnglishTextNormalizer

from lmtools import Hypothesis, NBest, UserError
from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.text import NORMALISERS, whisper
from lmtools.text.normaliser import parse_normaliser
from lmtools.text.scripts import join_texts, split_units
from lmtools.text.unify import UNIFIERS, unifier

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


THEIRS = {
    "whisper-english": EnglishTextNormalizer(),
    "whisper-basic": BasicTextNormalizer(),
    "whisper-basic-marks": BasicTextNormalizer(preserve_marks=True),
    "whisper-basic-letters": BasicTextNormalizer(split_letters=True),
}
TEXTS = [
    "Mr. Smith's colour cost $20 and 7 cents, didn't it (laughter) [Music]?",
    "Twenty-one percent of one oh one, 1960s, 5,000 and two and a half...",
    "हिन्दी में लिखा, 東京都です。 <|en|> don 't",
    "",
]
PARTS = [*"()[]<>'’.,$%-* \t\u00a0\x1faéı½²", "one", "twenty", "hundred", "and a half", "st", "5.5"]


@pytest.mark.parametrize("name", THEIRS)
def test_results_are_the_package_s(name):
    random.seed(1)
    made = ["".join(random.choices(PARTS, k=random.randint(1, 12))) for _ in range(2000)]
    for text in TEXTS + made:
        assert NORMALISERS[name](text) == " ".join(THEIRS[name](text).split()), text


def test_examples():
    assert NORMALISERS["whisper-english"](TEXTS[0]) == (
        "mister smith is color cost $20.07 did not it"
    )
    assert NORMALISERS["whisper-basic"](TEXTS[0]) == (
        "mr smith s colour cost 20 and 7 cents didn t it"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The U.S.A. today...", "the usa today"),
        ("well ... the B.B.C. and U.K.", "well the bbc and uk"),
        ("kinda 'cause I dunno, sorta colour", "kinda cause i dunno sorta color"),
        ("um, won't [noise] (laughs) gonna", "will not going to"),
        ("MR. Smith's twenty one", "mister smith is 21"),
    ],
)
def test_leaderboard(text, expected):
    assert NORMALISERS["open-asr"](text) == " ".join(expected.split())


def test_leaderboard_leaves_the_english_rules_alone():
    NORMALISERS["open-asr"]("a")
    assert NORMALISERS["whisper-english"]("um kinda") == "kind of"


@pytest.mark.parametrize("text", ["<" * 100_000, "(" * 100_000 + "<)>", " '" * 50_000])
def test_brackets_without_end_take_no_long_time(text):
    """The package itself takes a minute for them."""
    assert NORMALISERS["whisper-english"](text) == ""


def test_a_number_beyond_the_english_rules_is_no_crash():
    with pytest.raises(AssertionError):
        THEIRS["whisper-english"]("1" * 5000)
    assert NORMALISERS["whisper-english"](f"It's {'1' * 5000}") == f"it s {'1' * 5000}"


def test_without_the_package(monkeypatch):
    whisper.load_rules.cache_clear()
    monkeypatch.setitem(sys.modules, "whisper_normalizer.english", None)
    with pytest.raises(UserError, match="whisper-english: needs whisper-normalizer; pip install"):
        NORMALISERS["whisper-english"]("a")
    whisper.load_rules.cache_clear()


@pytest.mark.parametrize(
    ("text", "removed"),
    [
        ("दिल की बात", True),
        ("போகிறேன்", True),
        ("ฉันไม่ไป", True),
        ("ខ្ញុំ", True),
        ("ကျွန်တော်", True),
        ("दल", False),  # no vowel sign
        ("café naïve", False),
        ("شَعْر", False),  # points, which readers leave out themselves
        ("한국어", False),
    ],
)
def test_removed_vowel_signs_are_told(text, removed, capsys):
    """Once for each normaliser, and not by the one that keeps them."""
    for name, rules in whisper.NAMES.items():
        whisper.warn_of_signs.cache_clear()
        assert [NORMALISERS[name](text) for _ in range(2)]
        said = capsys.readouterr().err
        told = removed and rules != "basic-marks"
        assert said.count("\n") == told and said.startswith(f"warning: normaliser {name}:") == told
        if told:
            assert said.endswith("take whisper-basic-marks\n")


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("we won't  go", "we|won't|go"),
        ("我们go to海边", "我|们|go|to|海|边"),
        ("昨日カメラを買った", "昨|日|カ|メ|ラ|を|買|っ|た"),
        ("ที่นี่ กิน", "ที่|นี่|กิ|น"),
        ("ကျွန်တော်", "ကျွ|န်|တော်"),
        ("ផ្ទះ\u200bថ្មី", "ផ្|ទះ|ថ្|មី"),
        ("ＡＢＣ商事", "ＡＢＣ|商|事"),
        ("서울에 가요", "서울에|가요"),
    ],
)
def test_letters_of_scripts_without_blanks_are_units(text, units):
    assert split_units(text) == units.split("|")
    assert parse_normaliser("none:letters=split")(text) == units.replace("|", " ")


def test_texts_are_joined_as_their_script_is_written():
    assert join_texts(["去海边，", "船很小", "OK.", "", "船"]) == "去海边，船很小 OK. 船"
    assert join_texts(["เราจะไป", "ทะเล"]) == "เราจะไปทะเล" and join_texts(["a", "b"]) == "a b"
