from functools import partial
from pathlib import Path

import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import FORMATS, detect, lists, read
from lmtools.score import Sources
from lmtools.types import Hypothesis, NBest

LISTS = [
    NBest("s_a", (Hypothesis("x y"), Hypothesis("x")), "x y"),
    NBest("s_b", (Hypothesis(""),), "z"),
]
ONE_BEST = [NBest("s_a", (Hypothesis("x y"),)), NBest("s_b", (Hypothesis(""),))]

READ_ONLY = (
    *("nemo", "wenet", "cloud", "sherpa-onnx", "stm", "manifest"),
    *("fairseq", "icefall", "systems", "vosk", "whisper"),
)


@pytest.mark.parametrize("name", READ_ONLY)
def test_what_only_its_own_program_writes(tmp_path, name):
    with pytest.raises(UserError, match="f: this format is read, not written; write jsonl"):
        FORMATS[name].write(iter(ONE_BEST), tmp_path / "f")
    assert FORMATS[name].summary and not (tmp_path / "f").exists()


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


@pytest.mark.parametrize(
    ("refs", "message"),
    [
        ({"s_a": "x"}, "n: 1 of 2 utterances have no reference in r .first .s_b..; exchange"),
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


REFS = ["zero", "one", "two"]


@pytest.mark.parametrize(
    ("utts", "expected"),
    [
        (["2", "0", "1"], ["two", "zero", "one"]),  # of fairseq or Moses
        (["3", "1", "2"], ["two", "zero", "one"]),  # numbered from 1
        (["2", "0"], ["two", "zero"]),  # a sentence that has no list
        (["00002", "00000", "00001"], ["two", "zero", "one"]),
        (["7", "12", "40"], REFS),
        (["utt2", "utt0", "utt1"], REFS),
        (["2", "1"], "r: 3 lines for 2 lists in n; give one line each"),
        (["7", "40", "12"], "n: sentence 12 follows 40, and lines are joined in order; sort"),
    ],
)
def test_lines_belong_to_the_numbers_of_lists(utts, expected, tmp_path):
    nbests = [NBest(utt, (Hypothesis("h"),)) for utt in utts]
    attached = partial(lists.attach_lines, nbests, {"r": REFS}, "n")
    sources = partial(Sources("r", REFS).pair, nbests, 0, "n")
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            attached()
        return
    assert [nbest.ref for nbest in attached()] == expected
    assert len(utts) < 3 or [source for source, _ in sources()] == expected
    (tmp_path / "r").write_text("zero\none\ntwo\n")
    if [*map(int, filter(str.isdecimal, utts))] != sorted(map(int, filter(str.isdecimal, utts))):
        with pytest.raises(UserError, match="sort the lists by number"):
            list(lists.join_refs(nbests, None, tmp_path / "r", "n"))
        with pytest.raises(UserError, match="sort the lists by number"):
            Sources("r", [*REFS, "three", "four"]).pair(nbests, 1, "n")


def test_attach_lines_joins_by_order():
    assert [
        (nbest.utt, nbest.ref) for nbest in lists.attach_lines(LISTS, {"r": ["one", ""]}, "n")
    ] == [("s_a", "one"), ("s_b", "")]
    with pytest.raises(UserError, match="r: 1 lines for 2 lists in n; give one line each"):
        lists.attach_lines(LISTS, {"r": ["one"]}, "n")
