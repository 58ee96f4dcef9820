"""`lmtools convert --drop-words` and `--normaliser`: texts of lists and arcs of lattices change,
and nothing about the old words stays.
"""

import json
from dataclasses import replace
from shlex import split

import pytest

from lmtools.cli import main
from lmtools.formats import edits, jsonl, lattices, read
from lmtools.types import Arc, Final, Hypothesis, Lattice, NBest

TIMES = "1 0.0 0.1\n1 0.1 0.2\n1 0.3 0.1\n1 0.4 0.5\n1 0.9 0.1"
TOKENS = {"token": "▁The ▁King ▁ca me SIL", "n": "4"}
FIRST = (
    Hypothesis("[noise] The KING, SIL came", {"am": -1.0}, {"times": TIMES}),
    Hypothesis("The King came SIL", {"am": -2.0}, TOKENS),
)
SECOND = (
    Hypothesis("SIL", {"am": -3.0}, {"times": "1 0.0 0.1"}),
    Hypothesis("yes  sir", {"am": -4.0}, {"token": "▁yes ▁sir"}),
)
EXTRA = {"timestamp_ref": "[0.1]", "version": "2"}
LISTS = [NBest("u1", FIRST, "the king <unk> came [noise]", EXTRA), NBest("u2", SECOND)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jsonl.write(LISTS, "n.jsonl")
    (tmp_path / "noise").write_text("[noise]\n\nSIL\n<unk>\n")
    return tmp_path


def convert(words: str, files="n.jsonl o.jsonl") -> int:
    return main(["convert", *split(f"{files} {words}")])


def texts(path="o.jsonl"):
    return [([hyp.text for hyp in one.hyps], one.ref) for one in jsonl.read(path)]


def first():
    return next(jsonl.read("o.jsonl")).hyps


def test_words_are_dropped_on_both_sides(here, capsys):
    assert convert("--drop-words noise") == 0
    assert capsys.readouterr().err == "o.jsonl: 2 utterances, 4 hypotheses, 6 words dropped\n"
    assert texts() == [
        (["The KING, came", "The King came"], "the king came"),
        (["", "yes  sir"], None),
    ]
    one, two = jsonl.read("o.jsonl")
    assert [hyp.scores["am"] for hyp in one.hyps] == [-1.0, -2.0]
    # those of the words that stay
    assert one.hyps[0].extra == {"times": "1 0.1 0.2\n1 0.3 0.1\n1 0.9 0.1"}
    assert one.hyps[1].extra == {"n": "4"} and one.extra == {"version": "2"}
    assert two.hyps == (Hypothesis("", {"am": -3.0}), SECOND[1])


def test_other_words_stand_for_some_once_normalised(here):
    (here / "map").write_text("king queen regnant\n\nyes yea\n")
    assert convert("--normaliser librispeech --map-words map") == 0
    queen = ["noise the queen regnant sil came", "the queen regnant came sil"]
    assert texts() == [(queen, "the queen regnant unk came noise"), (["sil", "yea sir"], None)]
    # of what stood there nothing is kept; without the normaliser KING, is another word
    assert first()[1].extra == {"n": "4"}
    assert convert("--map-words map") == 0
    assert first() == FIRST and texts()[1] == (["SIL", "yea sir"], None)


RAW_REF = "the king <unk> came [noise]"


@pytest.mark.parametrize(
    ("options", "hyps", "ref"),
    [
        ("librispeech --drop-words noise", ["the king came"] * 2, "the king came"),
        ("librispeech --drop-words noise --dedup", ["the king came"], "the king came"),
    ],
)
def test_the_normaliser_of_training_for_both_sides(here, options, hyps, ref):
    assert convert(f"--normaliser {options}") == 0
    assert texts()[0] == (hyps, ref)
    if "noise" in options:  # as many words: times stay
        assert first()[0].extra == {"times": "1 0.1 0.2\n1 0.3 0.1\n1 0.9 0.1"}


def test_what_the_recogniser_wrote_stays(here):
    """Beside the text of the normaliser, through --dedup and further conversions."""
    rows = {"Mr.  King, came": -2.0, "MR KING CAME": -1.0, "mister king": -3.0}
    rows["[Music] Mr King"] = -4.0
    hyps = tuple(Hypothesis(text, {"am": score}) for text, score in rows.items())
    jsonl.write([NBest("u1", hyps, "Mister King came")], "n.jsonl")
    (here / "map").write_text("mr mister\n")
    assert convert("--drop-marks --normaliser librispeech --map-words map --dedup") == 0
    best, other = first()
    assert (best.text, best.written) == ("mister king came", "MR KING CAME")
    assert (other.text, other.written, other.display) == ("mister king", None, "mister king")
    assert best.display == "MR KING CAME"
    assert '"written": "MR KING CAME", "scores": {"am": -1.0}' in (here / "o.jsonl").read_text()
    assert convert("--normaliser librispeech") == 0
    written = ["Mr.  King, came", "MR KING CAME", None, "[Music] Mr King"]
    assert [hyp.written for hyp in first()] == written
    assert convert("--case upper", "o.jsonl p.jsonl") == 0
    one, two, three, _ = next(jsonl.read("p.jsonl")).hyps
    assert (one.text, one.written) == ("MR KING CAME", "Mr.  King, came")
    # the words that it wrote are the text again
    assert two == Hypothesis("MR KING CAME", {"am": -1.0}) and three.written == "mister king"
    for keeping in ("--case sentence", "--drop-marks"):
        assert convert(keeping) == 0
        assert all(hyp.written is None for hyp in first())


def test_case_by_language(here):
    jsonl.write([NBest("u1", (Hypothesis("IŞIK İYİ"),), "IŞIK")], "n.jsonl")
    assert convert("--normaliser librispeech:language=tr") == 0
    assert texts() == [(["ışık iyi"], "ışık")]


@pytest.mark.parametrize(
    "option", ["--case upper", "--detokenise en", "--normaliser librispeech", "--map-words map"]
)
def test_nothing_about_other_words_stays_however_a_text_changes(here, option):
    stale = ("words", "tokens", "alignment", "result", "word_offsets", "segments")
    extra = dict.fromkeys(stale, "[1, 2]") | {"times": "1 0 1\n1 1 2", "rank": "3"}
    jsonl.write([NBest("u", (Hypothesis("The fox , x", {}, extra),))], "n.jsonl")
    (here / "map").write_text("fox dog\n")
    assert convert(option) == 0
    (hyp,) = first()
    assert hyp.text != "The fox , x" and hyp.extra == {"rank": "3"}
    # no old word ids beside the new text
    assert convert("--to kaldi-nbest", "o.jsonl dir") == 0
    assert sorted(file.name for file in (here / "dir").iterdir()) == ["words_text"]


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


def test_case_alone_is_of_hypotheses(here):
    assert convert("--case upper") == 0
    assert texts()[0] == (["[NOISE] THE KING, SIL CAME", "THE KING CAME SIL"], RAW_REF)


def test_written_times_are_those_of_the_words_left(here):
    rows = ("0.00 0.10 SIL 0.9", "0.10 0.25 Yes 0.8", "0.50 0.10 SIL")
    (here / "a.ctm").write_text("".join(f"u1 1 {row}\n" for row in rows))
    assert convert("--to ctm --drop-words noise --case lower", "a.ctm b.ctm") == 0
    assert (here / "b.ctm").read_text() == "u1 1 0.10 0.25 yes 0.8\n"


MISTAKES = {
    "--drop-words two": "two:2: 2 words on a line; write one a line",
    "--drop-words none": "none:1: no words; write those to drop, one a line",
    "--map-words none": "none:1: no words; write a line `mr mister` for each",
    "--map-words one": "one:2: 'yes' alone; write what stands for it after it",
    "--map-words twice": "twice:2: 'yes' a second time; leave one line",
    "--normaliser cased --case sentence": "--case sentence: is no option of the normaliser; leave",
    "--normaliser libri": "normaliser libri: none is called 'libri'; known are none, ",
    "--normaliser cased:x=y": "normaliser cased:x=y: there is no option 'x';"
    " its options are: case=keep|lower",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes(here, capsys, words):
    for name, content in {"two": "SIL\na b", "none": "", "one": "no nay\nyes"}.items():
        (here / name).write_text(f"{content}\n")
    (here / "twice").write_text("yes yea\nyes aye\n")
    assert convert(words) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and MISTAKES[words] in message
    assert not (here / "o.jsonl").exists()


def lattice(*words):
    arcs = [Arc(state, state + 1, word, {"am": -1.0 - state}) for state, word in enumerate(words)]
    return Lattice.of("u1", len(words) + 1, 0, arcs, [Final(len(words), {"am": 0.0})])


def test_lattices(here, capsys):
    lattices.write([lattice("The", "[noise]", "KING,", None, "--")], "l.slf", "slf")
    assert convert("--drop-words noise --normaliser librispeech", "l.slf o.slf") == 0
    assert capsys.readouterr().err == "o.slf: 1 lattices, 5 arcs, 1 of them without their words\n"
    (changed,) = lattices.read("o.slf")
    assert changed.words == ("the", None, "king", None, None)
    assert changed.scores["am"].tolist() == [-1, -2, -3, -4, -5]
    lattices.write([lattice("twenty-one")], "l.slf", "slf")
    assert convert("--punctuation strip", "l.slf p.slf") == 1
    cause = "lattice 'u1': 'twenty-one' becomes 'twenty one'; an arc holds one word; take lists"
    assert cause in capsys.readouterr().err and not (here / "p.slf").exists()


def test_an_arc_of_another_word_has_no_variant_of_the_old_one(here):
    """As `king(2)`, the second pronunciation, whose number says nothing of other words."""
    words, variants = ("king", "sir", None), ("2", "3", "")
    arcs = [
        Arc(state, state + 1, word, {"am": -1.0}, {"variant": variant} if variant else {})
        for state, (word, variant) in enumerate(zip(words, variants, strict=True))
    ]
    (here / "map").write_text("king queen\n")
    lattices.write([Lattice.of("u1", 4, 0, arcs, [Final(3)])], "l.slf", "slf")
    assert convert("--to slf --map-words map", "l.slf o.slf") == 0
    (changed,) = lattices.read("o.slf", "slf")
    pairs = list(zip(changed.words, changed.extra["variant"], strict=True))
    assert ("queen", "") in pairs and ("sir", "3") in pairs


def test_what_a_format_keeps_of_tokens_goes_with_them(here):
    """fairseq's token scores, ESPnet's pieces: written again, they are not those of other words."""
    rows = ("S-0\ta", "H-0\t-0.5\tSIL yes", "D-0\t-0.5\tSIL yes", "P-0\t-0.5 -0.5 -0.5")
    (here / "f").write_text("".join(f"{row}\n" for row in rows))
    assert convert("--format fairseq --drop-words noise", "f g.jsonl") == 0
    (old,), (new,) = (read(name)[0].hyps for name in ("f", "g.jsonl"))
    assert (new.text, new.scores) == ("yes", old.scores) and "P" in old.extra and not new.extra
    assert json.loads((here / "n.jsonl").read_text().splitlines()[0])["hyps"][1]["extra"]["token"]
