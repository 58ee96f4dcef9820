"""We read what kaldifst (OpenFst and Kaldi's plain lattices in Python) writes, and it compiles our
OpenFst text. Compact lattices, which it does not know, are tested byte by byte in tests/unit.
"""

import dataclasses
import math

import pytest
from lattices import named_sums, random_lattice, sentences

from lmtools.formats import lattices
from lmtools.types import Lattice

kaldifst = pytest.importorskip("kaldifst", reason="kaldifst is not installed")
WORDS = ("a", "b", "ß")
BOTH = {"graph": 1.0, "am": 1.0}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "words.txt").write_text("<eps> 0\na 1\nb 2\nß 3\n", encoding="utf-8")
    return tmp_path


def made(seed) -> Lattice:
    """A random lattice with Kaldi's scores, exact in 32 bits, and transition ids."""
    while True:
        lattice = random_lattice(seed, words=WORDS)
        if all(
            (4 * column % 1 == 0).all()
            for some in (lattice.scores, lattice.final_scores)
            for column in some.values()
        ):
            break
        seed += 1000
    scores, final_scores = (
        {"graph": c["lm"], "am": c["am"]} for c in (lattice.scores, lattice.final_scores)
    )
    ali = tuple(("", "5", "5_6_6")[i % 3] for i in range(len(lattice.words)))
    return dataclasses.replace(
        lattice,
        scores=scores,
        final_scores=final_scores,
        extra={"ali": ali},
        final_extra={},
        utt="zed1",
    )


@pytest.mark.parametrize("seed", range(8))
def test_we_read_its_lattices_binary_and_text(place, seed):
    lattice = made(seed)
    fst, ids = kaldifst.Lattice(), {None: 0, "a": 1, "b": 2, "ß": 3}
    for _ in range(lattice.states):
        fst.add_state()
    fst.start = lattice.start
    for arc in lattice.arcs():
        weight = kaldifst.LatticeWeight(-arc.scores["graph"], -arc.scores["am"])
        fst.add_arc(
            arc.source,
            kaldifst.LatticeArc(int(arc.extra["ali"][:1] or 0), ids[arc.word], weight, arc.target),
        )
    for end in lattice.ends():
        fst.set_final(end.state, kaldifst.LatticeWeight(-end.scores["graph"], -end.scores["am"]))
    fst.write(str(place / "y.fst"))
    (place / "y.ark").write_bytes(b"zed1 " + (place / "y.fst").read_bytes())
    (place / "y.txt").write_text("zed1 \n" + fst.to_str() + "\n")
    for path in (place / "y.ark", place / "y.txt"):
        (found,) = lattices.read(path, "kaldi")
        assert (found.utt, found.start) == ("zed1", lattice.start)
        assert sorted(found.source.tolist()) == sorted(lattice.source.tolist())
        assert sentences(found, BOTH) == pytest.approx(sentences(lattice, BOTH))
        totals = [
            sorted(math.fsum(named_sums(some, [arc], 0).values()) for arc in range(len(some.words)))
            for some in (found, lattice)
        ]
        shift = [
            math.fsum(column[0] for column in some.final_scores.values())
            for some in (found, lattice)
        ]
        assert [t - shift[0] for t in totals[0]] == pytest.approx([t - shift[1] for t in totals[1]])


@pytest.mark.parametrize("seed", range(8))
def test_it_compiles_our_openfst_text_and_we_read_what_it_prints(place, seed):
    lattice = made(seed)
    added = [
        {"am": columns["am"] + columns["graph"]}
        for columns in (lattice.scores, lattice.final_scores)
    ]
    lattice = dataclasses.replace(lattice, scores=added[0], final_scores=added[1], extra={})
    spec = f"openfst:symbols={place}/words.txt"
    lattices.write([lattice], place / "x.txt", spec)
    fst = kaldifst.compile((place / "x.txt").read_text(), acceptor=False)
    (place / "y.txt").write_text(fst.to_str())
    (found,) = lattices.read(place / "y.txt", f"{spec},acceptor=no")
    assert sentences(found, {"am": 1.0}) == sentences(lattice, {"am": 1.0})
    assert sorted(found.scores["am"].tolist()) == sorted((lattice.scores["am"] + 0.0).tolist())
