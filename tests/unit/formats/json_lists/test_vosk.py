import json

import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import FORMATS, jsonl
from lmtools.types import Hypothesis, NBest

VOSK = FORMATS["vosk"]
# as KaldiRecognizer.FinalResult() writes it
RESULT = """{
  "alternatives" : [{
      "confidence" : 214.593,
      "result" : [{
          "end" : 0.45, "start" : 0.12, "word" : "blue"
        }],
      "text" : " blue"
    }, {
      "confidence" : 213.5,
      "text" : " blew"
    }]
}"""
WORDS = '[{"end": 0.45, "start": 0.12, "word": "blue"}]'
HYPS = (Hypothesis(" blue", {"am": 214.593}, {"result": WORDS}), Hypothesis(" blew", {"am": 213.5}))


@pytest.fixture
def results(tmp_path):
    home = tmp_path / "results"
    home.mkdir()
    (home / "b.1.json").write_text(RESULT)
    (home / "a.json").write_text('{"alternatives": [{"confidence": 3, "text": ""}]}')
    (home / "notes.txt").write_text("none of Vosk's")
    return home


def test_a_directory_of_results(results):
    assert FORMATS.detect(results) == "vosk"
    assert list(VOSK.read(results)) == [
        NBest("a", (Hypothesis("", {"am": 3.0}),)),
        NBest("b.1", HYPS),
    ]


def test_lines_with_ids(tmp_path):
    path = tmp_path / "vosk.json"
    path.write_text(json.dumps({"utt": "a", "ref": "blue", **json.loads(RESULT)}) + "\n")
    assert FORMATS.detect(path) == "vosk"
    assert list(VOSK.read(path)) == [NBest("a", HYPS, "blue")]


def test_a_result_without_alternatives_is_one_hypothesis(tmp_path):
    path = tmp_path / "vosk.json"
    path.write_text(f'{{"utt": "a", "text": "blue", "result": {WORDS}}}\n')
    assert list(VOSK.read(path)) == [NBest("a", (Hypothesis("blue", {}, {"result": WORDS}),))]


def test_converted_with_references(results, tmp_path, capsys):
    (tmp_path / "text").write_text("a \nb.1 blue\n")
    out = tmp_path / "n.jsonl"
    options = ["--ref", f"{tmp_path}/text", "--normaliser", "librispeech"]
    assert main(["convert", str(results), str(out), *options]) == 0
    one, two = jsonl.read(out)
    assert [hyp.text for hyp in two.hyps] == ["blue", "blew"] and two.ref == "blue"
    # times of words go where a text changes
    assert not two.hyps[0].extra and one.hyps[0].text == ""


def test_several_results_in_a_file_are_refused(results):
    """What a recogniser returns at each pause: no list of the whole utterance."""
    (results / "a.json").write_text(RESULT + "\n" + RESULT)
    with pytest.raises(UserError, match=r"a.json:13: not JSON \(Extra data"):
        list(VOSK.read(results))


def test_a_directory_without_results(tmp_path):
    with pytest.raises(UserError, match=r"no file UTT\.json"):
        list(VOSK.read(tmp_path))
