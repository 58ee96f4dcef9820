import bz2
import gzip
import lzma
import os
from types import SimpleNamespace

import pytest
from fuzz import PAIRS

from lmtools.base.errors import UserError
from lmtools.formats import FORMATS, registry
from lmtools.formats import read as read_lists
from lmtools.formats import write as write_lists
from lmtools.formats.lattices import LATTICES


def read(path, scale="1", base="e"):
    return [path, scale, base]


def write(items, path, base="e"):
    items.append((path, base))


MODULE = SimpleNamespace(
    SUMMARY="a toy",
    recognises=lambda path, first: first.startswith("%"),
    read=read,
    write=write,
    OPTIONS={"scale": "a factor of 100%", "base": "of logs"},
)
TOYS = {
    "toy": registry.format_of(MODULE),
    "plain": registry.format_of(
        SimpleNamespace(**vars(MODULE) | {"OPTIONS": {}, "SUMMARY": "none"})
    ),
}


def test_options_reach_those_that_take_them():
    """`write` takes no `scale`, which is no mistake: the same spec serves both sides."""
    both, written = registry.find_format("toy:scale=2,base=10,", TOYS), []
    assert both.read("p") == ["p", "2", "10"]
    both.write(written, "q")
    assert written == [("q", "10")]
    assert registry.find_format("toy:scale=a=b:c", TOYS).read("p") == ["p", "a=b:c", "e"]
    for spec in ("plain", "plain:"):
        assert registry.find_format(spec, TOYS).read("p") == ["p", "1", "e"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nix", "nix: no format is called 'nix'; known are toy, plain"),
        ("", ": no format is called ''; known are toy, plain"),
        (
            "toy:size=1",
            "toy:size=1: format 'toy' takes no option 'size'; its options are: scale=..., base=...",
        ),
        ("toy:scale", "toy:scale: option scale: not NAME=VALUE; its options are: scale="),
        ("toy:scale=", "toy:scale=: option scale=: not NAME=VALUE"),
        ("plain:scale=1", "its options are: none"),
    ],
)
def test_specs_that_mean_nothing(spec, message):
    with pytest.raises(UserError) as caught:
        registry.find_format(spec, TOYS)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_help_of_all_formats_survives_argparse():
    """argparse formats help with %."""
    text = registry.describe_formats(FORMATS | LATTICES | TOYS)
    assert "  toy: a toy\n      :scale=... a factor of 100%\n      :base=... of logs" in text % {}
    assert all(f"\n  {name}: " in f"\n{text}" for name in [*FORMATS, *LATTICES])


def test_detect_asks_each_and_refuses_to_guess(tmp_path):
    twin = TOYS | {"twin": TOYS["toy"]}
    path = tmp_path / "f"
    path.write_text("% it\n")
    assert registry.detect(path, {"toy": TOYS["toy"]}) == "toy"
    with pytest.raises(UserError, match="f: could be toy or twin; name its format: toy, twin"):
        registry.detect(path, {name: twin[name] for name in ("toy", "twin")}, default="toy")
    path.write_text("other\n")
    assert registry.detect(path, TOYS, default="plain") == "plain"
    with pytest.raises(UserError, match="f: could be anything; name its format"):
        registry.detect(path, TOYS)
    cause = "none: cannot read: No such file or directory; check the path"
    with pytest.raises(UserError, match=cause):
        registry.detect(tmp_path / "none", TOYS)
    # a table is not opened to look
    assert registry.detect("ark,s,cs:whatever", LATTICES) == "kaldi"


def test_first_line_of_what_is_no_text(tmp_path):
    (tmp_path / "f").write_bytes(b"%\xff\x00" + bytes(1 << 17))
    first = registry.read_first_line(tmp_path / "f")
    assert first.startswith("%\ufffd\x00") and len(first) <= 1 << 16
    (tmp_path / "empty").write_bytes(b"")
    assert registry.read_first_line(tmp_path / "empty") == ""
    for content in (gzip.compress(b"% it", mtime=0)[:-9], b"no gzip"):
        (tmp_path / "f.gz").write_bytes(content)
        cause = r"f\.gz:1: damaged archive .*; fetch or write it again"
        with pytest.raises(UserError, match=cause):
            registry.read_first_line(tmp_path / "f.gz")


COMPRESSORS = {
    "gzip": (gzip.compress, ".gz"),
    "xz": (lzma.compress, ".xz"),
    "bzip2": (bz2.compress, ".bz2"),
}
LISTS = b'{"utt": "a", "hyps": [{"text": "blue"}]}\n'


