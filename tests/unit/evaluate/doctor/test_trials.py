"""Remedies that doctor names have been tried on the data: what is named brings hypotheses and
references together once it is done, what does not is not named.
"""

import json
import re
import unicodedata
from shlex import split

import pytest

from lmtools.cli import main
from lmtools.evaluate.doctor.trials import Trial, least_combination
from lmtools.text import NORMALISERS, Normaliser
from lmtools.text.unify import unifier

DECOMPOSED = unicodedata.normalize("NFD", "été à la plage déjà vu")
# hypothesis, reference, the rate as written, what the remedy says
FORMS = [
    (DECOMPOSED, "été à la plage déjà vu", "WER 50.0", "--unify nfc"),
    ("i don’t know he’s here", "i don't know he's here", "WER 40.0", "--unify apostrophes"),
    ("the\u200b quick\u200b brown fox", "the quick brown fox", "WER 50.0", "--unify invisible"),
    ("the qu\u00adick \ufeffbrown fox", "the quick brown fox", "WER 50.0", "--unify invisible"),
    ("من می خواهم", "من می\u200cخواهم", "WER 100.0", "--unify separators"),
    ("من میخواهم", "من می\u200cخواهم", "WER 50.0", "--unify invisible"),
    ("السـلام عليكم", "السلام عليكم", "WER 50.0", "--unify invisible"),
    ("ﾊﾛｰ ワールド", "ハロー ワールド", "CER 37.5", "--unify nfkc"),
    ("今天天气很好", "今天 天气 很 好", "CER 33.3", "--unify blanks"),
    ("ｋｉｎｇ of 12", "king of 12", "WER 33.3", "--unify nfkc"),
    ("room ٢١ of १२", "room 21 of 12", "WER 50.0", "--unify digits"),
    ("well–known fox", "well-known fox", "WER 50.0", "--unify dashes"),
    ("ete a la plage deja vu", "été à la plage déjà vu", "WER 50.0", "--unify diacritics"),
    ("احمد ذهب الى البيت", "أحمد ذهب إلى البيت", "WER 50.0", "--unify diacritics"),
    ("شكراً جزيلا", "شكرا جزيلا", "WER 50.0", "--unify diacritics"),
    ("كتاب علي", "کتاب علی", "WER 100.0", "--unify letters"),
    ("grosse strasse", "große straße", "WER 100.0", "--unify diacritics"),
    ("ştiinţă", "știință", "WER 100.0", "--unify letters"),
    ("مدرسة كبيره", "مدرسه کبيره", "WER 100.0", "--unify letters"),
    ("саxар и", "сахар и", "WER 50.0", "--unify letters"),
    ("你好，世界", "你好,世界", "CER 20.0", "--unify nfkc"),
    ("don’t wo\u00adrry friend", "don't worry friend", "WER 66.7", "--unify apostrophes,invisible"),
    ("Don’t go.", "DON'T GO", "WER 100.0", "--case lower --punctuation strip --unify apostrophes"),
]  # fmt: skip


