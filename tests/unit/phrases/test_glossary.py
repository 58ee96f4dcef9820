"""Glossaries, hostile ones too."""

import random
import time

import pytest

from lmtools.base.errors import UserError
from lmtools.phrases.glossary import PhraseSpec, make_glossary, read_glossary
from lmtools.phrases.matching import spell, split_text


def glossary(tmp_path, text, name="g.txt", **options):
    path = tmp_path / name
    path.write_text(text)
    return read_glossary(PhraseSpec(str(path), **options))


def value(glossary, text, utt="u1"):
    return glossary.of(utt).value(split_text(text))


def test_lines(tmp_path):
    found = glossary(tmp_path, "\n  \nKubernetes :2.5 | cooper netties|kuber netes\r\nNew  York\n")
    assert [phrase.written for phrase in found.common] == ["Kubernetes", "New York"]
    assert found.common[0].spoken == ("cooper netties", "kuber netes")
    assert value(found, "on KUBERNETES, and in new york.") == 4.5
    assert value(found, "on cooper netties") == 5
    assert value(found, "kubernetes's") == 0
    assert glossary(tmp_path, "").size == 0


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("...", "'...' has no words"),
        ("a | ", "'' has no words"),
        ("| b", "'' has no words"),
        ("a :x", "weight 'x' is no number"),
        ("a :-1", "weight '-1' is no number"),
        ("a :nan", "weight 'nan' is no number"),
        ("a :1e9", "weight '1e9' is no number"),
    ],
)
def test_bad_lines(tmp_path, line, cause):
    with pytest.raises(UserError, match=r"g\.txt:2: ") as error:
        glossary(tmp_path, f"fine\n{line}\n")
    assert cause in str(error.value)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("x", "not JSON"),
        ("[]", r"it is \[\], expected an object"),
        ('{"id": "u"}', "key 'phrases' is missing"),
        ('{"id": 3, "phrases": []}', "'id' is 3, expected a text"),
        ('{"id": "u", "phrases": "a"}', "'phrases' is 'a', expected a list"),
        ('{"id": "u", "phrases": [3]}', r"phrases\[0\]"),
        ('{"id": "u", "phrases": ["a", "?"]}', r"phrases\[1\]: '\?' has no words"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_bad_json(tmp_path, line, cause):
    with pytest.raises(UserError, match=cause) as error:
        glossary(tmp_path, '{"id": "u", "phrases": []}\n' + line, "g.jsonl")
    assert "g.jsonl:2: " in str(error.value)


def test_ids(tmp_path):
    lines = [
        '{"id": "19", "phrases": ["speaker"]}',
        '{"id": "19-198", "phrases": ["session"]}',
        '{"id": "19-198-0001", "phrases": ["utterance"]}',
        '{"id": "19", "phrases": ["more"]}',
        '{"id": "192", "phrases": ["other"]}',
    ]
    found = glossary(tmp_path, "\n".join(lines), "g.jsonl")
    text = "speaker session utterance more other"
    assert value(found, text, "19-198-0001") == 4
    assert value(found, text, "19-198-0002") == 3
    assert value(found, text, "19_5") == 2
    assert value(found, text, "200-1") == 0
    assert found.unused(["19-198-0002"]) == ["19-198-0001", "192"]


def test_speakers(tmp_path):
    path = tmp_path / "g.jsonl"
    path.write_text('{"id": "ann", "phrases": ["york"]}')
    found = read_glossary(PhraseSpec(str(path)), {"u7": "ann"})
    assert value(found, "york", "u7") == 1
    assert value(found, "york", "u8") == 0


def test_symbols():
    found = make_glossary(["C++ | c plus plus", "C#", ".*", "a|b", "R&D", "(x)[y]{z}^$", "100%"])
    assert value(found, "c") == 0
    assert value(found, "C++, and c#!") == 2
    assert value(found, "c plus plus") == 3
    assert value(found, "anything at all") == 0
    assert value(found, "r&d") == 1


@pytest.mark.parametrize(
    ("phrase", "text", "count"),
    [
        ("北京", "我在北京。", 2),
        ("東京タワー", "昨日東京タワーに", 5),
        ("Κνωσός", "στην κνωσός", 1),
        ("Привет мир", "привет мир", 2),
        ("القاهرة", "في القاهرة", 1),
        ("Ｋｕｂｅ", "kube", 1),
        ("café", "cafe\u0301", 1),
        ("🙂", "so 🙂", 1),
        ("Hauptstraße", "der HAUPTSTRASSE", 1),
        ("İstanbul", "yarın istanbul", 1),
        ("İstanbul", "ISTANBUL", 1),
        ("Οδυσσέας", "ο ΟΔΥΣΣΈΑΣ", 1),
    ],
)
def test_scripts(phrase, text, count):
    assert value(make_glossary([phrase]), text) == count


def test_many(tmp_path):
    rng = random.Random(1)
    lines = [f"n{rng.randrange(10**9)} x{i}" for i in range(100_000)] + ["a"] * 1000
    begun = time.process_time()
    found = glossary(tmp_path, "\n".join(lines))
    assert value(found, lines[77]) == 2
    assert time.process_time() - begun < 30
    nested = make_glossary([" ".join(["a"] * n) for n in range(1, 200)])
    assert value(nested, "a " * 1000) == 1000


@pytest.mark.parametrize(
    ("phrase", "text", "count"),
    [
        ("it'", "it is", 0),
        ("it'", "so it’ was", 1),
        ("boys'", "the boys", 0),
        ("york", "in 'york'", 1),
        ("new york", "in 'new york'", 2),
        ("Guns N' Roses", "guns n roses", 3),
        ("guns n roses", "guns n' roses", 3),
    ],
)
def test_apostrophes_at_borders(phrase, text, count):
    assert value(make_glossary([phrase]), text) == count


def test_spelling():
    found = make_glossary(["Kubernetes | cooper netties", "New York", "北京 | bei jing"])
    automaton = found.of("u")
    assert spell("We ran (cooper netties), in  new york!", automaton) == (
        "We ran (Kubernetes), in New York!"
    )
    assert spell("nothing  here", automaton) == "nothing  here"
    assert spell("new-york", automaton) == "New York"
    assert spell("old-new york", automaton) == "old-new york"
    assert spell("in bei jing", automaton) == "in 北京"
    assert spell("so it' in 'new york'", make_glossary(["It'", "New York"]).of("u")) == (
        "so It' in 'New York'"
    )


def test_options(tmp_path):
    path = tmp_path / "g,spelling=false"
    path.write_text("city")
    assert PhraseSpec.parse(str(path)).path == str(path)
    spec = PhraseSpec.parse(f"{path},utt2spk=F,spelling=true")
    assert (spec.path, spec.utt2spk, spec.spelling) == (str(path), "F", True)
    for text in ("g.txt,forms=plural", "g.txt,spelling=3", "g.txt,x"):
        with pytest.raises(UserError):
            PhraseSpec.parse(text)
