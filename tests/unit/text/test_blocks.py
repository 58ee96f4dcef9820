"""Blocks of text hold the lines that read_lines gives."""

import bz2
import gzip
import io
import json
import lzma
import sys
from shlex import split

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools import UserError
from lmtools.base.files import read_lines
from lmtools.cli import main
from lmtools.text import blocks
from lmtools.text.blocks import TextBlock, TextPart, cut_texts, read_blocks, read_text

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


ROW = {"utt": "u1", "ref": "a b", "hyps": [{"text": "a b", "scores": {"am": -1.0}}]}
ARPA = "\\data\\\nngram 1=3\n\n\\1-grams:\n-0.3\t<unk>\n-0.3\t<s>\t0\n-0.3\t</s>\n\n\\end\\\n"
LINES = b"the king went\nand the queen came\n" * 40
NO_TEXT = ":1: is no text but"
JSON_ROWS = f"{json.dumps(ROW)}\n".encode() * 3
NAMELESS = "which its name does not say"
FOREIGN = {
    "jsonl": (JSON_ROWS, "JSON, such as N-best lists; take its hypotheses with"),
    "indented json": (json.dumps([ROW], indent=1).encode(), "JSON"),
    "object": (json.dumps({"utts": {"u": 1}}, indent=2).encode(), "JSON"),
    "arpa": (
        ARPA.encode(),
        "an ARPA language model, which goes to --lm; give the text that it is made of",
    ),
    "arpa with a comment": (b"made by hand\n\n" + ARPA.encode(), "an ARPA language model"),
    "kenlm": (
        b"mmap lm http://kheafield.com/code format version 5\n\0\0\x08",
        "KenLM's binary of a language model",
    ),
    "gzip": (
        gzip.compress(LINES),
        f": is compressed with gzip, {NAMELESS}; call it t.gz, or decompress it",
    ),
    "xz": (lzma.compress(LINES), f": is compressed with xz, {NAMELESS}"),
    "bzip2": (bz2.compress(LINES), f": is compressed with bzip2, {NAMELESS}"),
    "corpus": (b'lmtools-corpus-1\n{"dtype": "<u2"}\n\0\0', "a binarised corpus"),
    "scores": (b'# lmtools-scores {"lm": "ngram"}\nu1#1\t-3.5\t4\n', "a file of scores"),
    "kaldi scores": (
        b"u1-1 -3.25\nu1-2 -4.5\nu2-1 1.5e2\nu3-1 -1.25\nu3-2 -7.5\n",
        "a file of scores, a number a line",
    ),
    "kaldi matrix": (b"u1  [\n  0.5 1.25 3\n 4 5 6 ]\n", "a Kaldi archive of vectors"),
    "kaldi binary": (b"u1 \0BFM \4\1\0\0\0", "a Kaldi archive (binary)"),
    "kaldi lattice": (b"u1 \n0 1 12 3.5,4.25,1_2\n1 0.5,0,\n\n", "Kaldi lattices"),
    "plf": (b"((('a',-1.5,1),('b',-2,1),),)\n", "lattices (PLF)"),
    "slf": (b"VERSION=1.0\nUTTERANCE=u1\nN=2 L=1\n", "a lattice (HTK SLF)"),
    "moses": (b"0 ||| a b ||| LM0= -1 ||| -2\n", "Moses's or Marian's N-best lists"),
    "srilm": (b"NBestList2.0\n(-1) a\n", "SRILM's N-best lists"),
    "xml": (b'<?xml version="1.0"?>\n<srcset setid="x">\n', "XML or HTML; take the text out of it"),
    "sgm": (b'<refset setid="newstest" srclang="de">\n<seg id="1">a</seg>\n', "XML or HTML"),
    "html": (b"<!DOCTYPE html>\n<html>\n", "XML or HTML"),
    "wav": (
        b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0",
        "a recording (WAV), which lmtools decode makes lists of; give text, one sentence a line",
    ),
    "flac": (b"fLaC\0\0\0\x22\x10\0", "a recording (FLAC)"),
    "mp3": (b"ID3\4\0\0\0\0\0\0", "a recording (MP3)"),
    "mp3 without tags": (b"\xff\xfb\x90\xc4\0\0", "a recording (MP3)"),
    "m4a": (b"\0\0\0\x20ftypM4A \0", "a recording (MP4 or M4A)"),
    "ogg": (b"OggS\0\2\0\0", "a recording (Ogg)"),
    "safetensors": (b'\x28\0\0\0\0\0\0\0{"a": {"dtype"', "weights of a neural network"),
    "sqlite": (b"SQLite format 3\0\x10\0\1\1", "a database (SQLite)"),
    "npz": (b"PK\3\4" + bytes(26) + b"vectors.npy\x93NUMPY", "NumPy's arrays"),
    "docx": (b"PK\3\4" + bytes(26) + b"[Content_Types].xml", "an office document"),
    "zip": (b"PK\3\4" + bytes(26) + b"text.txt", ": is compressed with zip, which"),
    "pdf": (b"%PDF-1.7\n%\xb5\xb5\n", "a PDF document"),
    "utf-16": (LINES.decode().encode("utf-16"), ":1: in UTF-16; write it as UTF-8: iconv -f"),
    "utf-16 without mark": (LINES.decode().encode("utf-16-le"), ":1: in UTF-16; write it as"),
    "carriage returns": (
        LINES.replace(b"\n", b"\r"),
        ":1: its lines end in CR alone; end them in LF: tr '\\r' '\\n' < ",
    ),
    "nul later": (LINES + b"a\0b\n", ":81: holds a NUL byte"),
}
FOREIGN = {
    name: (content, cause if cause.startswith(":") else f"{NO_TEXT} {cause}")
    for name, (content, cause) in FOREIGN.items()
}
TEXTS = [
    "", "\n\n", "the king\n", "\ufeffthe king\n", "{laughter} yes\n", "[noise] the king [ 1 ]\n",
    '["Come," he said]\n', '{ "a" }\n',
    "<s> the king </s>\n", "<unk> the\n", "call 911\ncall 411\n" * 5,
    "u1 5\nu2 7\nu3 5\nu4 1\nu5 2\nu6 1\n", "\\data\\ is a word\n",
    "a | b\n", "the price rose 3.5 %\n" * 6, "pi 3.14\npi 3.14\n", "BZh is a name\n", "PKI\n",
    "VERSION is a word\n", "# comment\n",
]  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_text_is_named(tmp_path, name):
    content, message = FOREIGN[name]
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(UserError) as caught:
        list(read_text(tmp_path / "t"))
    assert str(caught.value).startswith(f"{tmp_path}/t{message}")


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_read(tmp_path, text):
    (tmp_path / "t").write_text(text, encoding="utf-8")
    lines = text.removeprefix("\ufeff").split("\n")[:-1]
    assert list(read_text(tmp_path / "t")) == list(enumerate(lines, 1))


