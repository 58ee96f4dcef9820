import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.errors import UserError
from lmtools.formats import ctm
from lmtools.types import Hypothesis, NBest

plain = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=6,
)
ids = plain.filter(lambda utt: not utt.startswith(";;"))
words = st.lists(plain.filter(lambda word: not word.startswith("<ALT")), max_size=4)
numbers = st.floats(0, 1e300).map(repr)


@st.composite
def nbest_lists(draw):
    lists = []
    for utt in draw(st.lists(ids, unique=True, max_size=3)):
        row, channel = draw(words), draw(plain)
        times = [
            " ".join(
                (channel, draw(numbers), draw(numbers), *draw(st.sampled_from([(), ("0.9",)])))
            )
            for _ in row
        ]
        extra = {"times": "\n".join(times)} if row and draw(st.booleans()) else {}
        lists.append(NBest(utt, (Hypothesis(" ".join(row), {}, extra),)))
    return lists


@settings(max_examples=35, deadline=None)
@given(nbest_lists())
def test_round_trip(tmp_path_factory, nbests):
    path = tmp_path_factory.mktemp("c") / "h.ctm"
    ctm.write(nbests, path)
    assert list(ctm.read(path)) == nbests


def test_a_file(tmp_path):
    path = tmp_path / "h.ctm"
    rows = [";; by hand", "zed1 A 0.34 0.15 blue 0.98", "zed1 A 0.5 0.2  finch",
            ";; zed2 is empty", "", "zed3 1 0.00 0.10 x", "zed3 1 0.10 0.10 y"]  # fmt: skip
    path.write_text("\n".join(rows))
    lists = list(ctm.read(path))
    assert lists == [
        NBest("zed1", (Hypothesis("blue finch", {}, {"times": "A 0.34 0.15 0.98\nA 0.5 0.2"}),)),
        NBest("zed2", (Hypothesis(""),)),
        NBest("zed3", (Hypothesis("x y"),)),
    ]
    assert ctm.recognises(path, "") and not ctm.recognises(
        tmp_path / "text", "zed1 A 0.34 0.15 blue"
    )
    ctm.write([NBest("zed1", (Hypothesis("blue", {"am": 1.0}, lists[0].hyps[0].extra),))], path)
    assert path.read_text() == "zed1 1 0.00 0.10 blue\n"  # times of other words are none


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("b 1 0.1 0.2", "expected `utt channel start"),
        ("b 1 0.1 0.2 x 0.9 y", "expected `utt channel start"),
        ("b 1 * * <ALT_BEGIN>", "no alternations"),
        ("b 1 x 0.2 x", "start is 'x'"),
        ("b 1 0.1 inf x", "duration is 'inf'"),
        ("a 2 0.1 0.2 x", "'a' has two channels"),
        ("b 1 0.1 0.2 x\na 1 0.1 0.2 x", "'a' occurs a second time"),
    ],
)
def test_refuses(tmp_path, line, cause):
    path = tmp_path / "h.ctm"
    path.write_text("a 1 0.0 0.1 x\n" + line + "\n")
    with pytest.raises(UserError) as caught:
        list(ctm.read(path))
    message = str(caught.value)
    assert (
        message.startswith(f"{path}:{2 + line.count(chr(10))}: ")
        and cause in message
        and "; " in message
        and "\n" not in message
    )


@pytest.mark.parametrize(
    ("nbest", "cause"),
    [
        (NBest("a", (Hypothesis("x"), Hypothesis("y"))), "--depth 1"),
        (NBest(";;a", (Hypothesis("x"),)), "starts a comment"),
        (NBest("a", (Hypothesis("<ALT_END>"),)), "is markup"),
    ],
)
def test_refuses_to_write(tmp_path, nbest, cause):
    with pytest.raises(UserError, match=cause):
        ctm.write([nbest], tmp_path / "h.ctm")
    assert not list(tmp_path.iterdir())
