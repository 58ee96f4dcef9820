import pytest

from lmtools.base.errors import UserError
from lmtools.nist.glm import GlobalMap
from lmtools.nist.segments import cut_words

STM = """;; comment
r1 A ann 2.0 4.0 <o,f> c d
r1 A ann 0.0 2.0 <o,f> a b
r1 B bob 0.0 9.0 e
R2 1 cat 0.0 1.0 <o,f> ignore_time_segment_in_scoring
R2 1 cat 1.0 2.0 f
"""
CTM = """r1 A 0.1 0.2 a
r1 A 1.8 0.3 b
r1 A 1.9 0.3 c 0.5
r1 A 9.0 0.3 d
r2 1 0.2 0.2 noise
r2 1 1.2 0.2 f
"""


@pytest.fixture
def cut(tmp_path):
    def read(stm=STM, ctm=CTM, glm=None):
        (tmp_path / "r.stm").write_text(stm)
        (tmp_path / "h.ctm").write_text(ctm)
        return cut_words(tmp_path / "r.stm", tmp_path / "h.ctm", glm)

    return read


def test_words_go_by_their_middle_and_the_last_segment_takes_the_rest(cut):
    made = cut()
    assert made.ref.texts == {
        "r1-A-0000": "a b",
        "r1-A-0001": "c d",
        "r1-B-0000": "e",
        "R2-1-0001": "f",
    }
    assert made.hyp.texts == {
        "r1-A-0000": "a b",
        "r1-A-0001": "c d",
        "r1-B-0000": "",
        "R2-1-0001": "f",
    }
    assert made.segments["r1-A-0001"].speaker == "ann"
    assert made.segments["r1-A-0001"].label == "o,f"


def test_alternations_are_one_word_at_their_last_middle(cut):
    rows = ["* * <ALT_BEGIN>", "1.0 0.1 x", "* * <ALT>", "2.0 0.2 y", "2.2 0.2 z", "* * <ALT_END>"]
    made = cut(ctm="\n".join(["r1 A 0.1 0.2 a", *(f"r1 A {row}" for row in rows)]))
    assert made.hyp.texts["r1-A-0000"] == "a"
    assert made.hyp.texts["r1-A-0001"] == "{ x / y z }"


def test_words_that_rules_make_of_one_share_its_time(cut, tmp_path):
    (tmp_path / "a.glm").write_text(";; x\n* case_sensitive = 'F'\nB => B B2 B3 / [ ] __ [ ]\n")
    made = cut(ctm="r1 A 1.7 0.6 b\n", glm=GlobalMap(tmp_path / "a.glm"))
    assert made.hyp.texts["r1-A-0000"] == "B" and made.hyp.texts["r1-A-0001"] == "B2 B3"


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        ({"ctm": "r3 A 0.1 0.2 a\n"}, "h.ctm: recording 'r3', channel 'a' is not in .*r.stm"),
        ({"ctm": "r1 A 0.1 a\n"}, "h.ctm:1: expected"),
        ({"ctm": "r1 A x 0.1 a\n"}, "h.ctm:1: start"),
        ({"ctm": "r1 A * * <ALT>\n"}, "h.ctm:1: <ALT> out of place"),
        ({"ctm": "r1 A * * <ALT_BEGIN>\nr1 A 0 1 a\n"}, "h.ctm:2: <ALT_BEGIN> without"),
        ({"stm": "r1 A ann 0.0\n"}, "r.stm:1: expected"),
        ({"stm": ";; none\n"}, "r.stm: holds no segment"),
    ],
)
def test_what_is_no_stm_or_ctm(cut, files, cause):
    with pytest.raises(UserError, match=cause):
        cut(**files)
