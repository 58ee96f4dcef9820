"""`lmtools convert --drop-words` and `--normaliser`: texts of lists and arcs of lattices change,
and nothing about the old words stays.
"""

import json
from dataclasses import replace

import pytest

from lmtools.cli import main
from lmtools.formats import edits, jsonl, lattices, read
from lmtools.types import Arc, Final, Hypothesis, Lattice, NBest

LISTS = [
    NBest(
        "u1",
        (
            Hypothesis(
                "[noise] The KING, SIL came",
                {"am": -1.0},
                {"times": "1 0.0 0.1\n1 0.1 0.2\n1 0.3 0.1\n1 0.4 0.5\n1 0.9 0.1"},
            ),
            Hypothesis(
                "The King came SIL", {"am": -2.0}, {"token": "▁The ▁King ▁ca me SIL", "n": "4"}
            ),
        ),
        "the king <unk> came [noise]",
        {"timestamp_ref": "[0.1]", "version": "2"},
    ),
    NBest(
        "u2",
        (
            Hypothesis("SIL", {"am": -3.0}, {"times": "1 0.0 0.1"}),
            Hypothesis("yes  sir", {"am": -4.0}, {"token": "▁yes ▁sir"}),
        ),
    ),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jsonl.write(LISTS, "n.jsonl")
    (tmp_path / "noise").write_text("[noise]\n\nSIL\n<unk>\n")
    return tmp_path


def convert(capsys, *arguments):
    status = main(["convert", "n.jsonl", "o.jsonl", *arguments])
    return status, capsys.readouterr().err


def texts(path="o.jsonl"):
    return [([hyp.text for hyp in one.hyps], one.ref) for one in jsonl.read(path)]


def test_words_are_dropped_on_both_sides(here, capsys):
    assert convert(capsys, "--drop-words", "noise") == (
        0,
        "o.jsonl: 2 utterances, 4 hypotheses, 6 words dropped\n",
    )
    assert texts() == [
        (["The KING, came", "The King came"], "the king came"),
        (["", "yes  sir"], None),
    ]
    first, second = jsonl.read("o.jsonl")
    assert [hyp.scores["am"] for hyp in first.hyps] == [-1.0, -2.0]
    # those of the words that stay
    assert first.hyps[0].extra == {"times": "1 0.1 0.2\n1 0.3 0.1\n1 0.9 0.1"}
    assert first.hyps[1].extra == {"n": "4"} and first.extra == {"version": "2"}
    assert second.hyps == (Hypothesis("", {"am": -3.0}), LISTS[1].hyps[1])


def test_other_words_stand_for_some_once_normalised(here, capsys):
    (here / "map").write_text("king queen regnant\n\nyes yea\n")
    assert convert(capsys, "--normaliser", "librispeech", "--map-words", "map")[0] == 0
    assert texts() == [
        (
            ["noise the queen regnant sil came", "the queen regnant came sil"],
            "the queen regnant unk came noise",
        ),
        (["sil", "yea sir"], None),
    ]
    # of what stood there nothing is kept; without the normaliser KING, is another word
    assert next(iter(jsonl.read("o.jsonl"))).hyps[1].extra == {"n": "4"}
    assert convert(capsys, "--map-words", "map")[0] == 0
    assert next(iter(jsonl.read("o.jsonl"))).hyps == LISTS[0].hyps
    assert texts()[1] == (["SIL", "yea sir"], None)


def test_the_normaliser_of_training_for_both_sides(here, capsys):
    assert convert(capsys, "--normaliser", "librispeech", "--drop-words", "noise")[0] == 0
    assert texts() == [
        (["the king came", "the king came"], "the king came"),
        (["", "yes sir"], None),
    ]
    # as many words: times stay
    assert next(jsonl.read("o.jsonl")).hyps[0].extra == {"times": "1 0.1 0.2\n1 0.3 0.1\n1 0.9 0.1"}
    assert (
        convert(capsys, "--normaliser", "librispeech", "--drop-words", "noise", "--dedup")[0] == 0
    )
    assert texts()[0] == (["the king came"], "the king came")
    assert (
        convert(capsys, "--normaliser", "none", "--case", "upper", "--normaliser-ref", "none")[0]
        == 0
    )
    assert texts()[0] == (
        ["[NOISE] THE KING, SIL CAME", "THE KING CAME SIL"],
        "the king <unk> came [noise]",
    )
    assert convert(capsys, "--punctuation", "strip", "--normaliser-ref", "librispeech")[0] == 0
    assert texts()[0] == (
        ["noise The KING SIL came", "The King came SIL"],
        "the king unk came noise",
    )


def test_what_the_recogniser_wrote_stays(here, capsys):
    """Beside the text of the normaliser, through --dedup and further conversions."""
    hyps = [
        Hypothesis("Mr.  King, came", {"am": -2.0}),
        Hypothesis("MR KING CAME", {"am": -1.0}),
        Hypothesis("mister king", {"am": -3.0}),
        Hypothesis("[Music] Mr King", {"am": -4.0}),
    ]
    jsonl.write([NBest("u1", tuple(hyps), "Mister King came")], "n.jsonl")
    (here / "map").write_text("mr mister\n")
    way = ["--drop-marks", "--normaliser", "librispeech", "--map-words", "map", "--dedup"]
    assert convert(capsys, *way)[0] == 0
    (made,) = jsonl.read("o.jsonl")
    assert [(hyp.text, hyp.written) for hyp in made.hyps] == [
        ("mister king came", "MR KING CAME"),
        ("mister king", None),
    ]
    assert made.hyps[0].display == "MR KING CAME" and made.hyps[1].display == "mister king"
    assert '"written": "MR KING CAME", "scores": {"am": -1.0}' in (here / "o.jsonl").read_text()
    assert convert(capsys, "--normaliser", "librispeech")[0] == 0
    assert [hyp.written for hyp in next(jsonl.read("o.jsonl")).hyps] == [
        "Mr.  King, came",
        "MR KING CAME",
        None,
        "[Music] Mr King",
    ]
    assert main(["convert", "o.jsonl", "p.jsonl", "--case", "upper"]) == 0
    first, second, third, _ = next(jsonl.read("p.jsonl")).hyps
    assert (first.text, first.written) == ("MR KING CAME", "Mr.  King, came")
    # the words that it wrote are the text again
    assert second == Hypothesis("MR KING CAME", {"am": -1.0})
    assert third.written == "mister king"
    for keeping in (["--case", "sentence"], ["--drop-marks"]):
        assert convert(capsys, *keeping)[0] == 0
        assert all(hyp.written is None for hyp in next(jsonl.read("o.jsonl")).hyps)


def test_case_by_language(here, capsys):
    jsonl.write([NBest("u1", (Hypothesis("IŞIK İYİ"),), "IŞIK")], "n.jsonl")
    way = ["--normaliser", "none:language=tr", "--case", "lower", "--normaliser-ref", "none"]
    assert convert(capsys, *way)[0] == 0
    assert texts() == [(["ışık iyi"], "IŞIK")]
    assert convert(capsys, "--normaliser", "librispeech:language=tr")[0] == 0
    assert texts() == [(["ışık iyi"], "ışık")]


@pytest.mark.parametrize(
    "option", [["--case", "upper"], ["--detokenise", "en"], ["--normaliser", "librispeech"]]
)
def test_nothing_about_other_words_stays_however_a_text_changes(here, capsys, option):
    stale = ("words", "spoken", "tokens", "alignment", "result", "word_offsets", "segments")
    extra = dict.fromkeys(stale, "[1, 2]") | {"times": "1 0 1\n1 1 2", "rank": "3"}
    jsonl.write([NBest("u", (Hypothesis("The fox , x", {}, extra),))], "n.jsonl")
    assert convert(capsys, *option)[0] == 0
    (hyp,) = next(jsonl.read("o.jsonl")).hyps
    assert hyp.text != "The fox , x" and hyp.extra == {"rank": "3"}


def test_lists_are_rewritten_on_the_sides_asked_for():
    bare, given = LISTS[1], NBest("v", (Hypothesis("Straße b", {"am": -1.0}),), "b", {}, ("c",))
    assert edits.rewrite_list(bare, refs=str.upper) == bare
    assert edits.rewrite_list(given, refs=str.upper) == replace(given, ref="B", more_refs=("C",))
    assert edits.rewrite_list(given, str.upper) == NBest(
        "v", (Hypothesis("STRASSE B", {"am": -1.0}),), "b", {}, ("c",)
    )


def test_capitalised():
    texts = {
        "the dog": "The dog",
        '"éa B': '"Éa B',
        "23. june": "23. june",
        "A b": "A b",
        "?": "?",
        "": "",
    }
    assert {text: edits.capitalise(text) for text in texts} == texts


def test_case_alone_is_of_hypotheses(here, capsys):
    assert convert(capsys, "--case", "upper")[0] == 0
    assert texts()[0] == (
        ["[NOISE] THE KING, SIL CAME", "THE KING CAME SIL"],
        "the king <unk> came [noise]",
    )


def test_written_times_are_those_of_the_words_left(here, capsys):
    (here / "a.ctm").write_text(
        "u1 1 0.00 0.10 SIL 0.9\nu1 1 0.10 0.25 Yes 0.8\nu1 1 0.50 0.10 SIL\n"
    )
    assert (
        main(
            ["convert", "a.ctm", "b.ctm", "--to", "ctm", "--drop-words", "noise", "--case", "lower"]
        )
        == 0
    )
    assert (here / "b.ctm").read_text() == "u1 1 0.10 0.25 yes 0.8\n"


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--drop-words", "two"], "two:2: 2 words on a line; write one a line"),
        (["--drop-words", "none"], "none:1: no words; write those to drop, one a line"),
        (["--map-words", "none"], "none:1: no words; write a line `mr mister` for each"),
        (["--map-words", "one"], "one:2: 'yes' alone; write what stands for it after it"),
        (["--map-words", "twice"], "twice:2: 'yes' a second time; leave one line"),
        (
            ["--normaliser", "cased", "--case", "sentence"],
            "--case sentence: is no option of the normaliser; leave",
        ),
        (
            ["--normaliser-ref", "cased"],
            "--normaliser-ref: is in place of the normaliser of hypotheses; give --normaliser too",
        ),
        (["--normaliser", "libri"], "normaliser libri: none is called 'libri'; known are none, "),
        (
            ["--normaliser", "cased", "--normaliser-ref", "cased:x=y"],
            "normaliser cased:x=y: there is no option 'x'; its options are: case=keep|lower",
        ),
    ],
)
def test_mistakes(here, capsys, arguments, cause):
    (here / "two").write_text("SIL\na b\n")
    (here / "none").write_text("\n")
    (here / "one").write_text("no nay\nyes\n")
    (here / "twice").write_text("yes yea\nyes aye\n")
    status, said = convert(capsys, *arguments)
    assert (
        status == 1 and said.count("\n") == 1 and cause in said and not (here / "o.jsonl").exists()
    )


