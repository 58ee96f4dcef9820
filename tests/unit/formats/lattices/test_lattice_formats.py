"""What holds for every lattice format: random lattices survive, in the same format as they are, in
others by their sentences and scores.
"""

import dataclasses
import io
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lattices import random_lattice, sentences
from needs import needs

from lmtools.base.errors import UserError
from lmtools.formats import lattices
from lmtools.types import TOTAL, Arc, Final, Lattice

WORDS = ("naïve", "b'", '"q', "\\", "a:b", "ß,)", "'em", "(x)", "#1", "=", "猫")
SEEDS = st.integers(0, 1 << 30)
FEW = settings(max_examples=25, deadline=None, database=None)
SUFFIX = {"slf": ".slf", "openfst": ".fst.txt", "plf": ".plf", "kaldi": ".ark"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lattices")
    (folder / "words.txt").write_text(
        "".join(f"{word} {i}\n" for i, word in enumerate(["<eps>", *WORDS])), encoding="utf-8"
    )
    return folder


def only_am(lattice, scale=1.0):
    """`lattice` with its scores added up as `am`, in multiples of `scale`."""
    added = [
        {"am": np.round(sum(columns.values()) / scale) * scale + 0.0}
        for columns in (lattice.scores, lattice.final_scores)
    ]
    return dataclasses.replace(lattice, scores=added[0], final_scores=added[1])


def through(lattice, name, place, options=""):
    """`lattice` after writing and reading it in a format."""
    path = place / f"{lattice.utt}{SUFFIX[name]}"
    lattices.write([lattice], path, name + options)
    (read,) = lattices.read(path, name + options)
    return read


def same_paths(a, b, weights, tolerance=1e-9):
    left, right = sentences(a, weights), sentences(b, weights)
    assert left.keys() == right.keys()
    assert all(
        math.isclose(left[words], right[words], rel_tol=1e-9, abs_tol=tolerance) for words in left
    )


@FEW
@given(SEEDS)
def test_slf_keeps_words_scores_and_times(place, seed):
    lattice = random_lattice(seed, words=WORDS, impossible=0.1)
    first = through(lattice, "slf", place)
    # without links there is no place for l=0
    assert first.scores.keys() == lattice.scores.keys() or not first.words
    same_paths(
        first, lattice, {"am": 1.0, **({"lm": 0.5} if "lm" in first.scores else {}), "words": -1.0}
    )
    assert through(first, "slf", place) == first
    if first.words and len(lattice.finals) == 1 and first.states == lattice.states:
        assert dataclasses.replace(first, header={}) == lattice


@FEW
@given(SEEDS, st.sampled_from(["plf", "openfst"]))
def test_formats_of_one_score_keep_words_and_scores(place, seed, name):
    lattice = only_am(random_lattice(seed, words=WORDS, impossible=0.1))
    first = through(lattice, name, place)
    same_paths(first, lattice, {"am": 1.0, "words": -1.0})
    again = through(first, name, place)
    assert dataclasses.replace(again, utt=first.utt) == first


@FEW
@given(SEEDS)
def test_openfst_keeps_every_arc(place, seed):
    lattice = only_am(random_lattice(seed, words=WORDS))
    read = through(lattice, "openfst", place, f":symbols={place}/words.txt")

    def rows(lattice):
        return sorted(lattice.arcs(), key=repr), sorted(lattice.ends(), key=repr)

    plain = dataclasses.replace(lattice, extra={}, final_extra={})
    assert rows(read) == rows(plain) and (read.start, read.states) == (
        lattice.start,
        lattice.states,
    )


@FEW
@given(SEEDS, st.sampled_from(["", "ark,t:"]))
def test_kaldi_text_keeps_everything_but_lm(place, seed, kind):
    lattice = random_lattice(seed, words=WORDS, impossible=0.1)
    path = f"{kind}{place}/t.ark"
    lattices.write([lattice, dataclasses.replace(lattice, utt="second")], path, "kaldi")
    read = lattices.read(path, "kaldi")
    assert [one.utt for one in read] == [lattice.utt, "second"]
    folded = [
        {"graph": columns["lm"], "am": columns["am"]}
        for columns in (lattice.scores, lattice.final_scores)
    ]
    expected = dataclasses.replace(
        lattice, scores=folded[0], final_scores=folded[1], extra={}, final_extra={}
    )
    for one in read:
        assert one.start == lattice.start
        assert sorted(map(repr, one.arcs())) == sorted(map(repr, expected.arcs()))
        assert one.states == lattice.states
        assert sorted(map(repr, one.ends())) == sorted(
            repr(end) for end in expected.ends() if max(end.scores.values()) > -math.inf
        )


@needs("networks")
@FEW
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from((*WORDS, None)), st.floats(0, 1)), min_size=1, max_size=3
        ),
        max_size=4,
    )
)
def test_confusion_networks_come_back(place, slots):
    arcs = [
        Arc(i, i + 1, w, {"am": math.log(p) if p else -math.inf})
        for i, slot in enumerate(slots)
        for w, p in slot
    ]
    lattice = Lattice.of("1", len(slots) + 1, 0, arcs, [Final(len(slots))])
    lattices.write([lattice], place / "c.wcn", "wcn")
    (read,) = lattices.read(place / "c.wcn", "wcn:missing=nothing")
    assert read.words == lattice.words and read.finals.tolist() == lattice.finals.tolist()
    if arcs:
        np.testing.assert_allclose(read.scores["am"], lattice.scores["am"], rtol=1e-12)


EMPTY = Lattice.of("e", 1, 0, [], [Final(0)])


