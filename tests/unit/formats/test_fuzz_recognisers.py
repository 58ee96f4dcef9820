"""Damaged files of recognisers' formats are refused with one line, or read and then written again; nothing else escapes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.formats import FORMATS, archives, detect

SAMPLES = {
    "hyporadise": '[\n{"id": "a", "input": ["x", "y"], "output": "x", "am_score": [-1, -2.5], "o": [1, {}]},\n{"input": []}\n]',
    "mlm": '{"a": {"hyp_1": {"score": -1, "text": "x"},\n"hyp_2": {"score": -2, "text": "y", "z": []}, "ref": "x"}, "b": {}}',
    "espnet1": '{"utts": {"a": {"output": [{"name": "t[1]", "rec_text": "▁x<eos>", "score": -1, "text": "x"}],\n"input": []}}}',
    "whisper": '[{"utt": "a", "ref": "x", "hypotheses": [{"text": "x", "score": -1, "tokens": [1, 2], "length_penalty": 2}]}]',
    "icefall": "a-0:\tref=['x', \"y\"]\na-0:\thyp=['x']\na-0:\ttimestamp_hyp=[0.1]\nb-0:\thyp=x y\n",
    "ctm": ";; c\na 1 0.0 0.1 x 0.9\na 1 0.1 0.2 y\n;; b is empty\n",
    "kaldi-nbest": "a-1 x y\na-2 \nb-1 z\n",
}
PIECES = ["", "\n", " ", "\t", '"', "[", "]", "{", "}", ",", ":", "-", "'", "|", "1", "1e999", "NaN", "null", "9" * 5000]
PIECES += ["é", "\\ud800", "\u2028", "\ufeff", "\x00", "\x00B", "\x00B\x04", "-9223372036854775809", "a-1", "hyp_1", "hyp=", "<ALT"]
edits = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 6), st.sampled_from(PIECES) | st.text(max_size=2)), max_size=4)


def damaged(data: bytes, changes) -> bytes:
    """`data` with some bytes replaced."""
    for start, length, piece in changes:
        start %= len(data) + 1
        data = data[:start] + piece.encode("utf-8", "replace") + data[start + length :]
    return data


def outcome(function, *args):
    """What the function gives, or the UserError's message."""
    try:
        return list(function(*args))
    except UserError as error:
        assert "\n" not in str(error) and "; " in str(error)
        return error


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_whole(tmp_path, name):
    path = tmp_path / {"kaldi-nbest": "words_text", "ctm": "x.ctm"}.get(name, "f")
    path.write_text(SAMPLES[name])
    assert detect(path) == name
    assert FORMATS[name].read(path) and not isinstance(outcome(FORMATS[name].read, path), UserError)


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(sorted(SAMPLES)), edits)
def test_damaged_files(tmp_path_factory, name, changes):
    folder = tmp_path_factory.mktemp("f")
    path = folder / {"kaldi-nbest": "words_text"}.get(name, "f")
    path.write_bytes(damaged(SAMPLES[name].encode(), changes))
    found = outcome(FORMATS[name].read, path)
    outcome(lambda: [detect(path)])
    if isinstance(found, list):
        FORMATS[name].write(found, folder / path.name)
        assert len(outcome(FORMATS[name].read, path)) == sum(bool(n.hyps) or name not in ("kaldi-nbest",) for n in found)


FILES = {
    "words_text": b"a-1 x\na-2 y\n",
    "words": b"a-1 1 2\na-2 1\n",
    "words.txt": b"x 1\ny 2\n",
    "acwt": b"a-1 \0B\4\0\0\0\1a-2 \0B\x08\0\0\0\0\0\0\0\1",
    "lmwt.nolm": b"a-1 1\na-2 2\n",
    "lmwt.withlm": b"a-1 3\na-2 4\n",
    "ali": b"a-1 \0B\4\1\0\0\0\4\7\0\0\0a-2 \0B\4\0\0\0\0",
}


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(FILES)), edits | st.none(), max_size=3))
def test_damaged_archives(tmp_path_factory, changes):
    folder = tmp_path_factory.mktemp("f")
    for name, data in FILES.items():
        if changes.get(name, []) is not None:
            (folder / name).write_bytes(damaged(data, changes.get(name, [])))
    found = outcome(FORMATS["kaldi-nbest"].read, folder)
    assert changes or [len(nbest.hyps) for nbest in found] == [2]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["tokens", "float", "ints"]), st.binary(max_size=40), st.sampled_from(["f", "f.gz", "f.xz"]))
def test_any_bytes(tmp_path_factory, kind, data, name):
    path = tmp_path_factory.mktemp("f") / name
    path.write_bytes(data)
    outcome(archives.values, path, kind)
