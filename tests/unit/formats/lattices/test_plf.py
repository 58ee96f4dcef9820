import math

import pytest
from lattices import sentences

from lmtools.base.errors import UserError
from lmtools.formats import lattices
from lmtools.types import Arc, Final, Lattice

LINES = """\
((('tal', -0.73, 1),('tardes', -2.55085754, 2),),(('ves', 0, 1),('de', 4.97e-05, 1),),)
((('it\\'s', -inf, 1),('\\\\', 1e-08, 1),('*EPS*', -1, 1),),)
()

((('a', -1, 2, 0.5, 1),),)
"""


def read(tmp_path, text):
    (tmp_path / "x.plf").write_text(text, encoding="utf-8")
    return lattices.read(tmp_path / "x.plf")


def test_columns_are_states(tmp_path):
    first, second, third, fourth, last = read(tmp_path, LINES)
    assert [(a.source, a.target, a.word, a.scores["am"]) for a in first.arcs()] == [
        (0, 1, "tal", -0.73),
        (0, 2, "tardes", -2.55085754),
        (1, 2, "ves", 0),
        (1, 2, "de", 4.97e-05),
    ]
    assert (first.utt, first.states, first.start, first.finals.tolist()) == ("1", 3, 0, [2])
    assert second.words == ("it's", "\\", None) and second.scores["am"][0] == -math.inf
    assert [lattice.states for lattice in (third, fourth)] == [1, 1]
    assert last.arcs()[0].scores == {"am": -1.0, "f1": 2.0, "f2": 0.5}


def test_comes_back_to_the_letter(tmp_path):
    lattices.write(read(tmp_path, LINES), tmp_path / "y.plf", "plf")
    assert (tmp_path / "y.plf").read_text(encoding="utf-8") == LINES


@pytest.mark.parametrize(
    "line", ["( ( ( 'a' , -1 , 1 ) , ) , )", '((("a", -1, 1)))', "((('a',-1,1),),),"]
)
def test_spaces_quotes_and_commas_are_free(tmp_path, line):
    (lattice,) = read(tmp_path, line)
    assert sentences(lattice, {"am": 1.0}) == {("a",): -1.0}


def test_states_are_numbered_anew_where_they_must(tmp_path):
    arcs = [
        Arc(2, 0, "a", {"am": -1.0}),
        Arc(0, 1, "b", {"am": -2.0}),
        Arc(3, 2, "x", {"am": 0.0}),
        Arc(2, 1, "c", {"am": -4.0}),
    ]
    lattice = Lattice.of("u", 5, 2, arcs, [Final(1, {"am": -8.0}), Final(0)])
    lattices.write([lattice], tmp_path / "y.plf", "plf")
    (found,) = lattices.read(tmp_path / "y.plf")
    assert sentences(found, {"am": 1.0}) == {("a", "b"): -11.0, ("c",): -12.0, ("a",): -1.0}
    assert "x" not in found.words


def test_refuses_a_lattice_without_a_path(tmp_path):
    with pytest.raises(UserError, match="no possible path"):
        lattices.write(
            [Lattice.of("u", 2, 1, [Arc(1, 1, "a")][:0], [Final(0)])], tmp_path / "y.plf", "plf"
        )
    assert not (tmp_path / "y.plf").exists()
