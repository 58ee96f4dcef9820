import gzip
import math
import struct

import pytest
from fuzz_seeds import binary_lattice

from lmtools.base.errors import UserError
from lmtools.formats import lattices
from lmtools.types import Arc, Final, Lattice

WORDS = "<eps> 0\nblue 412\nfinch 77\nßing 5\n"
COMPACT = (
    "zed1 \n0\t1\t412\t3.1,250.4,3_3_4\n0\t1\t0\tInfinity,1,3_3_3\n1\t2\t77\n2\t0.5,0,\n\nzed2"
    " \n0\n\n"
)
PLAIN = "zed1 \n3\t1\t9\t412\t3.5,250.25\n1\t2\t9\t0\n2\t0\t0\t77\t0,-1\n0\t0.5,0\n\n"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "words.txt").write_text(WORDS, encoding="utf-8")
    return tmp_path


def read(place, text, spec="kaldi"):
    (place / "x.ark").write_text(text, encoding="utf-8")
    return lattices.read(place / "x.ark", spec)


def scores(graph, am):
    return {"graph": graph, "am": am}


def test_compact_text(place):
    first, second = read(place, COMPACT)
    assert first.arcs() == [
        Arc(0, 1, "blue", scores(-3.1, -250.4), {"ali": "3_3_4"}),
        Arc(0, 1, None, scores(-math.inf, -1.0), {"ali": "3_3_3"}),
        Arc(1, 2, "finch", scores(0.0, 0.0), {"ali": ""}),
    ]
    assert first.ends() == [Final(2, scores(-0.5, 0.0), {"ali": ""})]
    assert first.times.tolist() == pytest.approx([0, 0.03, 0.03])
    assert second == Lattice.of("zed2", 1, 0, [], [Final(0, scores(0.0, 0.0))])


def test_plain_text(place):
    (lattice,) = read(place, PLAIN, "kaldi:frame=0.03")
    assert lattice.arcs() == [
        Arc(3, 1, "blue", scores(-3.5, -250.25), {"ali": "9"}),
        Arc(1, 2, None, scores(0.0, 0.0), {"ali": "9"}),
        Arc(2, 0, "finch", scores(0.0, 1.0), {"ali": ""}),
    ]
    assert lattice.start == 3
    assert lattice.times.tolist() == pytest.approx([0.06, 0.03, 0.06, 0])


def test_infinite_weights_list_states_that_are_not_final(place):
    text = "zed1 \n0\t1\t77\n1\n2\tInfinity,Infinity,\n\n"
    (lattice,) = read(place, text)
    assert (lattice.states, lattice.finals.tolist()) == (3, [1])
    lattices.write([lattice], place / "y.ark", "kaldi")
    assert (place / "y.ark").read_text() == text


def test_times_only_where_all_ways_agree(place):
    first, _ = read(place, COMPACT.replace("3_3_3", "3_3"))
    assert first.times is None


def test_text_comes_back_as_kaldi_wrote_it(place):
    lattices.write(read(place, COMPACT), place / "y.ark", "kaldi")
    assert (place / "y.ark").read_text() == COMPACT
    plain = read(place, PLAIN)
    lattices.write(plain, place / "y.ark", "kaldi")
    assert lattices.read(place / "y.ark")[0].scores["am"].tolist() == plain[0].scores["am"].tolist()


@pytest.mark.parametrize(
    "spec", ["ark:{}/y.ark", "ark,t:{}/y.ark", "{}/y.gz", "ark:| gzip -c > {}/y.gz"]
)
def test_tables_of_any_kind(place, spec):
    some = read(place, COMPACT.replace("3.1,250.4", "3.125,250.5"))
    lattices.write(some, spec.replace("{}", str(place)), f"kaldi:words={place}/words.txt")
    back = {"ark:|": f"ark:gunzip -c {place}/y.gz |"}
    source = next(
        (value for key, value in back.items() if spec.startswith(key)),
        spec.replace("{}", str(place)),
    )
    assert lattices.read(source, f"kaldi:words={place}/words.txt") == some


