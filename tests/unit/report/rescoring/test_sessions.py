"""Recordings whose segments are lists: reports count joined texts, as `evaluate --session`."""

import random

import pytest
from unit.report.conftest import collect_rescoring

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.evaluate.edits import align
from lmtools.evaluate.nbest import share_references, split_reference
from lmtools.formats import jsonl, kaldi_text
from lmtools.types import Hypothesis, NBest

REFS = {"a": "we see the sea again and again", "b": "blue finches sing all day"}
# the word "again" falls into two segments, "finches" on a border
SEGMENTS = {
    "a-1": (["we see the see", "we see the sea"], "a"),
    "a-2": (["again and", "and"], "a"),
    "a-3": (["again", "a gain", "gain"], "a"),
    "b-1": (["blue", "blue fins"], "b"),
    "b-2": (["finches sing old day", "sing all day", "finches sing all day"], "b"),
}


@pytest.fixture
def exp(tmp_path):
    """An experiment with the lists of segments, and what a system chose."""
    lists = [
        NBest(utt, tuple(Hypothesis(text, {"am": -1.0 - n}) for n, text in enumerate(texts)),
              extra={"session": session})
        for utt, (texts, session) in SEGMENTS.items()
    ]  # fmt: skip
    jsonl.write(lists, tmp_path / "data/test/nbest.jsonl")
    kaldi_text.write(REFS, tmp_path / "data/test/text")
    chosen = {utt: texts[-1] for utt, (texts, _) in SEGMENTS.items()}
    kaldi_text.write(chosen, tmp_path / "exp/rescore/last/test.txt")
    return tmp_path / "exp"


def test_a_report_counts_what_evaluate_counts(exp, capsys):
    (measured,) = collect_rescoring(exp).lists.sets
    first, oracle = measured.results["@first"], measured.results["@oracle"]
    assert first.texts == {
        "a": "we see the see again and again", "b": "blue finches sing old day"
    }  # fmt: skip
    assert oracle.texts["a"] == REFS["a"] and oracle.score == measured.oracle[-1] == 0
    assert first.score == measured.oracle[0] == pytest.approx(100 * 2 / 12)
    assert measured.sample.size.startswith("test: 2 recordings of 5 segments, 12 reference words")
    paths = [str(exp / "rescore/last/test.txt"), str(exp.parent / "data/test/nbest.jsonl")]
    for path, result in zip(paths, (measured.results["last"], first), strict=True):
        words = ["evaluate", "--session", "--ref", str(exp.parent / "data/test/text")]
        assert main([*words, "--hyp", path]) == 0
        assert f"WER {result.score:.2f}%" in capsys.readouterr().out
    assert main(["report", str(exp)]) == 0
    assert "2 recordings of 5 segments" in (exp / "report/RESULTS.md").read_text()


def test_a_text_of_some_sessions_has_not_the_others(exp):
    kaldi_text.write({"a": REFS["a"]}, exp.parent / "data/test/text")
    with pytest.raises(UserError, match="no reference"):
        collect_rescoring(exp)


def test_a_reference_is_parted_where_the_texts_are():
    parts = split_reference([*"abcdef"], [["a", "x"], [], ["d", "d", "e"], ["g"]])
    assert parts == [["a", "b"], [], ["c", "d", "e"], ["f"]]
    assert split_reference(["a"], [[], []]) == [["a"], []]
    draw = random.Random(3)
    for _ in range(200):
        ref = draw.choices("abc", k=draw.randrange(12))
        texts = [draw.choices("abc", k=draw.randrange(4)) for _ in range(4)]
        parts = split_reference(ref, texts)
        assert [word for part in parts for word in part] == ref
        alone = sum(align(p, t).counts.errors for p, t in zip(parts, texts, strict=True))
        said = [word for text in texts for word in text]
        assert alone == align(ref, said).counts.errors


def test_segments_share_the_reference_of_their_session():
    said = ["We saw", "", "the Sea,", "and left."]
    lists = [
        NBest(f"r-{n}", (Hypothesis(text),) if text else (), extra={"session": "r"})
        for n, text in enumerate(said)
    ]
    lists.append(NBest("s-1", (Hypothesis("x"),), extra={"session": "s-1"}))
    refs = {"r": "WE SAW THE SEA AND WE LEFT", "s-1": "A b", "t": "c"}
    shared = {"r-0": "WE SAW", "r-1": "", "r-2": "THE SEA", "r-3": "AND WE LEFT"}
    assert share_references(lists, refs) == {**shared, "s-1": "A b", "t": "c"}
    utts = {"r-0": "a", "r": "b"}  # of utterances, as before
    assert share_references([NBest("r-0", ())], utts) == utts
