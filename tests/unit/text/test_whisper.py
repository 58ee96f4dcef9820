"""Whisper's normalisers are those of PyPI's whisper-normalizer, to the word, in linear time."""

import random
import sys

import pytest
from whisper_normalizer.basic import BasicTextNormalizer
from whisper_normalizer.english import EnglishTextNormalizer

from lmtools.base.errors import UserError
from lmtools.text import NORMALISERS, whisper

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
