import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools import UserError
from lmtools.text import NORMALISERS, Normaliser
from lmtools.text.normaliser import CHOICES, parse_normaliser

EVERY = st.builds(
    Normaliser, **{name: st.sampled_from(allowed) for name, allowed in CHOICES.items()}
)
AWKWARD = st.text(
    st.one_of(st.characters(), st.sampled_from("aA'’´`-.▁ \t\u00a0ßİŉǰΐ́ͅſﬁ½\u1fef\u1ffd\ud800")),
    max_size=30,
)


@pytest.mark.parametrize(
    ("settings_", "text", "expected"),
    [
        ({}, "  a \t b\u00a0c\u3000d ", "a b c d"),
        ({}, "▁a▁b", "a b"),
        ({}, "", ""),
        ({"case": "lower"}, "ÉTÉ Straße", "été straße"),
        ({"case": "upper"}, "it's Straße", "IT'S STRASSE"),
        (
            {"punctuation": "strip"},
            "Well, he said: 'it's well-known' (twice).",
            "Well he said it's well known twice",
        ),
        (
            {"punctuation": "strip"},
            "``said'' rock 'n' roll — the boys' $5 a+b",
            "said rock n roll the boys 5 a b",
        ),
        ({"punctuation": "strip"}, "isn’t ‘so’ he said``no''now", "isn’t so he said no now"),
        ({"punctuation": "strip"}, "... -- '", ""),
        ({"apostrophe": "straight"}, "isn’t isn´t isn`t ‘so’", "isn't isn't isn't 'so'"),
        ({"apostrophe": "straight", "punctuation": "strip"}, "isn’t ‘so’", "isn't so"),
        # NFKC alone makes it a space and an accent
        ({"apostrophe": "straight", "unicode_form": "NFKC"}, "isn´t", "isn't"),
        ({"apostrophe": "strip"}, "isn't isn’t", "isnt isnt"),
        ({"unicode_form": "NFC"}, "e\u0301 ﬁ", "é ﬁ"),
        ({"unicode_form": "NFKC"}, "ﬁ ½ ＡＢ", "fi 1⁄2 AB"),
        ({}, "a\ud800b", "a?b"),
    ],
)
def test_table(settings_, text, expected):
    assert Normaliser(**settings_)(text) == expected


@settings(max_examples=300, deadline=None)
@given(EVERY, AWKWARD)
def test_words_are_those_of_the_normalised_text(normaliser, text):
    assert normaliser.words(text) == normaliser(text).split()


@settings(max_examples=300, deadline=None)
@given(EVERY, AWKWARD)
def test_twice_is_once(normaliser, text):
    once = normaliser(text)
    assert normaliser(once) == once


@settings(max_examples=300, deadline=None)
@given(EVERY, AWKWARD)
def test_output_has_the_form_asked_for(normaliser, text):
    out = normaliser(text)
    assert out == " ".join(out.split())
    assert "▁" not in out
    out.encode()
    if normaliser.unicode_form != "none":
        assert unicodedata.is_normalized(normaliser.unicode_form, out)
    if normaliser.case != "keep":
        assert out == (out.lower() if normaliser.case == "lower" else out.upper())
    if normaliser.apostrophe == "strip":
        assert not set(out) & set("'’‘´`")
    if normaliser.apostrophe == "straight":
        assert not set(out) & set("’‘´`")
    if normaliser.punctuation == "strip":
        for word in out.split():
            assert all(unicodedata.category(c)[0] not in "PS" or c in "'’‘‛´`′＇" for c in word), (
                word
            )
            assert word.strip("'’‘‛ʼ´`′＇") == word


def test_hash_tells_settings_apart():
    assert len({normaliser.hash for normaliser in NORMALISERS.values()}) == len(NORMALISERS)
    assert Normaliser(case="lower").hash == Normaliser("lower").hash != Normaliser("upper").hash


def test_hash_is_frozen():
    """Models on disk are recognised by it: a change here makes every one of them foreign."""
    assert (
        NORMALISERS["librispeech"].hash
        == "e39c9eaae801388ac350bfc59e652cc7ff7e4921b5928650f79f5606a92a7384"
    )


def test_defaults_of_later_settings_are_not_said(tmp_path):
    """What was made before there were such settings stays what it is."""
    NORMALISERS["librispeech"].save(tmp_path)
    said = (tmp_path / "normaliser.yaml").read_text()
    assert said.split() == (
        [
            "case:",
            "lower",
            "punctuation:",
            "strip",
            "apostrophe:",
            "straight",
            "unicode_form:",
            "NFKC",
        ]
    )


@pytest.mark.parametrize(
    ("spec", "text", "expected"),
    [
        ("librispeech", "DİŞ IŞIK", "di̇ş işik"),
        ("librispeech:language=tr", "DİŞ IŞIK, DI\u0307Ş", "diş ışık diş"),
        ("none:language=az,case=upper", "diş ışık", "DİŞ IŞIK"),
        ("librispeech:language=lt", "Ì Í J\u0303 I", "i̇̀ i̇́ j̇̃ i"),
        ("none:case=upper,language=lt", "i̇̀ j̇̃ i", "I\u0300 J\u0303 I"),
        ("cased:language=tr", "IŞIK", "IŞIK"),
        ("none:unicode-form=NFC,case=lower", "E\u0301", "é"),
        ("whisper-english:case=upper", "Mr. Li's twenty-one.", "MISTER LI IS 21"),
    ],
)
def test_specs(tmp_path, spec, text, expected):
    normaliser = parse_normaliser(spec)
    assert normaliser(text) == expected
    assert parse_normaliser(normaliser.spec) == normaliser
    assert normaliser.whisper != "none" or normaliser(expected) == expected
    normaliser.save(tmp_path)
    assert Normaliser.load(tmp_path) == normaliser


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("whispers", r"none is called 'whispers'; known are none, cased, librispeech, whisper-en"),
        ("librispeech:lang=tr", r"no option 'lang'; its options are: case=keep\|lower\|upper; .*"),
        ("librispeech:language", "option language: not NAME=VALUE; its options are"),
        ("librispeech:language=de", "setting 'language' is 'de'; choose one of none, tr, az, lt"),
    ],
)
def test_other_specs_are_refused(spec, message):
    with pytest.raises(UserError, match=message):
        parse_normaliser(spec)
