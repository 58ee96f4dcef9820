import gzip
import lzma
from types import SimpleNamespace

import pytest

from lmtools.errors import UserError
from lmtools.formats import FORMATS, form
from lmtools.formats.lattices import LATTICES


def read(path, scale="1", base="e"):
    return [path, scale, base]


def write(items, path, base="e"):
    items.append((path, base))


MODULE = SimpleNamespace(
    recognises=lambda path, first: first.startswith("%"), read=read, write=write, OPTIONS={"scale": "a factor of 100%", "base": "of logs"}
)
TOYS = {"toy": form.of(MODULE, "a toy"), "plain": form.of(SimpleNamespace(**{**vars(MODULE), "OPTIONS": {}}), "none")}


def test_options_reach_those_that_take_them():
    """`write` takes no `scale`, which is no mistake: the same spec serves both sides."""
    both, written = form.named("toy:scale=2,base=10,", TOYS), []
    assert both.read("p") == ["p", "2", "10"]
    both.write(written, "q")
    assert written == [("q", "10")]
    assert form.named("toy:scale=a=b:c", TOYS).read("p") == ["p", "a=b:c", "e"]
    assert form.named("plain", TOYS).read("p") == ["p", "1", "e"] == form.named("plain:", TOYS).read("p")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nix", "nix: no format is called 'nix'; known are toy, plain"),
        ("", ": no format is called ''; known are toy, plain"),
        ("toy:size=1", "toy:size=1: format 'toy' takes no option 'size' of this value; its options are: scale=..., base=..."),
        ("toy:scale", "takes no option 'scale' of this value"),
        ("toy:scale=", "takes no option 'scale' of this value"),
        ("plain:scale=1", "its options are: none"),
    ],
)
def test_specs_that_mean_nothing(spec, message):
    with pytest.raises(UserError) as caught:
        form.named(spec, TOYS)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_help_of_all_formats_survives_argparse():
    """argparse formats help with %."""
    about = form.about(FORMATS | LATTICES | TOYS)
    assert "  toy: a toy\n      :scale=... a factor of 100%\n      :base=... of logs" in about % {}
    assert all(f"\n  {name}: " in f"\n{about}" for name in [*FORMATS, *LATTICES])


def test_detect_asks_each_and_refuses_to_guess(tmp_path):
    twin = TOYS | {"twin": TOYS["toy"]}
    path = tmp_path / "f"
    path.write_text("% it\n")
    assert form.detect(path, {"toy": TOYS["toy"]}) == "toy"
    with pytest.raises(UserError, match="f: could be toy or twin; name its format: toy, twin"):
        form.detect(path, {name: twin[name] for name in ("toy", "twin")}, default="toy")
    path.write_text("other\n")
    assert form.detect(path, TOYS, default="plain") == "plain"
    with pytest.raises(UserError, match="f: could be anything; name its format"):
        form.detect(path, TOYS)
    with pytest.raises(UserError, match="none: cannot read: No such file or directory; check the path"):
        form.detect(tmp_path / "none", TOYS)
    assert form.detect("ark,s,cs:whatever", LATTICES) == "kaldi"  # a table is not opened to look


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("f", b"\xef\xbb\xbf% it\r\nmore"),
        ("f.gz", gzip.compress(b"% it\n", mtime=0)),
        ("f.xz", lzma.compress(b"% it\n")),
        ("f", b"% it"),
    ],
)
def test_first_line(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert form.first_line(tmp_path / name) == "% it"


def test_first_line_of_what_is_no_text(tmp_path):
    (tmp_path / "f").write_bytes(b"%\xff\x00" + bytes(1 << 17))
    assert form.first_line(tmp_path / "f").startswith("%\ufffd\x00") and len(form.first_line(tmp_path / "f")) <= 1 << 16
    (tmp_path / "empty").write_bytes(b"")
    assert form.first_line(tmp_path / "empty") == ""
    for content in (gzip.compress(b"% it", mtime=0)[:-9], b"no gzip"):
        (tmp_path / "f.gz").write_bytes(content)
        with pytest.raises(UserError, match=r"f\.gz:1: damaged archive .*; fetch or write it again"):
            form.first_line(tmp_path / "f.gz")
