import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.formats import systems
from lmtools.types import TOTAL, Hypothesis, NBest

texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff"), max_size=12
).map(lambda text: " ".join(text.split()))
names = st.sampled_from(["a", "b.c", "é", "x-1"])
ids = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=6,
)


def pooled(utt, outputs):
    """The list of one utterance; outputs: text by system."""
    hyps = [
        Hypothesis(text, {f"system:{n}": float(n == name) for n in outputs}, {"system": name})
        for name, text in outputs.items()
    ]
    return NBest(utt, tuple(hyps))


@st.composite
def lists(draw):
    pool = sorted(draw(st.sets(names, min_size=1)))
    utts = draw(st.lists(ids, unique=True, min_size=1, max_size=3))
    return [pooled(utt, {name: draw(texts) for name in pool}) for utt in utts]


@settings(max_examples=40, deadline=None)
@given(lists(), st.sampled_from(["kaldi", "lines"]))
def test_round_trip(tmp_path_factory, nbests, kind):
    path = tmp_path_factory.mktemp("systems") / "d"
    if kind == "lines":
        nbests = [NBest(str(number), nbest.hyps) for number, nbest in enumerate(nbests, 1)]
    systems.write(nbests, path, ids=kind)
    assert list(systems.read(path, ids=kind)) == nbests


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
    out = ",".join(str(tmp_path / name) for name in ("x", "y"))
    systems.write(want, out)
    assert [(tmp_path / name).read_text() for name in ("x", "y")] == [
        "blue finch\n\n",
        "blue finch\nsings\n",
    ]


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


@pytest.mark.parametrize(
    ("files", "ids", "cause"),
    [
        ({"a": "x\ny\n", "b": "x\n"}, "lines", r"b.txt:2: the file ends where .*a.txt goes on"),
        ({"a": "x\n", "b": "x\ny\n"}, "lines", r"a.txt:2: the file ends where .*b.txt goes on"),
        (
            {"a": "u x\n", "b": "u x\nv y\n"},
            "kaldi",
            r"a.txt: no utterance 'v', which other systems have",
        ),
        (
            {"a": "u x\nv y\n", "b": "u x\n"},
            "kaldi",
            r"b.txt: no utterance 'v', which other systems have",
        ),
        ({"a b": "x\n"}, "lines", r"a b.txt: score name 'a b'"),
        ({"a": "x\n"}, "names", "ids=names"),
    ],
)
def test_refuses(tmp_path, files, ids, cause):
    with pytest.raises(UserError, match=cause):
        list(systems.read(laid(tmp_path, **files), ids=ids))


def test_refuses_a_file_twice(tmp_path):
    path = laid(tmp_path, a="x\n")
    with pytest.raises(UserError, match=r"a.txt: two systems are called .*/a'"):
        list(systems.read(f"{path},{path}"))


GOOD = pooled("1", {"a": "x", "b": "y"})


@pytest.mark.parametrize(
    ("nbests", "path", "cause"),
    [
        ([NBest("1", (Hypothesis("x"),))], "d", "lacks hypotheses with the extra `system`"),
        ([NBest("1", ())], "d", "lacks hypotheses"),
        (
            [GOOD, NBest("2", GOOD.hyps[:1])],
            "d",
            "utterance '2': has not one hypothesis of each system",
        ),
        (
            [NBest("zed", GOOD.hyps)],
            "d",
            "utterance 'zed': is not called by its line number, 1; write with ids=kaldi",
        ),
        ([GOOD], "d,e,f", "3 files for 2 systems"),
        (
            [NBest("1", (Hypothesis("x", {"am": -1.0}, {"system": "a"}),))],
            "d",
            "utterance '1': has the scores am",
        ),
        ([NBest("1", (Hypothesis("x", {}, {"system": "../a"}),))], "d", "cannot name a file"),
    ],
)
def test_refuses_to_write(tmp_path, nbests, path, cause):
    with pytest.raises(UserError, match=cause):
        systems.write(nbests, ",".join(str(tmp_path / part) for part in path.split(",")))
    assert not any(tmp_path.iterdir())


def test_a_rescored_total_needs_no_place(tmp_path):
    systems.write(
        [NBest("1", (Hypothesis("x", {"am": -1.0, TOTAL: -2.0}, {"system": "a"}),))], tmp_path / "d"
    )
    assert (tmp_path / "d" / "a.txt").read_text() == "x\n"
