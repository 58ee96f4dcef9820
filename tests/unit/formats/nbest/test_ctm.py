from lmtools.formats.nbest import ctm
from lmtools.types import Hypothesis, NBest


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
    assert ctm.recognises(path, "")
    ctm.write([NBest("zed1", (Hypothesis("blue", {"am": 1.0}, lists[0].hyps[0].extra),))], path)
    assert path.read_text() == "zed1 1 0.00 0.10 blue\n"  # times of other words are none
