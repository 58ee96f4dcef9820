"""What clouds and sherpa-onnx return."""

import json
import math

import pytest

from lmtools.formats import FORMATS, read
from lmtools.types import Hypothesis, NBest

GOOGLE = {
    "results": [
        {
            "alternatives": [
                {"transcript": "blue finch", "confidence": 0.5},
                {"transcript": " blue fins", "confidence": 0.25},
            ],
            "languageCode": "en-us",
        }
    ]
}
AZURE = {
    "RecognitionStatus": "Success",
    "NBest": [{"Confidence": 0.5, "Lexical": "blue finch", "Display": "Blue finch."}],
}


def aws(*confidences):
    items = [
        {"content": "blue", "confidence": told, "type": "pronunciation"} for told in confidences
    ]
    items.append({"content": ".", "type": "punctuation", "confidence": "0.0"})
    return {"alternatives": [{"transcript": "blue blue", "items": items}]}


def scored(path):
    return [(n.utt, [(h.text, h.scores) for h in n.hyps]) for n in read(path)]


def write(path, *trees):
    path.write_text("".join(json.dumps(tree) + "\n" for tree in trees))
    return path


def test_google(tmp_path):
    path = write(tmp_path / "g.json", {"utt": "a", "ref": "blue finch", **GOOGLE}, {"utt": "b"})
    assert FORMATS.detect(path) == "cloud"
    assert read(path) == [
        NBest(
            "a",
            (
                Hypothesis("blue finch", {"am": math.log(0.5)}, {"confidence": "0.5"}),
                Hypothesis("blue fins", {"am": math.log(0.25)}, {"confidence": "0.25"}),
            ),
            "blue finch",
        ),
        NBest("b", ()),
    ]


@pytest.mark.parametrize("second", [{}, {"confidence": 0}])
def test_a_confidence_of_the_first_alone_is_no_score(tmp_path, second):
    one = {"transcript": "x", "confidence": 0.9}
    tree = {"response": {"results": [{"alternatives": [one, {"transcript": "y", **second}]}]}}
    (tmp_path / "a.json").write_text(json.dumps(tree))
    assert FORMATS.detect(tmp_path) == "cloud"
    assert scored(tmp_path) == [("a", [("x", {}), ("y", {})])]
    assert read(tmp_path)[0].hyps[0].extra == {"confidence": "0.9"}


def test_aws_in_segments(tmp_path):
    tree = {"results": {"transcripts": [], "segments": [aws("0.5", "0.25"), aws("1.0", "0.5")]}}
    (tmp_path / "a.json").write_text(json.dumps(tree))
    assert FORMATS.detect(tmp_path) == "cloud"
    assert scored(tmp_path) == [
        ("a-1", [("blue blue", {"am": math.log(0.5) + math.log(0.25)})]),
        ("a-2", [("blue blue", {"am": math.log(0.5)})]),
    ]
    (tmp_path / "a.json").write_text('{"results": {"transcripts": [{"transcript": "x"}]}}')
    assert scored(tmp_path) == [("a", [("x", {})])]


def test_azure(tmp_path):
    batch = {
        "recognizedPhrases": [{"nBest": [{"confidence": 0.5, "lexical": "x", "display": "X"}]}]
    }
    silence = {"utt": "c", "RecognitionStatus": "NoMatch", "Offset": 0, "Duration": 1}
    path = write(tmp_path / "a.json", {"utt": "a", **AZURE}, {"utt": "b", **batch}, silence)
    assert FORMATS.detect(path) == "cloud"
    score = {"am": math.log(0.5)}
    assert scored(path) == [("a", [("blue finch", score)]), ("b", [("x", score)]), ("c", [])]
    texts = [[hyp.text for hyp in nbest.hyps] for nbest in read(path, "cloud:text=display")]
    assert texts == [["Blue finch."], ["X"], []]


def result(text, *log_probs):
    tree = {"text": text, "tokens": text.split(), "timestamps": []}
    return json.dumps({**tree, "ys_log_probs": log_probs})


def test_sherpa_onnx(tmp_path):
    path = tmp_path / "s.txt"
    path.write_text(
        f"Started!\nd/a1.wav\n{result(' blue finch', -0.5, -0.25)}\n----\nd/a2.wav\n{result('')}\n"
    )
    assert [
        (nbest.utt, hyp.text, hyp.scores)
        for nbest in read(path, "sherpa-onnx")
        for hyp in nbest.hyps
    ] == [("a1", "blue finch", {"am": -0.75}), ("a2", "", {"am": 0})]
    path.write_text(f"a1.wav\n{result('blue')}\na2.wav\n{result('', -0.5)}\n")
    assert scored_as_sherpa(path) == [{}, {}]
    line = write(tmp_path / "s.json", {"utt": "a", "ref": "x", **json.loads(result("x", -1))})
    assert FORMATS.detect(line) == "sherpa-onnx"
    assert read(line)[0].ref == "x" and read(line)[0].hyps[0].scores == {"am": -1.0}


def scored_as_sherpa(path):
    return [nbest.hyps[0].scores for nbest in read(path, "sherpa-onnx")]


DEEPGRAM = {
    "metadata": {"channels": 2},
    "results": {"channels": [GOOGLE["results"][0], GOOGLE["results"][0]], "utterances": []},
}


@pytest.mark.parametrize("indent", [None, 2])
def test_deepgram_has_a_list_a_channel(tmp_path, indent):
    (tmp_path / "call.json").write_text(json.dumps(DEEPGRAM, indent=indent))
    hyps = [("blue finch", {"am": math.log(0.5)}), ("blue fins", {"am": math.log(0.25)})]
    for path in (tmp_path, tmp_path / "call.json"):
        assert FORMATS.detect(path) == "cloud"
        assert scored(path) == [("call-1", hyps), ("call-2", hyps)]


@pytest.mark.parametrize(
    "mark", [{"final": False}, {"is_final": False}, {"isFinal": False}, {"stability": 0.9}]
)
def test_interim_results_are_left_out_and_counted(tmp_path, mark, capsys):
    (final,) = GOOGLE["results"]
    interim = {"alternatives": [{"transcript": "blue"}], **mark}
    done = {"stability": 0.0} if "stability" in mark else dict.fromkeys(mark, True)
    path = write(
        tmp_path / "g.json",
        {"utt": "a", "results": [interim, interim, {**final, **done}]},
        {"utt": "b", "results": [interim]},
    )
    hyps = [("blue finch", {"am": math.log(0.5)}), ("blue fins", {"am": math.log(0.25)})]
    assert scored(path) == [("a", hyps), ("b", [])]
    assert capsys.readouterr().err == f"{path}: 3 interim results left out: they are not final\n"
