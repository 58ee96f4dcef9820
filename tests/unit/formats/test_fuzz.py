"""Whatever bytes a reader gets, it returns or raises UserError with one line; nothing else escapes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.formats import FORMATS, detect, espnet2, jsonl, kaldi_text, plain, scores, trn

READERS = {"jsonl": jsonl.read, "kaldi-text": kaldi_text.read, "plain": plain.read, "trn": trn.read, "scores": scores.read}

JSON = ['{"utt":', '"hyps":', '"text"', '"scores"', '{"am":', "[", "]", "{", "}", ":", ",", '"', "\\ud83d", "1e400", "-1.5", "NaN", "null"]
SPACE = ["\t", "\n", "\r\n", " ", "\u2028", "\u3000", "\ufeff", "\x00"]
REST = ["a#1", "a#2", "#", "(a)", "(", ")", "@", "# lmtools-scores {}\n", "tensor(", "1_0", "١", "utt", ";;"]
pieces = st.sampled_from(JSON + SPACE + REST)
content = st.binary(max_size=60) | st.lists(pieces | st.text(max_size=3), max_size=30).map(
    lambda parts: "".join(parts).encode("utf-8", "replace")
)


def outcome(function, *args):
    """What `function` returned, or the UserError's message."""
    try:
        return function(*args)
    except UserError as error:
        assert "\n" not in str(error) and ": " in str(error)
        return error


@settings(max_examples=150, deadline=None)
@given(content, st.sampled_from(sorted(READERS)), st.sampled_from(["f", "f.gz", "f.xz"]))
def test_readers(tmp_path_factory, data, name, file):
    path = tmp_path_factory.mktemp("fuzz") / file
    path.write_bytes(data)
    outcome(READERS[name], path)
    outcome(detect, path)


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["text", "score"]), content),
    st.sampled_from(["1best_recog", "output.1/2best_recog", "logdir/output.3/1best_recog"]),
)
def test_espnet2(tmp_path_factory, files, place):
    path = tmp_path_factory.mktemp("fuzz")
    for name, data in files.items():
        (path / place).mkdir(parents=True, exist_ok=True)
        (path / place / name).write_bytes(data)
    outcome(espnet2.read, path)


@pytest.mark.parametrize("name", FORMATS)
def test_missing_path_and_directory_are_the_users_mistake(tmp_path, name):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UserError, match=str(path)):
            FORMATS[name].read(path)
