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


def test_words_go_by_their_times(tmp_path):
    """Unsorted lines, also of several utterances in turn, are as sorted ones."""
    rows = ["u 1 0.0 0.2 the 0.9", "u 1 9.5 0.2 red NA", "u 1 10.1 0.2 fox 1", "v 1 0.1 0.1 x 0.5"]
    path = tmp_path / "h.ctm"
    path.write_text("\n".join(rows))
    lists = list(ctm.read(path))
    assert [nbest.hyps[0].text for nbest in lists] == ["the red fox", "x"]
    for order in ([2, 0, 1, 3], [1, 3, 2, 0]):
        path.write_text("\n".join(rows[place] for place in order))
        assert list(ctm.read(path)) == lists
    ctm.write(lists, path)
    assert path.read_text().split("\n")[:4] == rows