def lattice(*words):
    arcs = [Arc(state, state + 1, word, {"am": -1.0 - state}) for state, word in enumerate(words)]
    return Lattice.of("u1", len(words) + 1, 0, arcs, [Final(len(words), {"am": 0.0})])


def test_lattices(here, capsys):
    lattices.write([lattice("The", "[noise]", "KING,", None, "--")], "l.slf", "slf")
    assert (
        main(["convert", "l.slf", "o.slf", "--drop-words", "noise", "--normaliser", "librispeech"])
        == 0
    )
    assert capsys.readouterr().err == "o.slf: 1 lattices, 5 arcs, 1 of them without their words\n"
    (made,) = lattices.read("o.slf")
    assert made.words == ("the", None, "king", None, None) and made.scores["am"].tolist() == [
        -1,
        -2,
        -3,
        -4,
        -5,
    ]
    lattices.write([lattice("twenty-one")], "l.slf", "slf")
    assert main(["convert", "l.slf", "p.slf", "--punctuation", "strip"]) == 1
    said = capsys.readouterr().err
    assert (
        "lattice 'u1': 'twenty-one' becomes 'twenty one'; an arc holds one word; take lists" in said
        and not (here / "p.slf").exists()
    )
    assert (
        main(["convert", "l.slf", "p.slf", "--normaliser", "none", "--normaliser-ref", "cased"])
        == 1
    )


