import json

import pytest

from lmtools.base.errors import UserError
from lmtools.formats import FORMATS
from lmtools.types import Hypothesis, NBest

WHISPER = FORMATS["whisper"]


def read(tmp_path, *hyps):
    path = tmp_path / "n.json"
    path.write_text(json.dumps([{"utt": "a", "hypotheses": list(hyps)}]))
    assert WHISPER.recognises(path, path.read_text())
    return next(WHISPER.read(path)).hyps


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"sum_logprob": -6}, -6.0),
        ({"sum_logprob": -6, "tokens": 3}, -6.0),
        ({"avg_logprob": -1.5, "tokens": [1, 2, 3]}, -6.0),
        ({"avg_logprob": -1.5, "tokens": []}, -1.5),
        ({"avg_logprob": -1.5}, -1.5),
        ({"score": -1.5, "tokens": 4}, -6.0),
        ({"score": -3, "tokens": 4, "length_penalty": 0.5}, -6.0),
        ({"score": -3, "tokens": [9] * 4, "length_penalty": 0}, -3.0),
        ({"score": -3, "tokens": 4, "length_penalty": -0.5}, -1.5),
        ({"score": -3}, -3.0),
    ],
)
def test_the_division_is_undone(tmp_path, fields, expected):
    (hyp,) = read(tmp_path, {"text": "x", **fields})
    assert hyp.scores == {"am": expected} and hyp.extra.keys() == fields.keys() & {"tokens"}


def test_sums_that_a_search_reports_are_its_token_log_probabilities(tmp_path):
    log_probs = [-0.5, -1.25, -0.125, -2.0]  # the end of the sentence is the last
    total, listed = sum(log_probs), log_probs[:-1]
    ways = [
        {"avg_logprob": total / (len(listed) + 1), "tokens": len(listed)},  # openai-whisper
        # CTranslate2
        {"score": total / len(listed) ** 0.8, "tokens": len(listed), "length_penalty": 0.8},
        # Hugging Face
        {"score": total / len(log_probs) ** 0.8, "tokens": len(log_probs), "length_penalty": 0.8},
    ]
    assert [read(tmp_path, {"text": "x", **way})[0].scores["am"] for way in ways] == [
        pytest.approx(total)
    ] * 3


OUTPUTS = {
    "u1": {"text": " The red  fox.", "segments": [{"id": 0, "avg_logprob": -0.3}]},
    "u2": {"text": "", "segments": [], "language": "en"},
}


def test_what_the_command_line_leaves(tmp_path):
    """openai-whisper's --output_format all; a file alone; WHISPER.cpp's --output-json."""
    for utt, tree in OUTPUTS.items():
        (tmp_path / f"{utt}.json").write_text(json.dumps(tree, indent=1))
        (tmp_path / f"{utt}.txt").write_text(tree["text"])
    extra = {"segments": '[{"id": 0, "avg_logprob": -0.3}]'}
    first = NBest("u1", (Hypothesis("The red fox.", {}, extra),))
    for path, due in ((tmp_path, ["The red fox.", ""]), (tmp_path / "u1.json", ["The red fox."])):
        assert FORMATS.detect(path) == "whisper"
        lists = FORMATS.read(path)
        assert lists[0] == first and [nbest.hyps[0].text for nbest in lists] == due
    parts = [{"offsets": {"from": 0}, "text": " The red"}, {"text": " fox."}]
    other = tmp_path / "u3.json"
    other.write_text(json.dumps({"result": {"language": "en"}, "transcription": parts}))
    assert FORMATS.detect(other) == "whisper"
    assert [(nbest.utt, nbest.hyps[0].text) for nbest in FORMATS.read(other)] == [
        ("u3", "The red fox.")
    ]


SAID = [{"start": 0.0, "end": 1.2, "text": " The red"}, {"start": 1.2, "end": 2.4, "text": "fox. "}]
CHUNKS = [
    {"timestamp": [0.0, 1.2], "text": " The red"},
    {"timestamp": [1.2, None], "text": " fox."},
]
WORDS = [{"word": word, "start": 0.0, "end": 1.0} for word in ("The", "red", "fox")]


@pytest.mark.parametrize(
    "tree",
    [
        {"segments": SAID, "word_segments": [], "language": "en"},  # whisperX
        {"text": "The red fox.", "words": WORDS, "segments": None, "duration": 2.4},  # OpenAI
        {"task": "transcribe", "text": "The red fox.", "words": WORDS},
        {"text": " The red fox.", "chunks": CHUNKS},  # Hugging Face
        {"speakers": [], "chunks": CHUNKS, "text": " The red fox."},
        CHUNKS,
        [{"id": 1, "avg_logprob": -0.3, "words": None, **part} for part in SAID],  # faster-whisper
    ],
)
def test_what_whispers_family_leaves(tmp_path, tree):
    for indent in (None, 2):
        (tmp_path / "u1.json").write_text(json.dumps(tree, indent=indent))
        for path in (tmp_path, tmp_path / "u1.json"):
            assert FORMATS.detect(path) == "whisper"
            lists = FORMATS.read(path)
            assert [(n.utt, [h.text for h in n.hyps]) for n in lists] == [("u1", ["The red fox."])]


def test_silence_and_languages_without_spaces(tmp_path):
    parts = [{"text": "你好"}, {"text": "世界"}]
    trees = {
        "a": {"segments": [], "word_segments": [], "language": "en"},
        "b": [],
        "c": {"segments": parts, "word_segments": [], "language": "zh"},
        "d": {"segments": parts, "word_segments": [], "language": "ko"},
    }
    for utt, tree in trees.items():
        (tmp_path / f"{utt}.json").write_text(json.dumps(tree))
    texts = [nbest.hyps[0].text for nbest in FORMATS.read(tmp_path)]
    assert texts == ["", "", "你好世界", "你好 世界"]


def test_whisper_cpp_cuts_characters_in_two(tmp_path, capsys):
    whole = json.dumps({"transcription": [{"text": " caf|"}, {"text": "|"}]}).encode()
    halves = "é".encode()
    cut = whole.replace(b"|", halves[:1], 1).replace(b"|", halves[1:])
    (tmp_path / "u1.json").write_bytes(cut)
    (tmp_path / "u2.json").write_bytes(whole.replace(b"|", b"\xc3"))
    (tmp_path / "u3.json").write_bytes(whole.replace(b"|", b"s"))
    lists = FORMATS.read(tmp_path)
    assert [nbest.hyps[0].text for nbest in lists] == ["café", "caf\ufffd\ufffd", "cafss"]
    assert json.loads(lists[0].hyps[0].extra["transcription"])[1] == {"text": "\ufffd"}
    assert capsys.readouterr().err == (
        f"{tmp_path}/u1.json: cuts characters in two, and 1 other file of {tmp_path}; halves that"
        " do not meet are read as \ufffd\n"
    )
    FORMATS.write(lists, tmp_path / "n.jsonl", "jsonl")
    assert FORMATS.read(tmp_path / "n.jsonl") == lists


def test_a_byte_that_python_would_not_write_is_refused(tmp_path):
    (tmp_path / "u1.json").write_bytes(b'{"text": "caf\xe9", "segments": []}')
    with pytest.raises(UserError, match=r"u1.json:1: not UTF-8; write it as UTF-8: iconv -f"):
        FORMATS.read(tmp_path)
