"""References and hypotheses whose ids are written in other ways."""

import json
import unicodedata
from pathlib import Path

import pytest

from lmtools.cli import main
from lmtools.formats import jsonl, read
from lmtools.types import NBest

TEXTS = {"u1": "the red fox ran home", "café_2": "a small dog"}
NFD = unicodedata.normalize("NFD", "café_2")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("ref", TEXTS)
    return tmp_path


def write(name: str, texts) -> None:
    Path(name).write_text("".join(f"{utt} {text}\n" for utt, text in texts.items()))


@pytest.mark.parametrize(
    ("ids", "rule"),
    [
        (("u1.wav", "café_2.wav"), "without directory and suffix (u1.wav = u1)"),
        (("/d/u1", "/e/café_2.FLAC"), "without directory and suffix (/d/u1 = u1)"),
        (("U1", "CAFÉ_2"), "in lower case (U1 = u1)"),
        (("u1", NFD), f"in one form of Unicode (NFC) ({NFD} = café_2)"),
        (("SPK-u1", "S-P-café_2"), "without what stands before - or _ (SPK-u1 = u1)"),
        (("spk_u1", "spk_café_2"), "without what stands before - or _ (spk_u1 = u1)"),
    ],
)
def test_ids_that_agree_by_one_rule_are_joined(here, capsys, ids, rule):
    other = dict(zip(ids, TEXTS.values(), strict=True))
    write("other", other)
    jsonl.write([NBest.of(utt, [text], am=[0]) for utt, text in other.items()], "n.jsonl")
    for ref, hyp in (("ref", "other"), ("other", "ref"), ("ref", "n.jsonl")):
        assert (
            main(["evaluate", "--ref", ref, "--hyp", hyp, "--oracle"][: 5 + (hyp[0] == "n")]) == 0
        )
        printed = capsys.readouterr()
        assert printed.out.startswith("WER 0.00%") and "2 utterances" in printed.out
        if ref == "ref":
            assert printed.err == f"{hyp}: ids are joined {rule}\n"
    assert main(["convert", "n.jsonl", "o.jsonl", "--ref", "ref"]) == 0
    assert f"n.jsonl: ids are joined {rule}\n" in capsys.readouterr().err
    assert {nbest.utt: nbest.ref for nbest in read("o.jsonl")} == other


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"u1.wav": "a", "x": "b"}, "2 of 2 hypotheses have no reference in ref (first 'u1.wav',"),
        ({"u1.wav": "a", "u1.flac": "b"}, "first 'u1.wav', there 'u1'); make the ids the same"),
        ({"U1": "a", "/d/café_2": "b"}, "first 'U1', there 'u1'); make"),
    ],
)
def test_ids_that_no_rule_joins_are_shown(here, capsys, texts, said):
    write("other", texts)
    assert main(["evaluate", "--ref", "ref", "--hyp", "other"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("lmtools evaluate: other: ") and said in told and told.count("\n") == 1


ROWS = [
    {"audio_filepath": "/d/u1.wav", "text": TEXTS["u1"], "pred_text": "the read fox ran home"},
    {"audio_filepath": "café_2.wav", "text": TEXTS["café_2"], "pred_text": TEXTS["café_2"]},
]
MANIFESTS = {
    "nemo.json": "\n".join(map(json.dumps, ROWS)),
    "list.json": json.dumps([{"id": utt, "text": text} for utt, text in TEXTS.items()], indent=1),
    "cv.tsv": "id_\tpath\tsentence\nd\tu1.mp3\tthe red fox ran home\nc\tcafé_2.mp3\ta small dog",
    "ds.csv": "wav_filename,transcript\nu1.wav,the red fox ran home\n/d/café_2.wav,a small dog\n",
    "nemo_more.json": "\n".join(json.dumps({**row, "word": [{"start": 0.1}]}) for row in ROWS),
    "excel.csv": "utt;text\nu1;the red fox ran home\ncafé_2;a small dog\n",
    "pipes.csv": "id|text\nu1|the red fox ran home\ncafé_2|a small dog\n",
    "supervisions.jsonl": "\n".join(
        json.dumps({"id": utt, "recording_id": "r", "channel": 0, "text": text})
        for utt, text in TEXTS.items()
    ),
    "cuts.jsonl": "\n".join(
        json.dumps({"id": f"{utt}-7", "supervisions": [{"id": utt, "text": text}]})
        for utt, text in TEXTS.items()
    ),
    "mixed_cuts.json": json.dumps(
        [
            {
                "id": "m",
                "tracks": [
                    {"cut": {"id": "c", "supervisions": [{"id": utt, "text": text}]}}
                    for utt, text in TEXTS.items()
                ],
            }
        ]
    ),
    "test_set": "u1 the red fox ran home\ncafé_2 a small dog\n",
    "x.transcription": "<s> the red fox ran home </s> (u1)\n<s> a small dog </s> (café_2)\n",
    "x.match": "the red fox ran home (u1 -1234)\na small dog (café_2 -7)\n",
    "recogs": "u1:\thyp=[the, red, fox, ran, home]\ncafé_2:\thyp=[a, small, dog]\n",
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_texts_of_data_sets_are_read(here, capsys, name):
    if directory := name == "test_set":
        Path(name).mkdir()
    (Path(name) / "text" if directory else Path(name)).write_text(MANIFESTS[name])
    nemo = name.startswith("nemo")
    hyp = [["u1", "the read fox ran home"], ["café_2", "a small dog"]] if nemo else TEXTS
    assert main(["evaluate", "--ref", "ref", "--hyp", name]) == 0
    assert capsys.readouterr().out.startswith("WER 12.50%" if nemo else "WER 0.00%")
    if directory:
        return
    if name != "recogs":
        assert main(["evaluate", "--ref", name, "--hyp", "ref"]) == 0
        assert capsys.readouterr().out.startswith("WER 0.00%")
    assert dict(hyp) == {nbest.utt: nbest.hyps[0].text for nbest in read(name)}


def test_a_manifest_of_nemo_has_hypotheses_and_references(here, capsys):
    Path("nemo.json").write_text(MANIFESTS["nemo.json"])
    assert main(["evaluate", "--hyp", "nemo.json"]) == 0
    assert capsys.readouterr().out.startswith("WER 12.50%")


@pytest.mark.parametrize(
    "content",
    [
        "utt,text,score\nu1,the red fox,-3.5\nu2,a small dog,-1\nu1,the read fox,-4\n",
        "utt;ref;hyp;score\nu1;a;the red fox;-3,5\nu2;b;a small dog;-1,0\nu1;a;the read fox;-4,0",
        '{"id": "u1", "text": "the red fox", "score": -3.5}\n{"id": "u2", "text": "a small dog",'
        ' "score": -1}\n{"id": "u1", "text": "the read fox", "score": -4}\n',
    ],
)
def test_rows_with_scores_are_lists(here, content):
    Path("rows").write_text(content)
    lists = {n.utt: {h.text: h.scores["am"] for h in n.hyps} for n in read("rows")}
    assert lists == {
        "u1": {"the red fox": -3.5, "the read fox": -4.0}, "u2": {"a small dog": -1.0}
    }  # fmt: skip
    refs = [nbest.ref for nbest in read("rows")]
    assert refs == (["a", "b"] if ";" in content else [None, None])


@pytest.mark.parametrize("ends", [("\n", ",\n"), ("", ", ")])
def test_lists_of_texts_in_json_are_numbered(here, capsys, ends):
    for name, texts in {
        "r": ["the red fox", "a sea", "on"],
        "h": ["the red box", "a", "on"],
    }.items():
        Path(name).write_text(f"[{ends[0]}{ends[1].join(map(json.dumps, texts))}{ends[0]}]")
    assert main(["evaluate", "--ref", "r", "--hyp", "h"]) == 0
    assert "(1 sub, 1 del, 0 ins; 6 words, 3 utterances)" in capsys.readouterr().out
    for words in ("evaluate --plain --ref r --hyp h", "ngram --text r --order 2 --out lm"):
        assert main(words.split()) == 1
        assert "is no text but a JSON list of texts; write one a line" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("u1,the red,-3\nu2,a,-1\n", ":1: no names of columns; let line 1 be utt,text,score"),
        ("u1;the red;-3,5\n", ":1: no names of columns; let line 1 be utt,text,score"),
        ("utt,text,score\nu1,a,x\n", ":2: score is 'x'; expected a finite number"),
        ('{"id": "u1", "text": null}\n', ":1: no text of 'u1'; write it, or drop the line"),
        ('{"audio": "u1.wav", "sentence": null}', ":1: no text of 'u1'; write it, or drop the"),
        ('[["a", "b"], ["c"]]', ': list 1: it is ["a", "b"]; expected an object'),
        ('["a", null]', ": list 2: it is null; expected a text"),
        (
            '{"u1": "a b"}\n',
            ":1: is JSON of no known format; give lines `utt w1 w2 ...`, or objects",
        ),
        ("WEBVTT\n\n00:00.000 --> 00:02.000\na\n", ":1: is subtitles (SubRip, WebVTT)"),
        ("1\n00:00:00,000 --> 00:00:02,000\na\n", ":1: is subtitles (SubRip, WebVTT)"),
        ("SPEAKER u1 1 0.00 2.00 <NA> <NA> spk <NA> <NA>\n", ":1: is RTTM"),
        ("%WER 10.0\nu1, %WER 20.00 [ 1 / 5 ]\n", ":1: is a report of errors"),
        ("the fox (u1)\nthe dog (u2 -12)\n", ":1: is trn, ids in parentheses behind the words"),
        ("u1,the red\nu2,a\n", ": looks like CSV without names of columns; let its first line"),
        ("u1|the red|x\nu2|a|b\n", ": looks like a table with | between its columns; take two"),
    ],
)
def test_the_file_that_is_no_text_is_named(here, capsys, content, said):
    """Whichever option gave it."""
    Path("f").write_text(content)
    for words in (["--ref", "f", "--hyp", "ref"], ["--ref", "ref", "--hyp", "f"]):
        assert main(["evaluate", *words]) == 1
        told = capsys.readouterr().err
        assert told.startswith(f"lmtools evaluate: f{said}") and told.count("\n") == 1
