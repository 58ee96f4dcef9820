"""Blocks of text hold the lines that read_lines gives."""

import gzip
import io
import lzma
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.text import blocks
from lmtools.text.blocks import TextBlock, TextPart, cut_texts, read_blocks

PIECES = st.lists(
    st.sampled_from(
        ["a", "bc", "\n", "\r\n", "\r", "é漢", "\ufeff", "\u2028", "\x85", "\x0b", " "]
    ),
    max_size=30,
).filter(lambda pieces: any("\n" in piece for piece in pieces) or pieces.count("\r") < 2)


@settings(max_examples=150, deadline=None)
@given(PIECES, st.integers(1, 12))
def test_the_lines_of_read_lines(tmp_path_factory, pieces, size):
    path = tmp_path_factory.mktemp("text") / "t"
    path.write_bytes("".join(pieces).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "SIZE", size)
        found = list(read_blocks([path, path]))
    lines = [(number, line) for number, line in read_lines(path)]
    assert [line for block in found for line in block.lines()] == [line for _, line in lines] * 2
    numbered = [(block.first + i, line) for block in found for i, line in enumerate(block.lines())]
    assert numbered == lines * 2


@settings(max_examples=150, deadline=None)
@given(PIECES, st.integers(1, 12), st.integers(1, 9))
def test_parts_share_the_lines_out(tmp_path_factory, pieces, size, block):
    """Wherever a part begins and ends, each line is of one part."""
    path = tmp_path_factory.mktemp("text") / "t"
    path.write_bytes("".join(pieces).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "SIZE", block)
        parts = list(cut_texts([path, path], size))
        found = [line for part in parts for some in part.blocks() for line in some.lines()]
    assert found == [line for _, line in read_lines(path)] * 2
    assert len(parts) == 2 * max(1, -(-path.stat().st_size // size))


def test_what_is_wrong_in_a_part_is_named_by_its_line(tmp_path, monkeypatch):
    path = tmp_path / "t"
    for bad, message in ((b"\xff", "not UTF-8"), (b"\0", "NUL byte"), (b"x" * 65, "more than 64")):
        monkeypatch.setenv("LMTOOLS_MAX_LINE", "64")
        path.write_bytes(b"fine line\n" * 70 + bad + b"\n" + b"more\n" * 9)
        for begin in (0, 1, 95, 690, 700):
            with pytest.raises(UserError, match=f"t:71: .*{message}"):
                list(map(TextBlock.text, TextPart(str(path), begin).blocks()))
        assert not list(TextPart(str(path), 701, 702).blocks())


def test_what_is_no_plain_file_is_cut_where_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(b"a\nb\n"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"c\nd\n")))
    assert [part.content for part in cut_texts([path, "-"], 1)] == [b"a\nb\n", b"c\nd\n"]
    assert list(cut_texts([path], 1, whole=True)) == [TextPart(str(path))]
    with pytest.raises(UserError, match="-: no file that can be cut into shards; write it to one"):
        list(cut_texts(["-"], 1, whole=True))


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)]
)
def test_any_compression(tmp_path, monkeypatch, suffix, pack):
    text = b"".join(b"line %d\n" % n for n in range(1000))
    path = tmp_path / f"t{suffix}"
    path.write_bytes(pack(text))
    monkeypatch.setattr(blocks, "SIZE", 100)
    assert b"".join(block.content for block in read_blocks([path])) == text
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert b"".join(block.content for block in read_blocks(["-"])) == text
    if suffix:
        path.write_bytes(pack(text)[:-20])
        with pytest.raises(UserError, match=rf"t{suffix}:\d+: damaged archive from there on"):
            list(read_blocks([path]))


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(UserError, match="nowhere: cannot read: No such file"):
        list(read_blocks([tmp_path / "nowhere"]))
    with pytest.raises(UserError, match="t:8: not UTF-8"):
        TextBlock("t", 7, b"fine\n\xff\n").text()
    with pytest.raises(UserError, match="t:2: not UTF-8"):
        TextBlock("t", 1, b"\xef\xbb\xbffine\n\xff\n").text()


@pytest.mark.parametrize("size", [7, 50, 5000])
@pytest.mark.parametrize("before", [b"", b"a\n", b"a\n" * 40, b"a" * 30 + b"\n"])
def test_a_line_may_have_so_many_bytes(tmp_path, monkeypatch, size, before):
    """Wherever in a block it begins, as in read_lines."""
    monkeypatch.setenv("LMTOOLS_MAX_LINE", "64")
    monkeypatch.setattr(blocks, "SIZE", size)
    path = tmp_path / "t"
    for end in (b"", b"\nb\n"):
        path.write_bytes(before + b"x" * (64 - len(end[:1])) + end)
        assert b"".join(block.content for block in read_blocks([path])) == path.read_bytes()
        path.write_bytes(before + b"x" * (65 - len(end[:1])) + end)
        with pytest.raises(
            UserError, match=rf"t:{before.count(10) + 1}: a line of more than 64 bytes; "
        ):
            list(read_blocks([path]))
