"""Networks in files, and the times and confidences of words in hypotheses of several formats."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import ctm, kaldi_text, read
from lmtools.formats.marks import WordMark, read_marks
from lmtools.networks import files as networks
from lmtools.networks.files import NETWORKS
from lmtools.types import ConfusionNetwork, Hypothesis, Slot

NETWORK = ConfusionNetwork(
    "a1",
    (
        Slot({"blue": 0.75, "blew": 0.25}, "blue", 0.75, (0.1, 0.42)),
        Slot({"": 0.5, "a": 0.5}, "", 0.5),
        Slot({"fins": 1.0}, "fins", 0.9, (0.5, 0.75)),
    ),
    "blue finch",
)


def test_json_reads_back(tmp_path):
    path = tmp_path / "n.json"
    networks.write([NETWORK, ConfusionNetwork("a2", ())], path)
    assert NETWORKS.detect(path) == "json"
    assert NETWORKS.read(path) == [NETWORK, ConfusionNetwork("a2", ())]


def test_ctm_and_text(tmp_path):
    path = tmp_path / "n.ctm"
    NETWORKS.write([NETWORK, ConfusionNetwork("a2", ())], path, "ctm")
    assert path.read_text().splitlines() == [
        "a1 1 0.10 0.32 blue 0.750000",
        "a1 1 0.50 0.25 fins 0.900000",
        ";; a2 is empty",
    ]
    (nbest, _) = ctm.read(path)
    assert read_marks(nbest.hyps[0])[1] == WordMark(0.5, 0.75, 0.9)
    NETWORKS.write([NETWORK], tmp_path / "text", "text")
    assert kaldi_text.read(tmp_path / "text") == {"a1": "blue fins"}


def test_ctm_makes_up_times(tmp_path):
    slots = tuple(Slot({word: 1.0}, word, 1.0) for word in "ab")
    NETWORKS.write([ConfusionNetwork("u", slots)], tmp_path / "n.ctm", "ctm")
    assert (
        tmp_path / "n.ctm"
    ).read_text() == "u 1 0.00 0.10 a 1.000000\nu 1 0.10 0.10 b 1.000000\n"
    with pytest.raises(UserError, match="holds no network"):
        NETWORKS.read(tmp_path / "n.ctm", "ctm")


def test_unknown_times_between_known_ones():
    times = [None, (0.5, 0.6), None, None, (1.0, 1.2), None]
    spans = [(0.4, 0.5), (0.5, 0.6), (0.6, 0.8), (0.8, 1.0), (1.0, 1.2), (1.2, 1.3)]
    assert np.allclose(networks.fill_times(times), spans)


GOOD = {"chosen": "a", "confidence": 0.5, "words": {"a": 0.5, "": 0.5}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": {"a": 0.4, "": 0.5}}, "slot 1: the posteriors do not sum to 1"),
        (
            {"words": {"a": 1.5, "": -0.5}},
            "is -0.5, expected a finite number; posteriors and confidences are from 0 to 1",
        ),
        ({"words": {"a b": 0.5, "": 0.5}}, "'a b' is no word"),
        ({"words": {"a": "x"}}, "slot 1: 'words.a' is 'x'"),
        ({"words": []}, "'words' is"),
        ({"chosen": "a b"}, "'a b' is no word"),
        ({"chosen": 1}, "'chosen' is 1"),
        ({"confidence": 1.5}, "'confidence' is 1.5"),
        ({"confidence": None}, "'confidence' is null"),
        ({"time": [1]}, r"'time' is \[1\]"),
        ({"time": [1, "2"]}, r"'time\[1\]' is '2'"),
    ],
)
def test_refusals(tmp_path, change, message):
    path = tmp_path / "n.json"
    path.write_text(json.dumps({"utt": "u", "slots": [GOOD | change]}))
    with pytest.raises(UserError, match=message) as error:
        NETWORKS.read(path, "json")
    assert str(error.value).startswith(f"{path}:1")


@pytest.mark.parametrize(
    "extra",
    [
        {"times": "1 0.50 0.25 0.9\n1 0.75 0.25 0.8"},
        {"result": '[{"word": "a", "start": 0.5, "end": 0.75, "conf": 0.9},'
         ' {"word": "b", "start": 0.75, "end": 1.0, "conf": 0.8}]'},
        {"segments": '[{"words": [{"word": " a", "start": 0.5, "end": 0.75, "probability": 0.9}]},'
         ' {"words": [{"word": " b", "start": 0.75, "end": 1.0, "probability": 0.8}]}]'},
    ],
    ids=["ctm", "vosk", "whisper"],
)  # fmt: skip
def test_marks(extra):
    marks = [WordMark(0.5, 0.75, 0.9), WordMark(0.75, 1.0, 0.8)]
    assert read_marks(Hypothesis("a b", {}, extra)) == marks
    assert read_marks(Hypothesis("a b c", {}, extra)) is None  # normalised to other words


def test_marks_without_confidence_and_in_percent():
    """Every spelling of a number is one; what is no probability is refused."""
    hyp = Hypothesis("a b", {}, {"times": "1 -0.5 1. NA\n1 5e-1 .25 1e-1"})
    assert read_marks(hyp) == [WordMark(-0.5, 0.5), WordMark(0.5, 0.75, 0.1)]
    words = '[{"start": 0, "end": 1, "conf": %s}]'
    for extra in ({"times": "1 0 1 95"}, {"result": words % 95}, {"result": words % -1}):
        with pytest.raises(UserError, match="expected a probability from 0 to 1: divide percent"):
            read_marks(Hypothesis("a", {}, extra))


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"times": "x"},
        {"result": "5"},
        {"result": '["a"]'},
        {"result": '[{"start": true, "end": 1}]'},
        {"segments": "{"},
        {"segments": '[{"text": "a"}]'},
        {"other": "1"},
    ],
)
def test_no_marks(extra):
    assert read_marks(Hypothesis("a", {}, extra)) is None


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


# what each program writes of `blue finch`, 0.1-0.4 and 0.5-1.1 s, and the file's name
SEC = {"start": 0.1, "end": 0.4}, {"start": 0.5, "end": 1.1}
BLUE, FINCH = ({"word": word} | at for word, at in zip(("blue", "finch"), SEC, strict=True))
SEGMENT = {"text": " blue finch", "words": [BLUE, FINCH]}
TEXT = {"transcript": "blue finch", "confidence": 0.9}
WRITTEN = {
    "vosk": {"text": "blue finch", "result": [BLUE | {"conf": 1.0}, FINCH | {"conf": 1.0}]},
    "vosk alternatives": {
        "alternatives": [{"text": "blue finch", "confidence": 9.5, "result": [BLUE, FINCH]}]
    },
    "whisper": {"text": " blue finch", "segments": [SEGMENT]},
    "whisperX": {"segments": [SEGMENT], "word_segments": []},
    "faster-whisper": [SEGMENT | {"start": 0.1, "end": 1.1}],
    "openai": {"text": "blue finch", "words": [BLUE, FINCH], "duration": 1.2},
    "hugging face": {
        "text": "blue finch",
        "chunks": [
            {"text": " blue", "timestamp": [0.1, 0.4]}, {"text": " finch", "timestamp": [0.5, 1.1]}
        ],
    },
    "whisper.cpp": {
        "transcription": [
            {
                "offsets": {"from": 0, "to": 1200},
                "text": " blue finch",
                "tokens": [
                    {"text": "[_BEG_]", "offsets": {"from": 0, "to": 0}},
                    {"text": " blue", "offsets": {"from": 100, "to": 400}, "p": 0.9},
                    {"text": " fin", "offsets": {"from": 500, "to": 800}},
                    {"text": "ch", "offsets": {"from": 800, "to": 1100}},
                    {"text": "[_TT_60]", "offsets": {"from": 1200, "to": 1200}},
                ],
            }
        ]
    },
    "google": {
        "results": [
            {"alternatives": [TEXT | {"words": [
                {"word": "blue", "startTime": "0.100s", "endTime": "0.400s"},
                {"word": "finch", "startTime": "0.500s", "endTime": "1.100s"},
            ]}]}
        ]
    },
    "google v2": {
        "results": [
            {"alternatives": [TEXT | {"words": [
                {"word": "blue", "startOffset": {"nanos": 100000000}, "endOffset": "0.4s"},
                {"word": "finch", "start_offset": "0.5s", "end_offset": "1.1s"},
            ]}]}
        ]
    },
    "amazon": {
        "results": {
            "transcripts": [{"transcript": "blue finch."}],
            "items": [
                {"start_time": "0.1", "end_time": "0.4", "type": "pronunciation",
                 "alternatives": [{"content": "blue", "confidence": "0.99"}]},
                {"start_time": "0.5", "end_time": "1.1", "type": "pronunciation",
                 "alternatives": [{"content": "finch", "confidence": "0.99"}]},
                {"type": "punctuation", "alternatives": [{"content": ".", "confidence": "0.0"}]},
            ],
        }
    },
    "amazon alternatives": {
        "results": {"segments": [{"alternatives": [{"transcript": "blue finch.", "items": [
            {"start_time": "0.1", "end_time": "0.4", "content": "blue", "type": "pronunciation"},
            {"start_time": "0.5", "end_time": "1.1", "content": "finch", "type": "pronunciation"},
            {"content": ".", "type": "punctuation"},
        ]}]}]}
    },
    "azure": {
        "RecognitionStatus": "Success",
        "NBest": [{"Confidence": 0.9, "Lexical": "blue finch", "Display": "Blue finch.", "Words": [
            {"Word": "blue", "Offset": 1000000, "Duration": 3000000},
            {"Word": "finch", "Offset": 5000000, "Duration": 6000000},
        ]}],
    },
    "azure batch": {
        "recognizedPhrases": [{"nBest": [{"confidence": 0.9, "lexical": "blue finch", "words": [
            {"word": "blue", "offset": "PT0.1S", "duration": "PT0.3S", "offsetInTicks": 1000000.0,
             "durationInTicks": 3000000.0},
            {"word": "finch", "offset": "PT0.5S", "duration": "PT0.6S"},
        ]}]}]
    },
    "assemblyai": {
        "id": "5f", "audio_url": "https://x/u.wav", "status": "completed", "text": "Blue finch.",
        "words": [{"text": "Blue", "start": 100, "end": 400, "confidence": 0.9, "speaker": "A"},
                  {"text": "finch.", "start": 500, "end": 1100, "confidence": 0.8, "speaker": "A"}],
        "confidence": 0.85,
    },
    "rev": {"monologues": [{"speaker": 0, "elements": [
        {"type": "text", "value": "Blue", "ts": 0.1, "end_ts": 0.4, "confidence": 0.9},
        {"type": "punct", "value": " "},
        {"type": "text", "value": "finch", "ts": 0.5, "end_ts": 1.1, "confidence": 0.8},
        {"type": "punct", "value": "."},
    ]}]},
    "speechmatics": {"format": "2.9", "job": {"id": "x"}, "results": [
        {"type": "word", "start_time": 0.1, "end_time": 0.4,
         "alternatives": [{"content": "Blue", "confidence": 0.9, "language": "en"}]},
        {"type": "word", "start_time": 0.5, "end_time": 1.1,
         "alternatives": [{"content": "finch", "confidence": 0.8, "language": "en"}]},
        {"type": "punctuation", "start_time": 1.1, "end_time": 1.1, "attaches_to": "previous",
         "alternatives": [{"content": ".", "confidence": 1.0, "language": "en"}]},
    ]},
    "deepgram": {"results": {"channels": [{"alternatives": [TEXT | {"words": [BLUE, FINCH]}]}]}},
    "watson": {
        "results": [{"final": True, "alternatives": [
            TEXT | {"timestamps": [["blue", 0.1, 0.4], ["finch", 0.5, 1.1]]}
        ]}]
    },
    "sherpa-onnx": {
        "utt": "u", "text": " blue finch", "tokens": [" blue", "", " fin", "ch"],
        "timestamps": [0.1, 0.4, 0.5, 1.1],
    },
    "nemo": {
        "audio_filepath": "u.wav", "pred_text": "blue finch",
        "timestamps_word": [word | {"start_offset": 3, "end_offset": 9} for word in (BLUE, FINCH)],
    },
    "lhotse": {
        "id": "u", "recording_id": "r", "start": 0.0, "duration": 1.2, "channel": 0,
        "text": "blue finch",
        "alignment": {"word": [["blue", 0.1, 0.3, None], ["finch", 0.5, 0.6, None]]},
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", WRITTEN)
def test_times_are_read_as_each_program_writes_them(tmp_path, capsys, kind):
    path, out = tmp_path / "u.json", str(tmp_path / "o.ctm")
    path.write_text(json.dumps(WRITTEN[kind]) + "\n")
    form = ["--format", "vosk"] if kind == "vosk" else []
    assert main(["convert", str(path), out, "--to", "ctm", *form]) == 0
    assert "made up" not in capsys.readouterr().err
    rows = [line.split()[2:5] for line in Path(out).read_text().splitlines()]
    last = "0.60" if kind != "sherpa-onnx" else rows[1][1]  # which knows no end
    assert [(begin, length) for begin, length, _ in rows] == [("0.10", "0.30"), ("0.50", last)]
    (tmp_path / "n.ctm").unlink(missing_ok=True)
    command = ["network", "build", "--nbest", str(path), "--to", "ctm", "--out", out, *form]
    assert main(command) == 0
    assert [line.split()[2:4] for line in Path(out).read_text().splitlines()] == [
        r[:2] for r in rows
    ]


@pytest.mark.parametrize(
    "tree",
    [
        {"text": "blue finch", "segments": [{"text": " blue finch"}]},
        {
            "results": [
                {"alternatives": [TEXT | {"words": [{"word": "blue", "startTime": "soon"}]}]}
            ]
        },
    ],
)
def test_times_that_are_not_there_are_told(tmp_path, capsys, tree):
    """None, frames, and what is no time."""
    path, out = tmp_path / "u.json", str(tmp_path / "o.ctm")
    path.write_text(json.dumps(tree) + "\n")
    for command in (
        ["convert", str(path), out, "--to", "ctm"],
        ["network", "build", "--nbest", str(path), "--to", "ctm", "--out", out],
    ):
        assert main(command) == 0
        said = capsys.readouterr().err
        assert "no times of words were read of 'u': 0.1 s a word is made up" in said
