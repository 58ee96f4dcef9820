"""Equal hypotheses merged, marks dropped: `lmtools convert` and what is behind it."""

import pytest
from needs import needs

from lmtools.cli import main
from lmtools.formats import edits, jsonl
from lmtools.text import NORMALISERS
from lmtools.types import Hypothesis, NBest

BARE = NORMALISERS["librispeech"]


def scored(*rows):
    return tuple(Hypothesis(text, {"am": score}) for text, score in rows)


WHISPER = NBest(
    "u",
    scored(("Well, yes.", -1.0), ("no", -2.0), ("well yes", -3.0), ("Well yes!", -0.5), ("", -9.0)),
    "well yes",
)


def test_equal_words_stand_once_at_their_best_rank():
    hyps = scored(("a b", 0.0), ("c", -1.0), ("a  b ", -2.0), ("", -3.0), (" ", -4.0), ("c", -5.0))
    kept = edits.merge_equal(NBest("u", hyps, "r"), str)
    assert kept == NBest("u", (hyps[0], hyps[1], hyps[3]), "r")


def test_the_best_score_stays_as_it_was():
    kept = edits.merge_equal(WHISPER, BARE)
    assert kept.hyps == (WHISPER.hyps[3], WHISPER.hyps[1], WHISPER.hyps[4])
    hyps = tuple(Hypothesis(h.text, {**h.scores, "lm": 0.0}) for h in WHISPER.hyps)
    kept = edits.merge_equal(NBest("u", hyps), BARE)
    assert kept.hyps == (hyps[0], hyps[1], hyps[4])  # what is better nobody knows: the first
    hyps = tuple(
        Hypothesis(h.text, {**h.scores, "lm": 0.0, "total": -h.scores["am"]}) for h in hyps
    )
    kept = edits.merge_equal(NBest("u", hyps), BARE)
    assert kept.hyps == (hyps[2], hyps[1], hyps[4])


@pytest.fixture
def convert(tmp_path, capsys):
    def run(nbests, *options):
        jsonl.write(nbests, tmp_path / "n.jsonl")
        status = main(["convert", f"{tmp_path}/n.jsonl", f"{tmp_path}/o.jsonl", *options])
        printed = capsys.readouterr().err
        return (list(jsonl.read(tmp_path / "o.jsonl")) if status == 0 else []), printed

    return run


def test_lists_are_merged_before_they_are_cut(convert):
    (found,), printed = convert([WHISPER], "--depth", "2", "--dedup", "normalised")
    assert found.hyps == (WHISPER.hyps[3], WHISPER.hyps[1])
    assert ", 2 (in 1 lists) merged" in printed


def test_normaliser_options_say_what_is_equal_and_what_is_written(convert):
    options = "--dedup", "normalised"
    (found,), _ = convert([WHISPER], *options, "--normaliser", "librispeech")
    assert [hyp.text for hyp in found.hyps] == ["well yes", "no", ""]
    (found,), _ = convert([WHISPER], *options, "--punctuation", "strip")
    assert [hyp.text for hyp in found.hyps] == ["Well yes", "no", "well yes", ""]
    (found,), _ = convert([WHISPER], "--dedup")
    assert found == WHISPER


def test_marks_are_told(convert):
    nbest = NBest(
        "u",
        scored(("[Music playing]", -1.0), ("♪ no no no", -2.0), ("(sighs) well", -3.0)),
        "well [laughter]",
    )
    (found,), printed = convert([nbest], "--drop-marks")
    assert [hyp.text for hyp in found.hyps] == ["", "no no no", "well"] and found.ref == "well"
    assert ", 4 marks dropped" in printed


@needs("networks")
def test_merged_hypotheses_of_a_pool_are_of_all_their_systems(tmp_path, convert, capsys):
    """Votes and networks are the same with --dedup and without it."""
    outputs = {"a": "x y\nz\n", "b": "x w\nz\n", "c": "x y\nv\n"}
    for name, text in outputs.items():
        (tmp_path / f"{name}.txt").write_text(text)
    pool = ",".join(f"{tmp_path}/{name}.txt" for name in outputs)
    assert main(["convert", pool, f"{tmp_path}/p.jsonl", "--format", "systems"]) == 0
    found, _ = convert(list(jsonl.read(tmp_path / "p.jsonl")), "--dedup")
    votes = [[(hyp.text, *hyp.scores.values()) for hyp in nbest.hyps] for nbest in found]
    assert votes == [[("x y", 1, 0, 1), ("x w", 0, 1, 0)], [("z", 1, 1, 0), ("v", 0, 0, 1)]]
    for name in ("p", "o"):
        command = ["network", "build", "--nbest", f"{tmp_path}/{name}.jsonl", "--to", "wcn"]
        assert main([*command, "--out", f"{tmp_path}/{name}.wcn"]) == 0
    assert (tmp_path / "o.wcn").read_text() == (tmp_path / "p.wcn").read_text()
