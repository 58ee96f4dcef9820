import io
import sys

import pytest

from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text
from lmtools.types import Hypothesis, NBest

LISTS = [
    NBest("a", tuple(Hypothesis(t, {"am": -1.0}) for t in ["x y", "x y", "y", "z"])),
    NBest("b", (Hypothesis("w", {"am": -2.0}),)),
]


@pytest.fixture
def nbest(tmp_path):
    jsonl.write(LISTS, tmp_path / "n.jsonl")
    kaldi_text.write({"b": "ref b", "a": "ref a"}, tmp_path / "ref")
    return tmp_path


def test_there_and_back(nbest):
    assert main(["convert", f"{nbest}/n.jsonl", f"{nbest}/dir", "--to", "espnet2"]) == 0
    assert main(["convert", f"{nbest}/dir", f"{nbest}/back.jsonl.xz"]) == 0
    assert list(jsonl.read(nbest / "back.jsonl.xz")) == LISTS


def test_references_dedup_then_depth(nbest, capsys):
    assert (
        main(
            [
                "convert",
                f"{nbest}/n.jsonl",
                f"{nbest}/o.jsonl",
                "--ref",
                f"{nbest}/ref",
                "--dedup",
                "--depth",
                "2",
            ]
        )
        == 0
    )
    found = list(jsonl.read(nbest / "o.jsonl"))
    assert [(n.ref, [h.text for h in n.hyps]) for n in found] == [
        ("ref a", ["x y", "y"]),
        ("ref b", ["w"]),
    ]
    assert "2 utterances, 3 hypotheses" in capsys.readouterr().err


