import io
import math
import sys
from pathlib import Path
from shlex import split

import pytest

from lmtools.base.errors import install_extra
from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text
from lmtools.types import Hypothesis, NBest

LISTS = [
    NBest("a", tuple(Hypothesis(t, {"am": -1.0}) for t in ["x y", "x y", "y", "z"])),
    NBest("b", (Hypothesis("w", {"am": -2.0}),)),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jsonl.write(LISTS, "n.jsonl")
    kaldi_text.write({"b": "ref b", "a": "ref a"}, "ref")
    return tmp_path


def convert(words: str) -> int:
    return main(["convert", *split(words)])


def texts(path="o.jsonl"):
    return [(nbest.ref, [hyp.text for hyp in nbest.hyps]) for nbest in jsonl.read(path)]


def test_there_and_back(here):
    assert convert("n.jsonl dir --to espnet2") == convert("dir back.jsonl.xz") == 0
    assert list(jsonl.read("back.jsonl.xz")) == LISTS


def test_references_dedup_then_depth(here, capsys):
    assert convert("n.jsonl o.jsonl --ref ref --dedup --depth 2") == 0
    assert texts() == [("ref a", ["x y", "y"]), ("ref b", ["w"])]
    assert "2 utterances, 3 hypotheses" in capsys.readouterr().err


def test_lists_without_scores_are_told(here, capsys):
    (here / "words_text").write_text("a-1 x\na-2 y\n")
    assert convert("words_text o.jsonl") == 0
    assert capsys.readouterr().err == "o.jsonl: 1 utterances, 2 hypotheses, no scores\n"
    assert convert("n.jsonl o.jsonl") == 0 and "no scores" not in capsys.readouterr().err


def test_best_as_kaldi_text_from_and_to_streams(here, capsys, monkeypatch):
    stream = io.BytesIO((here / "n.jsonl").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    assert convert("- - --format jsonl --to kaldi-text --depth 1") == 0
    assert capsys.readouterr().out == "a x y\nb w\n"


KIND = "n.jsonl: format jsonl holds N-best lists, slf does not; choose a format of N-best lists"
MISTAKES = {
    "n.jsonl o.trn --to trn": "--depth 1",
    "ref o.jsonl": "ref: could be anything; name its format: kaldi-text, trn, ctm, or another of",
    "some.json o.jsonl": "could be anything; name its format: whisper, cloud, vosk, or another of",
    "some o.jsonl": "some: could be anything; name its format: kaldi-nbest, espnet2, srilm, or",
    "bars o.jsonl": "bars: could be anything; name its format: moses, marian, fairseq, or",
    "none o.jsonl": "none: cannot read",
    "empty.jsonl o.jsonl": "no utterances",
    "n.jsonl o.jsonl --ref short": "1 of 2 utterances",
    "n.jsonl o.jsonl --ref-lines short": "short: 1 lines for 2 lists in n.jsonl",
    "n.jsonl o.x --to nix": "nix: no such format; known are jsonl, kaldi-nbest",
    "n.jsonl o.x --to slf": KIND,
    "n.jsonl o.x --to jsonl:x=1": "format 'jsonl' takes no option 'x'; its options are: none",
    "n.jsonl o.x --to fairseq:lenpen": "fairseq:lenpen: option lenpen: not NAME=VALUE; its options",
    "n.jsonl n.jsonl/o.x --to jsonl": "n.jsonl/o.x: cannot write",
    "n.jsonl o.jsonl --detokenise English": "--detokenise English: not a language code; write en",
    "- o.jsonl": "standard input is not looked into; name its format",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_one_line_and_leave_nothing(here, words, capsys):
    (here / "empty.jsonl").write_text("")
    (here / "short").write_text("a x\n")
    (here / "some.json").write_text('{"say": 1}\n')
    (here / "bars").write_text("a ||| b\n")
    (here / "some").mkdir()
    (here / "some/text").write_text("")
    assert convert(words) == 1
    message = capsys.readouterr().err
    assert MISTAKES[words] in message and message.count("\n") == 1
    assert not list(here.glob("o.*"))


@pytest.mark.parametrize(
    ("options", "cause"), [("--depth 0", "--depth"), ("--ref a --ref-lines b", "not allowed with")]
)
def test_wrong_usage(here, options, cause, capsys):
    with pytest.raises(SystemExit) as caught:
        convert(f"n.jsonl o.jsonl {options}")
    assert caught.value.code == 2 and cause in capsys.readouterr().err


def test_case_and_references_by_line(here):
    (here / "lines").write_text("Ref A\n\n")
    assert convert("n.jsonl o.jsonl --ref-lines lines --case upper --depth 1") == 0
    assert texts() == [("Ref A", ["X Y"]), ("", ["W"])]


@pytest.mark.parametrize(
    ("language", "tokenised", "want"),
    [
        ("en", "I don &apos;t know , &quot; he said &quot; .", 'I don\'t know, "he said".'),
        (
            "en",
            "a well @-@ known $ 5 R &amp; D ( A &#124; B ) , the Jones &apos; house",
            "a well-known $5 R & D (A | B), the Jones' house",
        ),
        ("fr", "L&apos; homme qu&apos; il a vu , dit @-@ il .", "L'homme qu'il a vu, dit-il."),
        ("de", "&quot; Ja &quot; , sagte Hans &apos; Bruder :", '"Ja", sagte Hans \'Bruder:'),
        ("en", "", ""),
        ("en", "&amp;lt;", "&lt;"),
    ],
)
def test_detokenised(here, language, tokenised, want):
    """Hypotheses, references or both; scores and the rest stay."""
    jsonl.write([NBest("a", (Hypothesis(tokenised, {"am": -1.0}),), tokenised)], "n.jsonl")
    for options, hyp, ref in (
        ("--detokenise {0}", want, tokenised),
        ("--detokenise-ref {0}", tokenised, want),
        ("--detokenise {0} --detokenise-ref {0}", want, want),
    ):
        assert convert(f"n.jsonl o.jsonl {options.format(language)}") == 0
        assert list(jsonl.read("o.jsonl")) == [NBest("a", (Hypothesis(hyp, {"am": -1.0}),), ref)]


def test_detokenised_before_case_and_dedup(here):
    """What differs only in tokens is one afterwards; the reader joined pieces."""
    rows = ("the fin@@ ch , ||| F0= -1 ||| -1", "the finch, ||| F0= -2 ||| -2")
    (here / "n").write_text("".join(f"0 ||| {row}\n" for row in rows))
    options = "--format marian:bpe=subword_nmt --detokenise en --case sentence --dedup"
    assert convert(f"n o.jsonl {options}") == 0
    assert texts() == [(None, ["The finch,"])]


def test_detokenising_needs_sacremoses(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    assert convert("n.jsonl o.jsonl --detokenise en") == 1
    message = capsys.readouterr().err
    assert f"--detokenise en needs the package sacremoses; {install_extra('mt')}" in message
    assert message.count("\n") == 1


def test_a_format_with_options(here):
    """fairseq's total is base 2 and divided by length ** lenpen."""
    Path("o.log").write_text("H-0\t-1\ta b c\n")
    for power, bits in ((0, -1), (1, -4)):
        assert convert(f"o.log back.jsonl --format fairseq:lenpen={power}") == 0
        (nbest,) = jsonl.read("back.jsonl")
        assert nbest.hyps[0].scores["am"] == pytest.approx(bits * math.log(2))


@pytest.mark.parametrize(
    ("ids", "joined"),
    [
        ("spk1-a spk2-b spk2-c", "spk1-a"),
        ("spk1_a s-2-b", "spk1_a"),
        ("spk1-a b", None),
        ("spk1-a spk2-a s-b", None),
        ("spk1-b spk2-c", None),
    ],
)
def test_references_with_a_speaker_before_the_id(here, capsys, ids, joined):
    """ESPnet's ref.trn; joined only where every list finds one reference."""
    rows = "".join(f"ref {utt[-1]} ({utt})\n" for utt in ids.split())
    (here / "ref.trn").write_text(rows)
    assert convert("n.jsonl o.jsonl --ref ref.trn") == (joined is None)
    said = capsys.readouterr().err
    if joined:
        assert [ref for ref, _ in texts()] == ["ref a", "ref b"]
        assert said.startswith(
            f"n.jsonl: ids are joined without what stands before - or _ (a = {joined})\n"
        )
        unused = len(ids.split()) - 2
        assert (f"{unused} of 3 references not used" in said) == (unused > 0)
    else:
        assert "no reference" in said and said.count("\n") == 1


def test_lists_with_a_speaker_before_the_id(here):
    """ESPnet's hyp.trn beside the references of a Kaldi directory."""
    (here / "hyp.trn").write_text("x (spk1-a)\ny (spk2-b)\n")
    assert convert("hyp.trn o.jsonl --ref ref") == 0
    assert texts() == [("ref a", ["x"]), ("ref b", ["y"])]
