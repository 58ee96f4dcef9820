import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.formats import kaldi_text

ids = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=6,
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(ids, texts, max_size=5))
def test_round_trip_keeps_words_and_order(tmp_path_factory, wanted):
    path = tmp_path_factory.mktemp("kaldi") / "text"
    kaldi_text.write(wanted, path)
    found = kaldi_text.read(path)
    assert list(found) == list(wanted)
    assert {utt: text.split() for utt, text in found.items()} == {
        utt: text.split() for utt, text in wanted.items()
    }


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a1 blue finch\nb2\n", {"a1": "blue finch", "b2": ""}),
        ("a1  \nb2\tblue\tfinch  \r\n", {"a1": "", "b2": "blue finch"}),
        ("\ufeffa1 blue\u3000finch", {"a1": "blue finch"}),
        ("", {}),
    ],
)
def test_reads(tmp_path, content, expected):
    path = tmp_path / "text"
    path.write_bytes(content.encode())
    assert kaldi_text.read(path) == expected


@pytest.mark.parametrize(
    ("content", "line", "cause"),
    [
        ("a x\n x y\n", 2, "no utterance id"),
        ("a x\n\nb y\n", 2, "no utterance id"),
        ("a x\nb y\na z\n", 3, "'a' occurs a second time"),
        ("a\u00a0x y\n", 1, "white space"),
    ],
)
def test_refuses(tmp_path, content, line, cause):
    path = tmp_path / "text"
    path.write_bytes(content.encode())
    with pytest.raises(UserError, match=f"^{path}:{line}: .*{cause}"):
        kaldi_text.read(path)


def test_refuses_other_encodings_with_the_line(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"a x\nb caf\xe9\n")
    with pytest.raises(UserError, match=f"^{path}:2: not UTF-8"):
        kaldi_text.read(path)


@pytest.mark.parametrize("utt", ["", "a b", "a\tb", "a\u2028b", "\ufeffa"])
def test_refuses_to_write_what_it_could_not_read(tmp_path, utt):
    with pytest.raises(UserError):
        kaldi_text.write({utt: "x"}, tmp_path / "text")
    assert not list(tmp_path.iterdir())
