"""Glossaries of other programs: read where their meaning is clear, else refused with the line."""

import contextlib
import time

import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.phrases.glossary import PhraseSpec
from lmtools.types import NBest

CSV = 'phrase,weight\nOslo,10\n"York, NY",20\nRio,'
PLAIN = [("Oslo", 1), ("New York", 1), ("Rio", 1), ("Makan", 1)]
AWS = """Phrase\tSoundsLike\tIPA\tDisplayAs
Los-Angeles\t\t\tLos Angeles
F.D.A.\teff-dee-ay\t\tFDA
"""
GOOGLE = '{"speechContexts": [{"phrases": ["Kubernetes"], "boost": 20}, {"phrases": ["York"]}]}'
PHRASE_SET = """{"name": "projects/p", "boost": 5,
"phrases": [{"value": "Kubernetes", "boost": 10}, {"value": "York"}, {"value": "Oslo"}]}"""
SPEECHMATICS = """{"type": "transcription", "transcription_config": {"additional_vocab": [
{"content": "gnocchi", "sounds_like": ["nyohki"]}, "CEO"]}}"""


def load(tmp_path, name, text):
    """The phrases of a file: written, weight, spoken forms."""
    path = tmp_path / name
    path.write_text(text)
    glossary = PhraseSpec(str(path)).load()
    return [(p.written, p.weight, *p.spoken) for p in glossary.common]


@pytest.mark.parametrize(
    ("name", "text", "phrases"),
    [
        ("g.csv", CSV, [("Oslo", 2 / 3), ("York, NY", 4 / 3), ("Rio", 1)]),
        ("g.csv", "Phrase\nOslo\nRio\n", [("Oslo", 1), ("Rio", 1)]),
        ("g", AWS, [("Los Angeles", 1), ("FDA", 1, "F D A", "eff dee ay")]),
        ("g", "Oslo\t10\nRio\t30\nYork\t20\n", [("Oslo", 0.5), ("Rio", 1.5), ("York", 1)]),
        ("g", "Oslo,10\nRio,30\n", [("Oslo", 0.5), ("Rio", 1.5)]),
        ("g", "Oslo:2\nRio\nYork:2\n", [("Oslo", 1), ("Rio", 1), ("York", 1)]),
        ("g", '- Oslo\n* New York\n• "Rio"\n“Makan”,\n', PLAIN),
        ("g", "1. Oslo\n2. Rio\n3. New York\n", [("Oslo", 1), ("Rio", 1), ("New York", 1)]),
        ("g", '["oslo", "new york", "[unk]"]', [("oslo", 1), ("new york", 1)]),
        ("g.json", GOOGLE, [("Kubernetes", 1), ("York", 1)]),
        ("g.json", PHRASE_SET, [("Kubernetes", 2), ("York", 1), ("Oslo", 1)]),
        ("g.json", SPEECHMATICS, [("gnocchi", 1, "nyohki"), ("CEO", 1)]),
        ("g.json", '{"Oslo": 3, "Rio": 1}', [("Oslo", 1.5), ("Rio", 0.5)]),
        ("g.json", "", []),
    ],
)  # fmt: skip
def test_read(tmp_path, name, text, phrases):
    assert load(tmp_path, name, text) == [(p[0], pytest.approx(p[1]), *p[2:]) for p in phrases]


@pytest.mark.parametrize(
    "text",
    [
        *("1. FC Köln\n2. Bundesliga\n", "John 3:16\nLuke 2:1\n"),
        *("Paris, Texas\nOslo\n", "Jean - Paul + Co\n", "C#\n"),
    ],
)
def test_lines_of_ours_stay(tmp_path, text, capsys):
    assert [p[0] for p in load(tmp_path, "g", "# names\n" + text)] == text.splitlines()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g", "Oslo\n<phrase>Rio</phrase>", "g:2: '<phrase>Rio</phrase>' has markup"),
        ("g", "Oslo\n▁RI O :1.5", "g:2: '▁RI O :1.5' has markup, pieces of a subword model"),
        ("g", "Oslo\nRio\tree o", "or a tab with no weight behind it; write a phrase a line"),
        ("g", "Oslo:2\nRio:-4", "g:2: weight '-4' is no number from 0 to 1000"),
        ("g.csv", "id,label\n1,Oslo", "g.csv:1: no column is called phrase"),
        ("g.csv", "phrase,weight\nYork, NY,2", "g.csv:2: 3 columns, the header has 2"),
        ("g.csv", "phrase,weight\nYork,x", "g.csv:2: weight 'x' is no number"),
        ("g.json", '["Oslo",\n "Rio" "York"]', "g.json:2: no JSON"),
        ("g.json", "[" * 100_000, "g.json:1: no JSON"),
        ("g.json", "[" + "1" * 9999 + "]", "g.json:1: no JSON"),
        ("g.json", '{"a": 1, "b": "x"}', "g.json:1: JSON without phrases"),
        ("g.json", '["Oslo",\n "..."]', "g.json: phrase 2: '...' has no words"),
    ],
)  # fmt: skip
def test_refuse(tmp_path, name, text, message):
    with pytest.raises(UserError) as error:
        load(tmp_path, name, text)
    assert message in str(error.value)


@pytest.mark.parametrize("line", ["a{}b", "a,{}b", "a:{}b", "a\t{}b", '"{}', "a #{}b", "1. {}"])
@pytest.mark.parametrize("filler", [" ", "1", ".", "_", "'", ":", ", "])
def test_long_lines(tmp_path, line, filler):
    begun = time.process_time()
    with contextlib.suppress(UserError):
        load(tmp_path, "g", 3 * (line.format(200_000 * filler) + "\n"))
    assert time.process_time() - begun < 20


def test_told(tmp_path, capsys):
    load(tmp_path, "g.json", GOOGLE)
    assert "g.json: 2 phrases, read as JSON, weights divided by their median 20" in (
        capsys.readouterr().err
    )
    load(tmp_path, "g", "Oslo 10\nRio 30\nYork 20\n")
    assert "g:1: 'Oslo 10' and all others end in a number, which is matched as a word" in (
        capsys.readouterr().err
    )


def test_a_glossary_that_matches_nothing_is_told(tmp_path, monkeypatch, capsys):
    """By every verb that has texts; one of other sets, too, is no warning."""
    monkeypatch.chdir(tmp_path)
    jsonl.write([NBest.of("a-1", ["in york", "in oslo"], "in oslo")], "n.jsonl")
    (tmp_path / "g").write_text("Kubernetes\nMakan\n")
    (tmp_path / "own.jsonl").write_text(
        '{"id": "a-1", "phrases": ["Oslo"]}\n{"id": "b-1", "phrases": ["Rio"]}\n'
    )
    rescore = "rescore --nbest n.jsonl --weights default:phrases --out o --phrases"
    for command in (
        "tune --nbest n.jsonl --out w --phrases",
        rescore,
        "evaluate --ref n.jsonl --hyp n.jsonl --words",
    ):
        assert main([*command.split(), "g"]) == 0
        assert "warning: g: none of the 2 phrases (first 'Kubernetes') is in any" in (
            capsys.readouterr().err
        )
        assert main([*command.split(), "own.jsonl"]) == 0
        assert "own.jsonl" not in capsys.readouterr().err