def write(path, rows):
    """N-best lists of rows (hypothesis, reference)."""
    lines = (
        json.dumps({"utt": f"u{i}", "ref": ref, "hyps": [{"text": hyp, "scores": {"am": -1.0}}]})
        for i, (hyp, ref) in enumerate(rows)
    )
    path.write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def examine(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(rows, *options):
        write(tmp_path / "n.jsonl", rows)
        main(["doctor", "--nbest", "n.jsonl", *options])
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize(("hyp", "ref", "rate", "remedy"), FORMS)
def test_what_makes_both_sides_equal(examine, capsys, hyp, ref, rate, remedy):
    out = examine([(hyp, ref)] * 8)
    (line,) = (line for line in out.splitlines() if "as written" in line)
    assert line.startswith("error: n.jsonl") and len(line) <= 500
    assert f"{rate} as written, " in line and ", 0.0 " in line
    command = re.search(r"lmtools (convert .*)$", line)[1]
    assert command.endswith(remedy)
    assert main([*split(command), "n.jsonl", "out.jsonl"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "--hyp", "out.jsonl"]) == 0
    assert "WER 0.00%" in capsys.readouterr().out
    assert main(["doctor", "--nbest", "out.jsonl"]) == 0
    assert "as written" not in capsys.readouterr().out


def test_each_of_several_forms_is_told_with_its_part(examine):
    rows = [("don’t wo\u00adrry my friend", "don't worry my friend"), ("don’t go", "don't go")]
    out = examine(rows * 4)
    assert "WER 50.0 as written, 0.0 with straight apostrophes and without invisible" in out
    assert "(apostrophes 33.3, invisible 16.7 of it)" in out
    assert "only the hypotheses have ’ (U+2019), U+00AD soft hyphen" in out


def test_forms_come_before_punctuation(examine):
    """Stripping would do, too, and take away more; where it is needed, forms stand beside it."""
    out = examine([("he said “go,” and", 'he said "go," and')] * 8)
    assert out.count("lmtools") == 1 and "convert --unify quotes" in out
    out = examine([("“Don’t!” he said.", "don't he said")] * 8)
    assert "--case lower --punctuation strip --unify apostrophes" in out


def test_errors_of_accents_are_errors(examine):
    """What makes other words the same is named only where most errors are of accents."""
    assert "--unify" not in examine(
        [("où est le forêt verte dans", "où est la foret rouge où")] * 8
    )
    assert "as written" not in examine([("a king", "the king")] * 8)


SEGMENTS = ("the red |0-1| fox |2-2|", "the red fox")
STRIP = "--punctuation strip"


@pytest.mark.parametrize(
    ("pair", "advised", "not_advised"),
    [
        (SEGMENTS, "convert --drop-marks", STRIP),
        (SEGMENTS, "convert --drop-marks", "digits"),
        (("the fox</s>", "the fox"), "convert --drop-marks", f"convert {STRIP}"),
        (("the fo ##x is he ##re", "the fox is here"),
          "convert --unify pieces", f"convert {STRIP}"),
        (("the {fox} sat", "the {ox} sa"), "", STRIP),
        (("it costs $10", "it costs ten dollars"), "", f"convert {STRIP}"),
        (("Hello, world.", "hello world"), f"--case lower {STRIP}", "does not do it"),
        (("THE KING", "the king"), "convert --normaliser none --case lower", "does not do it"),
        (("ES IST", "das war"), "(--case lower does not do it: WER 100.0, then 100.0)", " convert"),
        (("it's so", "its so"), "convert --apostrophe strip", "does not do it"),
    ],
)  # fmt: skip
def test_what_does_nothing_is_not_advised(examine, pair, advised, not_advised):
    out = examine([pair] * 24)
    assert advised in out and not_advised not in out, out


def test_marks_that_make_many_errors_are_an_error(examine):
    assert examine([SEGMENTS] * 8).startswith("error: n.jsonl:1: 16 words of the hypotheses are")


def test_numbers(examine, monkeypatch):
    rows = [("21 people came at 5", "twenty one people came at five"), ("in 1984", "in 1984 so")]
    rows = [(hyp, ref.replace("1984", "nineteen eighty four")) for hyp, ref in rows] * 4
    out = examine(rows)
    assert "(26.9%: digits) that the references in n.jsonl have not: 1 (U+0031), " in out
    assert "lmtools evaluate --normaliser whisper-english (WER 63.6 as written, 12.5 then)" in out
    assert "lmtools convert" not in out
    for name in ("whisper-english", "open-asr"):
        monkeypatch.setitem(NORMALISERS, name, NORMALISERS["none"])
    out = examine(rows)
    assert "--map-words" in out and "--normaliser" not in out


@pytest.mark.parametrize(
    ("hyp", "ref", "cause"),
    [
        (
            "the king",
            "der könig über alle",
            "letters with diacritics) that the hypotheses have not",
        ),
        ("the king", "the король", "Cyrillic letters) that the hypotheses have not"),
        ("漢語 很好", "汉语 很好", "Han letters) that the references in n.jsonl have not: 漢"),
        ("the 王", "the king", "Han letters) that the references in n.jsonl have not: 王 (U+738B)"),
        ("४२ आम", "बयालीस आम", "Devanagari digits) that the references"),
        ("12 7 995", "the old king", "numbers for words ('12', '7', '995'): ids of a table?"),
        ("the old king", "12 7 995", "numbers for words ('12', '7', '995'): ids of a table?"),
    ],
)
def test_characters_of_one_side(examine, hyp, ref, cause):
    assert cause in examine([(hyp, ref)] * 24)


def test_rare_letters_of_large_alphabets_are_no_odd_ones(examine):
    rows = [
        ("今天天气很好我们去学校" + chr(0x4E00 + i), "今天天气很好我们去学校王") for i in range(40)
    ]
    assert "Han letters" not in examine(rows)


def test_text_without_blanks_is_measured_in_characters():
    trial = Trial([("今天天气很好", "今天天气不好")])
    assert trial.metric.title == "CER" and trial.rate() == pytest.approx(100 / 6)
    assert Trial([("a b", "a c")] * 2000).measure(Normaliser()) == (500, 1000)


def test_the_least_combination():
    """Of equal ones the first, which changes least; nothing where nothing helps or all harm."""
    gains = {"a": 5, "b": 5, "c": 4, "d": -3}

    def errors(names):
        names = set(names) - ({"b"} if "a" in names else set())
        return 20 - sum(gains[name] for name in names)

    assert least_combination(errors, "abcd") == ["a", "c"]
    assert least_combination(errors, "bd") == ["b"]
    assert least_combination(errors, "d") == least_combination(errors, "") == []


def test_words_that_a_model_knows_in_another_form(examine, tmp_path):
    """The words of the hypotheses are sought in the model's vocabulary in other forms, too."""
    (tmp_path / "text").write_text("été à la plage\ndéjà vu\n" * 20)
    assert main(split("subword --text text --type word --out sw")) == 0
    out = examine([(DECOMPOSED, DECOMPOSED)] * 8, "--lm", "sw")
    assert "lmtools convert --unify nfc" in out and unifier(["nfc"])(DECOMPOSED) == FORMS[0][1]


def test_a_normaliser_that_makes_letters_words_is_no_remedy_for_digits(examine, monkeypatch):
    monkeypatch.setitem(NORMALISERS, "letters", " ".join)
    out = examine([("2 kings went", "two kings went")] * 8)
    assert "digits" in out and "--normaliser letters" not in out
