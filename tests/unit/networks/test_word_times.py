"""Times and confidences of words of Whisper's family, and what is done where a word has none."""

import json
import time

import pytest

from lmtools.formats import read
from lmtools.networks.files import read_marks

SPOKEN = {"word": " is", "start": 1.0, "end": 1.2, "score": 0.9}
LATER = {"word": "dollars", "start": 1.6, "end": 2.0, "score": 0.7}


def marks_of(tmp_path, tree):
    path = tmp_path / "u1.json"
    path.write_text(json.dumps(tree))
    (nbest,) = read(path)
    marks = read_marks(nbest.hyps[0])
    return marks and [(mark.start, mark.end, mark.confidence) for mark in marks]


@pytest.mark.parametrize(
    ("words", "text", "due"),
    [
        ([SPOKEN, {"word": "42"}, LATER], "is 42 dollars", [(1.2, 1.6, 0.8)]),
        (
            [SPOKEN, {"word": "4"}, {"word": "2", "start": None}, LATER],
            "is 4 2 dollars",
            [(1.2, 1.4, pytest.approx(0.9 - 0.2 / 3)), (1.4, 1.6, pytest.approx(0.7 + 0.2 / 3))],
        ),
        ([{"word": "42"}, LATER], "42 dollars", [(0.6, 1.6, 0.7)]),
        ([SPOKEN, {"word": "42"}], "is 42", [(1.2, 2.6, 0.9)]),
        ([{"word": "42"}], "42", [(0.6, 2.6, None)]),
    ],
)
def test_a_word_without_time_has_that_between_its_neighbours(tmp_path, words, text, due):
    segment = {"start": 0.6, "end": 2.6, "text": text, "words": words}
    spoken = [word["word"].strip() for word in words]
    marks = marks_of(tmp_path, {"segments": [segment], "language": "en"})
    assert [mark for mark, word in zip(marks, spoken, strict=True) if word in "42"] == due
    segment["words"] = [*words, "x"]
    assert marks_of(tmp_path, {"segments": [{**segment, "text": text + " x"}]}) is None


def test_words_of_openai_of_deepgram_and_of_parts_that_have_times_alone(tmp_path):
    text = {"text": "blue fins"}
    words = [{"word": "blue", "start": 0, "end": 1}, {"word": "fins", "start": 1, "end": 2.5}]
    due = [(0, 1, None), (1, 2.5, None)]
    assert marks_of(tmp_path, text | {"words": words, "segments": None}) == due
    assert marks_of(tmp_path, text | {"words": words, "segments": [{"start": 0, "end": 9}]}) == due
    half = [(0.0, 1.0, None), (1.0, 2.0, None)]
    assert marks_of(tmp_path, {"chunks": [{"timestamp": [0, 2], **text}]}) == half
    assert marks_of(tmp_path, [{"timestamp": [0, 2], **text}]) == half
    offsets = {"offsets": {"from": 0, "to": 2000}}
    assert marks_of(tmp_path, {"transcription": [offsets | text]}) == half
    assert marks_of(tmp_path, {"chunks": [{"timestamp": [0, None], **text}]}) is None
    told = [word | {"confidence": 0.5} for word in words]
    channel = {"alternatives": [{"transcript": "blue fins", "confidence": 0.9, "words": told}]}
    deepgram = {"metadata": {"channels": 1}, "results": {"channels": [channel]}}
    assert marks_of(tmp_path, deepgram) == [(0, 1, 0.5), (1, 2.5, 0.5)]


def test_many_words_without_times_are_no_work(tmp_path):
    segments = [{"start": 0, "end": 1, "text": "a " * 50_000, "words": [{"word": "a"}] * 50_000}]
    begin = time.monotonic()
    assert len(marks_of(tmp_path, {"segments": segments})) == 50_000
    assert time.monotonic() - begin < 20
