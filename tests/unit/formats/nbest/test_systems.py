import pytest

from lmtools.base.errors import UserError
from lmtools.formats.nbest import systems
from lmtools.types import Hypothesis, NBest


def pooled(utt, outputs):
    """The list of one utterance; outputs: text by system."""
    hyps = [
        Hypothesis(text, {f"system:{n}": float(n == name) for n in outputs}, {"system": name})
        for name, text in outputs.items()
    ]
    return NBest(utt, tuple(hyps))


def laid(tmp_path, **files):
    """Files with these contents, commas between their paths."""
    for name, content in files.items():
        (tmp_path / f"{name}.txt").write_text(content)
    return ",".join(str(tmp_path / f"{name}.txt") for name in files)


def test_pools_files_by_line(tmp_path):
    path = laid(tmp_path, b="blue finch\n\n", a="blue finch\nsings\n")
    want = [
        pooled("1", {"b": "blue finch", "a": "blue finch"}),
        pooled("2", {"b": "", "a": "sings"}),
    ]
    assert list(systems.read(path)) == want
    assert not systems.recognises(tmp_path, "")


def test_pools_files_by_id(tmp_path):
    path = laid(tmp_path, a="zed1 blue\nzed2\n", b="zed2 y\nzed1 x\n")
    assert list(systems.read(path, ids="kaldi")) == [
        pooled("zed1", {"a": "blue", "b": "x"}),
        pooled("zed2", {"a": "", "b": "y"}),
    ]


def test_equal_file_names_are_told_apart_by_their_directories(tmp_path):
    for name in ("p", "q"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hyp.txt").write_text(f"{name}\n")
    (nbest,) = systems.read(f"{tmp_path}/p/hyp.txt,{tmp_path}/q/hyp.txt")
    assert [hyp.extra["system"] for hyp in nbest.hyps] == [f"{tmp_path}/p/hyp", f"{tmp_path}/q/hyp"]


def test_refuses_a_file_twice(tmp_path):
    path = laid(tmp_path, a="x\n")
    with pytest.raises(UserError, match=r"a.txt: two systems are called .*/a'"):
        list(systems.read(f"{path},{path}"))
