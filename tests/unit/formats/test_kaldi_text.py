import pytest

from lmtools.formats import kaldi_text


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
