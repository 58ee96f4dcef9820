from pathlib import Path

import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import FORMATS, detect, edits, lattices, lists, read
from lmtools.formats.lattices import LATTICES
from lmtools.lattice.paths import best
from lmtools.types import Arc, Final, Hypothesis, Lattice, NBest

LISTS = [
    NBest("s_a", (Hypothesis("x y"), Hypothesis("x")), "x y"),
    NBest("s_b", (Hypothesis(""),), "z"),
]
ONE_BEST = [NBest("s_a", (Hypothesis("x y"),)), NBest("s_b", (Hypothesis(""),))]


UNSCORED = {"icefall", "trn", "ctm", "kaldi-text"}


def toys(name: str) -> list[NBest]:
    """Two lists of one hypothesis each, the second one empty, as the format can hold them."""
    if name == "systems":  # numbers lines, and has the system of each hypothesis
        one = {"scores": {"system:s": 1.0}, "extra": {"system": "s"}}
        return [NBest("1", (Hypothesis("x y", **one),)), NBest("2", (Hypothesis("", **one),))]
    scores = {} if name in UNSCORED else {"am": -1.5}
    return [NBest("s_a", (Hypothesis("x y", scores),)), NBest("s_b", (Hypothesis("", scores),))]


READ_ONLY = ("nemo", "wenet", "beams", "cloud", "sherpa-onnx", "sockeye", "stm", "manifest")


@pytest.mark.parametrize("name", READ_ONLY)
def test_what_only_its_own_program_writes(tmp_path, name):
    with pytest.raises(UserError, match="f: this format is read, not written; write jsonl"):
        FORMATS[name].write(iter(toys(name)), tmp_path / "f")
    assert FORMATS[name].summary and not (tmp_path / "f").exists()


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in READ_ONLY])
def test_every_format_writes_and_reads_one_best(tmp_path, name):
    FORMATS[name].write(iter(toys(name)), tmp_path / "f")
    found = list(FORMATS[name].read(tmp_path / "f"))
    assert [(n.utt, [h.text for h in n.hyps]) for n in found] == [
        (n.utt, [h.text for h in n.hyps]) for n in toys(name)
    ]
    pairs = zip(toys(name), found, strict=True)
    # SRILM has more columns, of zeros
    assert all(old.hyps[0].scores.items() <= new.hyps[0].scores.items() for old, new in pairs)
    assert FORMATS[name].summary


@pytest.mark.parametrize("name", LATTICES)
def test_every_lattice_format_writes_and_reads_a_chain(tmp_path, name):
    """A chain, in words and scores as a confusion network has them; PLF and networks number their
    lines.
    """
    (tmp_path / "words.txt").write_text("<eps> 0\nx 1\ny 2\n")
    chains = [
        Lattice.of(
            utt,
            3,
            0,
            [Arc(0, 1, "x", {"am": -0.5}), Arc(1, 2, "y", {"am": -0.25})],
            [Final(2, {"am": 0.0})],
            [0, 0.5, 1.25],
        )
        for utt in ("1", "2")
    ]
    path = tmp_path / {"kaldi": "f.ark"}.get(name, "f")
    lattices.write(iter(chains), path, name)
    found = lattices.read(path, name)
    assert [lattice.utt for lattice in found] == ["1", "2"]
    for lattice in found:
        path = best(lattice, dict.fromkeys(lattice.scores, 1.0))
        # pocketsphinx's are whole numbers
        assert path.words == ("x", "y") and path.score == pytest.approx(-0.75, abs=2e-4)
    assert LATTICES[name].summary


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("n.jsonl", "broken", "jsonl"),
        ("n.jsonl.gz", None, "jsonl"),
        ("lists.txt", '{"utt": "a", "hyps": []}', "jsonl"),
        ("h.trn", "x (a)", "trn"),
        ("text", "a x", None),
        ("text", "a x (laughter)", None),
        ("other.json", '{"utts": {}}', None),
        ("empty", "", None),
    ],
)
def test_detect(tmp_path, file, content, expected):
    path = tmp_path / file
    path.write_text(content) if content is not None else FORMATS["jsonl"].write(LISTS, path)
    if expected:
        assert detect(path) == expected == detect(path, default="kaldi-text")
    else:
        assert detect(path, default="kaldi-text") == "kaldi-text"
        cause = (
            "could be anything; name its format"
            if content
            else "is empty; give a file or directory in one of the formats"
        )
        with pytest.raises(UserError, match=f"{cause}:? [a-z, -]*or another of lmtools convert"):
            detect(path)


def test_detect_finds_directories_and_leaves_standard_input(tmp_path):
    FORMATS["espnet2"].write(ONE_BEST, tmp_path / "d")
    assert detect(tmp_path / "d") == "espnet2"
    assert read(tmp_path / "d") == ONE_BEST
    with pytest.raises(UserError, match="standard input"):
        detect("-")


def test_attach_joins_by_id():
    attached = lists.attach_refs(LISTS, {"s_b": "two", "s_a": "one"}, "n", "r")
    assert [(nbest.utt, nbest.ref, nbest.hyps) for nbest in attached] == [
        ("s_a", "one", LISTS[0].hyps),
        ("s_b", "two", LISTS[1].hyps),
    ]


@pytest.mark.parametrize(
    ("refs", "message"),
    [
        ({"s_a": "x"}, "n: 1 of 2 utterances have no reference in r \\(first 's_b'\\); make"),
        (
            {"x_a": "x", "s_c": "x"},
            "n: 2 of 2 utterances have no reference in r .first 's_a', there 'x_a'.; make the ids"
            " the same on both sides, or give them with --ref-lines",
        ),
    ],
)
def test_attach_refuses_ids_that_differ(refs, message):
    with pytest.raises(UserError, match=message):
        lists.attach_refs(LISTS, refs, "n", "r")


def test_references_of_a_bigger_set_are_used_as_far_as_they_are_needed(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    FORMATS["jsonl"].write(LISTS, "n.jsonl")
    Path("ref").write_text("s_a one\nother x\ns_b two\n")
    assert main(["convert", "n.jsonl", "o.jsonl", "--ref", "ref"]) == 0
    assert ", 1 of 3 references not used: they have no list\n" in capsys.readouterr().err
    assert [nbest.ref for nbest in read("o.jsonl")] == ["one", "two"]
    assert main(["doctor", "--nbest", "n.jsonl", "--ref", "ref"]) == 0
    assert "hint: ref:2: 1 of 3 (33.3%) references have no list" in capsys.readouterr().out


def test_attach_lines_joins_by_order():
    assert [
        (nbest.utt, nbest.ref) for nbest in lists.attach_lines(LISTS, {"r": ["one", ""]}, "n")
    ] == [("s_a", "one"), ("s_b", "")]
    with pytest.raises(UserError, match="r: 1 lines for 2 lists in n; give one line a list"):
        lists.attach_lines(LISTS, {"r": ["one"]}, "n")


def test_cut():
    nbest = NBest("u", tuple(map(Hypothesis, "abc")), "r")
    assert edits.cut_list(nbest, 2) == NBest("u", tuple(map(Hypothesis, "ab")), "r")
    assert edits.cut_list(nbest, 9) == nbest
