import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.base.errors import UserError
from lmtools.formats.texts import read_sentences, write_sentences

sentences = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff"), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(st.lists(sentences, max_size=6))
def test_round_trip_up_to_white_space_at_the_ends(tmp_path_factory, wanted):
    path = tmp_path_factory.mktemp("plain") / "text.gz"
    write_sentences(wanted, path)
    assert read_sentences(path) == [sentence.strip() for sentence in wanted]


def test_empty_lines_stay(tmp_path):
    (tmp_path / "text").write_text("one\n\n three \r\n")
    assert read_sentences(tmp_path / "text") == ["one", "", "three"]


@pytest.mark.parametrize("sentence", ["a\nb", "a\rb"])
def test_refuses_line_breaks(tmp_path, sentence):
    with pytest.raises(UserError, match=":2: a line break"):
        write_sentences(["x", sentence], tmp_path / "text")
    assert not list(tmp_path.iterdir())
