import math

import pytest
from lattices import sentences

from lmtools.formats import lattices

TEXT = """\
# getcwd: /somewhere
# -logbase 1.000300e+00
#
Frames 90
#
Nodes 4 (NODEID WORD STARTFRAME FIRST-ENDFRAME LAST-ENDFRAME)
0 </s> 80 89 89 ; 0
1 blue(2) 40 60 79 ; 0
2 ++NOISE++ 40 60 79 ; 0
3 <s> 0 20 39 ; 0
#
Initial 3
Final 0
#
BestSegAscr 0 (NODEID ENDFRAME ASCORE)
#
Edges (FROM-NODEID TO-NODEID ASCORE)
1 0 -2000
2 0 -4000
2 1 -3000
3 1 -100
3 2 -50
End
"""
UNIT = math.log(1.0003)


def read(tmp_path, text):
    (tmp_path / "x.lat").write_text(text)
    return lattices.read(tmp_path / "x.lat", "pocketsphinx")


def test_scores_belong_to_the_node_that_an_edge_leaves(tmp_path):
    (lattice,) = read(tmp_path, TEXT)
    assert [(a.source, a.target, a.word, round(a.scores["am"] / UNIT)) for a in lattice.arcs()] == [
        (1, 0, "blue", -2000),
        (2, 0, None, -4000),
        (2, 1, None, -3000),
        (3, 1, None, -100),
        (3, 2, None, -50),
    ]
    assert lattice.extra["variant"][0] == "2"
    assert lattice.extra["symbol"] == ("", "++NOISE++", "++NOISE++", "<s>", "<s>")
    assert lattice.times.tolist() == [0.8, 0.4, 0.4, 0.0]
    assert sentences(lattice, {"am": 1.0}) == pytest.approx(
        {("blue",): -2100 * UNIT, (): -4050 * UNIT}
    )


def test_a_last_word_is_not_lost(tmp_path):
    (lattice,) = read(tmp_path, TEXT.replace("</s>", "finch"))
    assert sentences(lattice, {"am": 1.0}).keys() == {("blue", "finch"), ("finch",)}