def test_decode_directory(place):
    decode = place / "decode"
    for job, utt in ((10, "j"), (2, "b")):
        decode.mkdir(exist_ok=True)
        (decode / f"lat.{job}.gz").write_bytes(gzip.compress(COMPACT.replace("zed", utt).encode()))
    (decode / "num_jobs").write_text("2\n")
    (place / "graph").mkdir()
    (place / "words.txt").rename(place / "graph" / "words.txt")
    assert lattices.detect(decode) == "kaldi"
    found = lattices.read(decode)
    assert [lattice.utt for lattice in found] == ["b1", "b2", "j1", "j2"]
    lattices.write(found, place / "again", "kaldi")
    assert sorted(child.name for child in (place / "again").iterdir()) == ["lat.1.gz", "num_jobs"]
    assert lattices.read(place / "again") == found
    (decode / "num_jobs").write_text("3\n")
    with pytest.raises(UserError, match="num_jobs"):
        lattices.read(decode)


@pytest.mark.parametrize("compact", [True, False])
def test_binary_is_laid_out_as_openfst_does(place, compact):
    (place / "b.ark").write_bytes(b"u " + binary_lattice(77, compact))
    assert lattices.detect(place / "b.ark") == "kaldi"
    (found,) = lattices.read(place / "b.ark")
    ali = "7_8" if compact else "7"
    assert found.arcs() == [Arc(0, 1, "finch", scores(-1.5, -2.0), {"ali": ali})]
    assert found.ends()[0].scores == scores(-0.25, 0.0)
    assert found.times.tolist() == pytest.approx([0, 0.02 if compact else 0.01])


def test_an_utterance_without_states(place):
    for path in (f"ark:{place}/e.ark", f"{place}/e.ark"):
        lattices.write([Lattice.of("e", 1, 0, [], [])], path, "kaldi")
        (empty,) = lattices.read(path, f"kaldi:words={place}/words.txt")
        assert (empty.states, len(empty.words), len(empty.finals)) == (1, 0, 0)


def test_lm_joins_the_graph_and_the_total_stands_for_all(place):
    arc = Arc(0, 1, "blue", {"am": -1.0, "graph": -2.0, "lm": -4.0})
    lattices.write([Lattice.of("u", 2, 0, [arc], [Final(1)])], place / "x.ark", "kaldi")
    assert lattices.read(place / "x.ark")[0].arcs()[0].scores == scores(-6.0, -1.0)
    other = Arc(0, 1, "blue", {**arc.scores, "rnn": -8.0})
    with pytest.raises(UserError, match="rnn"):
        lattices.write([Lattice.of("u", 2, 0, [other], [Final(1)])], place / "x.ark", "kaldi")
    total = Arc(0, 1, "blue", {**other.scores, "total": -9.0})
    lattices.write([Lattice.of("u", 2, 0, [total], [Final(1)])], place / "x.ark", "kaldi")
    assert lattices.read(place / "x.ark")[0].arcs()[0].scores == scores(0.0, -9.0)


def test_refuses_without_a_table_of_words(place):
    lattices.write(read(place, COMPACT), place / "x.ark", "kaldi")
    (place / "words.txt").unlink()
    for path in (place / "x.ark", "ark:-"):
        with pytest.raises(UserError, match="kaldi:words=FILE"):
            lattices.read(path, "kaldi")
    with pytest.raises(UserError, match="kaldi:words=FILE"):
        lattices.write([], place / "x.ark", "kaldi")


def test_refuses_words_that_have_no_id(place):
    with pytest.raises(UserError, match="'red' is not in"):
        lattices.write(
            [Lattice.of("u", 2, 0, [Arc(0, 1, "red")], [Final(1)])], place / "y.ark", "kaldi"
        )
    assert not (place / "y.ark").exists()


def test_refuses_symbol_tables_and_other_automata(place):
    data = b"u " + binary_lattice(77)
    for old, new, cause in (
        (b"compactlattice44", b"compactlattice48", "compactlattice48"),
        (struct.pack("<ii", 2, 0), struct.pack("<ii", 2, 1), "symbol tables"),
    ):
        (place / "c.ark").write_bytes(data.replace(old, new, 1))
        with pytest.raises(UserError, match=cause):
            lattices.read(place / "c.ark")