@pytest.mark.parametrize("name", COMPRESSORS)
def test_compression_is_named_where_the_name_does_not_say_it(tmp_path, name):
    compress, suffix = COMPRESSORS[name]
    wrong = ".gz" if suffix != ".gz" else ".xz"
    for file, remedy in (
        ("f", f"call it f{suffix}"),
        ("f.jsonl", f"call it f.jsonl{suffix}"),
        (f"f{wrong}", f"call it f{wrong}{suffix}"),
    ):
        (tmp_path / file).write_bytes(compress(LISTS))
        for spec in (
            (None, "jsonl", "hyporadise", "srilm", "kaldi-nbest") if file == "f" else (None,)
        ):
            path = f"ark:{tmp_path}/{file}" if spec == "kaldi-nbest" else tmp_path / file
            with pytest.raises(UserError) as caught:
                read_lists(path, spec)
            cause = f"{file}: is compressed with {name}, which its name does not say"
            assert f"{cause}; {remedy}, or decompress it" in str(caught.value)


@pytest.mark.parametrize(
    ("magic", "name"),
    [(b"(\xb5/\xfd\x04", "Zstandard"), (b"PK\3\4\x14", "zip"), (b"\x04\x22\x4d\x18", "LZ4")],
)
def test_compression_that_cannot_be_read_is_named(tmp_path, magic, name):
    for file in ("f", "f.jsonl", "f.jsonl.zst"):
        (tmp_path / file).write_bytes(magic + bytes(range(256)))
        cause = f"{file}: is compressed with {name}, .*; decompress it"
        with pytest.raises(UserError, match=cause):
            read_lists(tmp_path / file)


def test_bzip2_is_read_and_written(tmp_path):
    (tmp_path / "a.jsonl.bz2").write_bytes(bz2.compress(LISTS))
    lists = read_lists(tmp_path / "a.jsonl.bz2")
    write_lists(lists, tmp_path / "b.jsonl.bz2", "jsonl")
    assert (tmp_path / "b.jsonl.bz2").read_bytes()[:3] == b"BZh"
    assert read_lists(tmp_path / "b.jsonl.bz2") == lists
    (tmp_path / "c.jsonl.bz2").write_bytes(bz2.compress(LISTS * 999)[:-30])
    (tmp_path / "d.jsonl.bz2").write_bytes(LISTS)
    for file in ("c", "d"):
        cause = rf"{file}\.jsonl\.bz2:?.*: damaged archive .*; fetch or write it again"
        with pytest.raises(UserError, match=cause):
            read_lists(tmp_path / f"{file}.jsonl.bz2")


LM = "which goes to --lm"
ARPA = "\\data\\\nngram 1=2\n"
NO_LISTS = [
    ("", "is empty"),
    ("\n\n", "is empty"),
    (ARPA, f"is an ARPA language model, {LM}"),
    (f"\nmade by x\n{ARPA}", f"is an ARPA language model, {LM}"),
    (
        b"mmap lm http://kheafield.com/code format version 5\n\0",
        f"is KenLM's binary of a language model, {LM}",
    ),
    (b"lmtools-corpus-1\n{}\n", "is a binarised corpus, which goes to lmtools train"),
    (b"\x20\1\0\0\0\0\0\0" + b'{"a":{"dtype":"F32"', "is weights of a neural network"),
    ('# lmtools-scores {"x": "x"}\na#1\t-1\t2\n', "is a file of scores, which goes to --scores"),
    ({}, "is an empty directory"),
    ({"config.yaml": "", "model.safetensors": ""}, f"is a model directory, {LM}"),
    ({"config.yaml": "", "lm.arpa": ""}, f"is a model directory, {LM}"),
    (
        {"nbest.jsonl": "", "text": ""},
        "is a directory with the lists nbest.jsonl in it, which have to be named",
    ),
]


@pytest.mark.parametrize(("content", "cause"), NO_LISTS)
def test_what_is_no_list_is_called_what_it_is(tmp_path, content, cause):
    path = tmp_path / "f"
    if isinstance(content, dict):
        path.mkdir()
        for name, text in content.items():
            (path / name).write_text(text)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for formats in filter(None, (FORMATS, LATTICES, FORMATS | LATTICES, PAIRS)):
        with pytest.raises(UserError) as caught:
            registry.detect(path, formats)
        message = str(caught.value)
        assert f"f: {cause}" in message
        assert f"; give a file or directory in one of the formats {next(iter(formats))}" in message
    if "empty" in cause:  # as a text it may be
        assert registry.detect(path, FORMATS, "kaldi-text") == "kaldi-text"
    else:
        with pytest.raises(UserError):
            registry.detect(path, FORMATS, "kaldi-text")


def test_a_pipe_is_not_looked_into(tmp_path):
    """What is read to recognise it would be missing afterwards."""
    os.mkfifo(tmp_path / "p")
    with pytest.raises(UserError, match="p: a pipe is not looked into; name its format: jsonl"):
        registry.detect(tmp_path / "p", FORMATS)
    assert registry.detect(tmp_path / "p", FORMATS, "kaldi-text") == "kaldi-text"