@pytest.mark.parametrize("name", ["slf", "plf", "kaldi", "openfst"])
def test_the_empty_sentence(place, name):
    read = through(EMPTY, name, place)
    assert sentences(read, {"am": 1.0}) == {(): 0.0}


@pytest.mark.parametrize("name", ["slf", "kaldi", "plf"])
def test_pipes_take_several(place, name, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    monkeypatch.setattr(sys, "stdout", out)
    twice = [EMPTY, dataclasses.replace(EMPTY, utt="f")]
    lattices.write(
        twice,
        "ark,t:-" if name == "kaldi" else "-",
        f"{name}:words={place}/words.txt" if name == "kaldi" else name,
    )
    stream = io.BytesIO(out.buffer.getvalue())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream, encoding="utf-8"))
    read = lattices.read("-", f"{name}:words={place}/words.txt" if name == "kaldi" else name)
    assert [lattice.utt for lattice in read] == (["1", "2"] if name == "plf" else ["e", "f"])


@pytest.mark.parametrize("name", ["slf", "openfst"])
def test_directories_hold_a_file_each(tmp_path, name):
    some = [
        dataclasses.replace(only_am(random_lattice(seed)), utt=utt)
        for seed, utt in ((3, "b.1"), (4, "a"))
    ]
    lattices.write(some, tmp_path / "out", name)
    lattices.write(some, tmp_path / "out", name)  # in place of the first
    assert sorted(child.name for child in (tmp_path / "out").iterdir()) == [
        f"{utt}{SUFFIX[name]}" for utt in ("a", "b.1")
    ]
    assert lattices.detect(tmp_path / "out") == name
    assert [lattice.utt for lattice in lattices.stream(tmp_path / "out")] == ["a", "b.1"]
    with pytest.raises(UserError, match="holds one lattice"):
        lattices.write(some, tmp_path / f"one{SUFFIX[name]}", name)
    (tmp_path / "out" / "other").touch()
    with pytest.raises(UserError, match="'other'"):
        lattices.write(some, tmp_path / "out", name)
    with pytest.raises(UserError, match="occurs twice"):
        lattices.write(some[:1] * 2, tmp_path / "new", name)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("utt", ["a/b", "../a", "a\0b", "a\x1b[2J", ".a", "b" * 300])
@pytest.mark.parametrize("name", ["slf", "openfst"])
def test_ids_that_cannot_name_a_file_are_refused(tmp_path, name, utt):
    lattice = Lattice.of(utt, 2, 0, [Arc(0, 1, "x", {"am": -1.0})], [Final(1, {"am": 0.0})])
    with pytest.raises(UserError, match="cannot name a file; rename it"):
        lattices.write([lattice], tmp_path / "d", name)
    assert not list(tmp_path.iterdir())


WCN = pytest.param("wcn", marks=needs("networks"))


@pytest.mark.parametrize("name", ["plf", "openfst", WCN])
def test_room_for_one_score_holds_the_total(tmp_path, name):
    both = Lattice.of("1", 2, 0, [Arc(0, 1, "a", {"am": -1.0, "lm": -2.0})], [Final(1)])
    path = tmp_path / f"x{SUFFIX.get(name, '.wcn')}"
    with pytest.raises(UserError, match="am, lm"):
        lattices.write([both], path, name)
    lattices.write([dataclasses.replace(both, scores={**both.scores, TOTAL: np.array([-0.5])},
    final_scores={
        **both.final_scores, TOTAL: np.zeros(1)})], path, name)  # fmt: skip
    read = lattices.read(path, name)[0]
    assert sentences(read, {"am": 1.0})[("a",)] == pytest.approx(-0.5, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "writable"),
    [
        *(("plf", False), ("openfst", True), ("slf", True)),
        pytest.param("wcn", False, marks=needs("networks")),
    ],
)
def test_cycles_go_where_they_can(tmp_path, name, writable):
    cyclic = Lattice.of(
        "c",
        3,
        0,
        [Arc(0, 1, "a", {"am": 0.0}), Arc(1, 0, "b", {"am": 0.0}), Arc(1, 2, "c", {"am": 0.0})],
        [Final(2)],
    )
    path = tmp_path / f"c{SUFFIX.get(name, '.wcn')}"
    if writable:
        lattices.write([cyclic], path, name)
        assert lattices.read(path, name)[0].words == cyclic.words
    else:
        with pytest.raises(UserError, match=r"cycle|no confusion network"):
            lattices.write([cyclic], path, name)
        assert not path.exists()


SAMPLES = {
    "slf": "VERSION=1.0\nN=3 L=2\nI=0 t=0\nJ=0 S=0 E=1 W=a a=-1 l=-2\nJ=1 S=1 E=2 W=b a=-1\n",
    "plf": "((('tal', -0.73, 1),('tardes', -2.55, 2),),(('ves', -2.08, 1),),)\n",
    "wcn": "the:3:0.909 that:3:0.069 phone:4:0.976\n",
    "openfst": "0\t1\ta\ta\t0.5\n1\t2\t<eps>\tb\n2\t0.5\n",
    "kaldi": "zed1 \n0\t1\t1\t3.1,250.4,3_3_4\n1\t2\t2\n2\t0.5,0,\n\n",
    "pocketsphinx": (
        "Frames 9\nNodes 2 (X)\n0 <s> 0 1 2 ; 0\n1 a(2) 3 4 5 ; 0\nInitial 0\nFinal 1\nEdges (X)\n0"
        " 1 -99\nEnd\n"
    ),
}

SAMPLES = {name: text for name, text in SAMPLES.items() if name in lattices.LATTICES}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_recognised(tmp_path, name):
    path = tmp_path / "file"
    path.write_text(SAMPLES[name])
    assert lattices.detect(path) == name