def test_best_as_kaldi_text_from_and_to_streams(nbest, capsys, monkeypatch):
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO((nbest / "n.jsonl").read_bytes()))
    )
    assert (
        main(["convert", "-", "-", "--format", "jsonl", "--to", "kaldi-text", "--depth", "1"]) == 0
    )
    assert capsys.readouterr().out == "a x y\nb w\n"


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["n.jsonl", "o.trn", "--to", "trn"], "--depth 1"),
        (["ref", "o.jsonl"], "ref: could be anything; name its format: jsonl, kaldi-nbest"),
        (["none", "o.jsonl"], "none: cannot read"),
        (["empty.jsonl", "o.jsonl"], "no utterances"),
        (["n.jsonl", "o.jsonl", "--ref", "short"], "1 of 2 utterances"),
        (["n.jsonl", "o.jsonl", "--ref-lines", "short"], "short: 1 lines for 2 lists in n.jsonl"),
        (["n.jsonl", "o.x", "--to", "nix"], "nix: no such format; known are jsonl, kaldi-nbest"),
        (
            ["n.jsonl", "o.x", "--to", "slf"],
            (
                "n.jsonl: format jsonl holds N-best lists, slf does not; choose a format of N-best"
                " lists"
            ),
        ),
        (
            ["n.jsonl", "o.x", "--to", "jsonl:x=1"],
            "format 'jsonl' takes no option 'x'; its options are: none",
        ),
        (
            ["n.jsonl", "o.x", "--to", "fairseq:lenpen"],
            "fairseq:lenpen: option lenpen: not NAME=VALUE; its options are: ",
        ),
        (["n.jsonl", "n.jsonl/o.x", "--to", "jsonl"], "n.jsonl/o.x: cannot write"),
        (
            ["n.jsonl", "o.jsonl", "--detokenise", "English"],
            "--detokenise English: not a language code; write en, de, fr",
        ),
        (["-", "o.jsonl"], "standard input is not looked into; name its format"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(nbest, arguments, cause, capsys, monkeypatch):
    monkeypatch.chdir(nbest)
    (nbest / "empty.jsonl").write_text("")
    (nbest / "short").write_text("a x\n")
    assert main(["convert", *arguments]) == 1
    message = capsys.readouterr().err
    assert cause in message and message.count("\n") == 1
    assert not list(nbest.glob("o.*"))


def test_depth_below_one_is_wrong_usage(nbest):
    with pytest.raises(SystemExit) as caught:
        main(["convert", f"{nbest}/n.jsonl", f"{nbest}/o.jsonl", "--depth", "0"])
    assert caught.value.code == 2


def test_case_and_references_by_line(nbest, capsys):
    (nbest / "lines").write_text("Ref A\n\n")
    options = ["--ref-lines", f"{nbest}/lines", "--case", "upper", "--depth", "1"]
    assert main(["convert", f"{nbest}/n.jsonl", f"{nbest}/o.jsonl", *options]) == 0
    assert [(n.ref, [h.text for h in n.hyps]) for n in jsonl.read(nbest / "o.jsonl")] == [
        ("Ref A", ["X Y"]),
        ("", ["W"]),
    ]


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
def test_detokenised(nbest, language, tokenised, want):
    """Hypotheses, references or both; scores and the rest stay."""
    lists = [NBest("a", (Hypothesis(tokenised, {"am": -1.0}),), tokenised)]
    jsonl.write(lists, nbest / "n.jsonl")
    for options, texts in (
        (["--detokenise", language], (want, tokenised)),
        (["--detokenise-ref", language], (tokenised, want)),
        (["--detokenise", language, "--detokenise-ref", language], (want, want)),
    ):
        assert main(["convert", f"{nbest}/n.jsonl", f"{nbest}/o.jsonl", *options]) == 0
        assert list(jsonl.read(nbest / "o.jsonl")) == [
            NBest("a", (Hypothesis(texts[0], {"am": -1.0}),), texts[1])
        ]


def test_detokenised_before_case_and_dedup(nbest):
    """What differs only in tokens is one hypothesis afterwards; pieces have been joined by the
    reader before.
    """
    (nbest / "n").write_text(
        "0 ||| the fin@@ ch , ||| F0= -1 ||| -1\n0 ||| the finch, ||| F0= -2 ||| -2\n"
    )
    options = [
        *("--format", "marian:bpe=subword_nmt", "--detokenise", "en", "--case", "sentence"),
        "--dedup",
    ]
    assert main(["convert", f"{nbest}/n", f"{nbest}/o.jsonl", *options]) == 0
    assert [hyp.text for hyp in next(jsonl.read(nbest / "o.jsonl")).hyps] == ["The finch,"]


def test_detokenising_needs_sacremoses(nbest, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    assert main(["convert", f"{nbest}/n.jsonl", f"{nbest}/o.jsonl", "--detokenise", "en"]) == 1
    message = capsys.readouterr().err
    assert (
        "--detokenise en needs sacremoses; pip install 'lmtools[mt]'" in message
        and message.count("\n") == 1
    )


def test_one_kind_of_references(nbest, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["convert", f"{nbest}/n.jsonl", f"{nbest}/o.jsonl", "--ref", "a", "--ref-lines", "b"])
    assert caught.value.code == 2 and "not allowed with" in capsys.readouterr().err


def test_a_format_with_options(nbest):
    """fairseq's total is base 2 and divided by length ** lenpen; both sides are told the same."""
    assert (
        main(
            ["convert", f"{nbest}/n.jsonl", f"{nbest}/o.log", "--to", "fairseq:lenpen=0", "--dedup"]
        )
        == 0
    )
    assert (
        main(["convert", f"{nbest}/o.log", f"{nbest}/same.jsonl", "--format", "fairseq:lenpen=0"])
        == 0
    )
    assert (
        main(["convert", f"{nbest}/o.log", f"{nbest}/other.jsonl", "--format", "fairseq:lenpen=1"])
        == 0
    )
    first = [
        [[h.scores["am"] for h in n.hyps] for n in jsonl.read(nbest / name)]
        for name in ("same.jsonl", "other.jsonl")
    ]
    assert first[0] == [
        pytest.approx([-1.0, -1.0, -1.0], rel=1e-6),
        pytest.approx([-2.0], rel=1e-6),
    ]
    assert first[1] != first[0]