VERBS = {
    "subword": "subword --text t --type word --out o",
    "bpe": "subword --text t --type bpe --vocab-size 60 --out o",
    "corpus": "corpus --text t --subword SW --out o",
    "ngram": "ngram --text t --order 2 --kenlm none --out o",
    "ppl": "ppl --text t --lm NGRAM --cache none --out o",
    "ppl --kaldi": "ppl --kaldi --text t --lm NGRAM --cache none --out o",
    "ref": "convert n.jsonl o --ref t",
    "ref-lines": "convert n.jsonl o --ref-lines t",
    "evaluate": "evaluate --plain --ref t --hyp t --out o",
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["jsonl", "arpa"])
def test_no_verb_takes_it_for_text(tmp_path, monkeypatch, capsys, verb, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").write_bytes(LINES)
    (tmp_path / "t").write_bytes(FOREIGN[name][0])
    (tmp_path / "n.jsonl").write_text(f"{json.dumps(ROW)}\n")
    assert main(split("ngram --text plain --order 2 --kenlm none --out NGRAM")) == 0
    assert main(split("subword --text plain --type word --out SW")) == 0
    capsys.readouterr()
    assert main(split(VERBS[verb])) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and f"t{FOREIGN[name][1]}" in message
    assert not (tmp_path / "o").exists()