def test_an_arc_of_another_word_has_no_variant_of_the_old_one(here):
    """As `king(2)`, the second pronunciation, whose number says nothing of other words."""
    words, variants = ("king", "sir", None), ("2", "3", "")
    arcs = [
        Arc(state, state + 1, word, {"am": -1.0}, {"variant": variant} if variant else {})
        for state, (word, variant) in enumerate(zip(words, variants, strict=True))
    ]
    (here / "map").write_text("king queen\n")
    for name, file in (("slf", "l.slf"), ("pocketsphinx", "l.lat")):
        lattices.write([Lattice.of("u1", 4, 0, arcs, [Final(3)])], file, name)
        assert main(["convert", file, f"o{file}", "--to", name, "--map-words", "map"]) == 0
        (changed,) = lattices.read(f"o{file}", name)
        pairs = list(zip(changed.words, changed.extra["variant"], strict=True))
        assert ("queen", "") in pairs and ("sir", "3") in pairs


def test_what_a_format_keeps_of_tokens_goes_with_them(here):
    """fairseq's token scores, ESPnet's pieces: written again, they are not those of other words."""
    (here / "f").write_text("S-0\ta\nH-0\t-0.5\tSIL yes\nD-0\t-0.5\tSIL yes\nP-0\t-0.5 -0.5 -0.5\n")
    assert (
        main(
            ["convert", "f", "g", "--format", "fairseq", "--to", "fairseq", "--drop-words", "noise"]
        )
        == 0
    )
    assert "P-0" not in (here / "g").read_text() and "SIL" not in (here / "g").read_text()
    old, new = (read(name, "fairseq")[0].hyps[0] for name in ("f", "g"))
    assert new.text == "yes" and new.scores["am"] == pytest.approx(old.scores["am"])
    # the source stays as it is
    assert json.loads((here / "n.jsonl").read_text().splitlines()[0])["hyps"][1]["extra"]["token"]
