import math

import pytest

from lmtools.base.errors import UserError
from lmtools.formats import lattices
from lmtools.types import Arc, Final, Lattice

TABLE = "<eps> 0\nblue 7\nfinch 8\n"
CASES = {
    "transducer": (
        "2\t0\tx\tblue\t0.5\n2\t0\t<eps>\t<eps>\n0\t1\tfinch\tfinch\tInfinity\n1\t0.25\n0\n",
        "",
    ),
    "ids": ("2 0 7 7 0.5\n2 0 0 0\n0 1 8 8 Infinity\n1 0.25\n0\n", "symbols"),
    "acceptor": ("2\t0\tblue\t0.5\n2\t0\t<eps>\n0\t1\tfinch\tInfinity\n1\t0.25\n0\n", ""),
    "acceptor of ids": ("2\t0\t7\t0.5\n2\t0\t0\t0\n0\t1\t8\tInfinity\n1\t0.25\n0\n", "symbols"),
    "said to be one": (
        "2\t0\tblue\t0.5\n2\t0\t<eps>\t0\n0\t1\tfinch\tInfinity\n1\t0.25\n0\n",
        "acceptor=yes",
    ),
}


def read(tmp_path, text, option=""):
    (tmp_path / "x.fst.txt").write_text(text)
    (tmp_path / "table").write_text(TABLE)
    return lattices.read(
        tmp_path / "x.fst.txt",
        f"openfst:{f'symbols={tmp_path}/table' if option == 'symbols' else option}",
    )


@pytest.mark.parametrize("case", CASES)
def test_reads(tmp_path, case):
    (lattice,) = read(tmp_path, *CASES[case])
    assert [(a.source, a.target, a.word, a.scores["am"]) for a in lattice.arcs()] == [
        (2, 0, "blue", -0.5), (2, 0, None, 0.0), (0, 1, "finch", -math.inf)]  # fmt: skip
    assert (lattice.utt, lattice.start, lattice.states) == ("x", 2, 3)
    assert {end.state: end.scores["am"] for end in lattice.ends()} == {1: -0.25, 0: 0.0}
    assert lattice.extra == ({"input": ("x", "", "")} if case == "transducer" else {})


def test_infinite_weights_list_states_that_are_not_final(tmp_path):
    text = "0\t1\ta\ta\t1\n1\t0\n2\tInfinity\n"
    (lattice,) = read(tmp_path, text)
    assert (lattice.states, lattice.finals.tolist()) == (3, [1])
    lattices.write([lattice], tmp_path / "y.txt", "openfst")
    assert (tmp_path / "y.txt").read_text() == text


def test_four_columns_of_words_are_a_transducer(tmp_path):
    (lattice,) = read(tmp_path, "0 1 5 5\n1 2 6 6\n2\n")
    assert lattice.words == ("5", "6") and not lattice.scores["am"].any()


def test_input_symbols_and_ids_come_back(tmp_path):
    (lattice,) = read(tmp_path, CASES["transducer"][0])
    lattices.write([lattice], tmp_path / "y.fst.txt", "openfst")
    assert lattices.read(tmp_path / "y.fst.txt")[0].arcs() == lattice.arcs()
    (lattice,) = read(tmp_path, *CASES["ids"])
    lattices.write([lattice], tmp_path / "y.txt", f"openfst:symbols={tmp_path}/table")
    assert (tmp_path / "y.txt").read_text().splitlines()[0].split() == ["2", "0", "7", "7", "0.5"]


@pytest.mark.parametrize(
    ("word", "option", "cause"),
    [("red", "symbols", "'red' is not in"), ("<eps>", "", "stands for no word")],
)
def test_refuses_to_write(tmp_path, word, option, cause):
    (tmp_path / "table").write_text(TABLE)
    lattice = Lattice.of("u", 2, 0, [Arc(0, 1, word, {"am": -1.0})], [Final(1)])
    with pytest.raises(UserError, match=cause):
        lattices.write(
            [lattice],
            tmp_path / "y.txt",
            f"openfst:symbols={tmp_path}/table" if option else "openfst",
        )
