"""Options: groups, the normaliser, older spellings."""

import ast
from pathlib import Path

import pytest

from lmtools import cli
from lmtools.base.renamed_options import RENAMED, update_spelling
from lmtools.cli import parse
from lmtools.text import NORMALISERS, Normaliser
from lmtools.verbs.options import GROUPS
from lmtools.verbs.parser import Parser, add_normaliser, normaliser_of


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], Normaliser()),
        (["--normaliser", "librispeech"], NORMALISERS["librispeech"]),
        (
            ["--normaliser", "librispeech", "--case", "upper"],
            Normaliser("upper", "strip", "straight", "NFKC"),
        ),
        (
            ["--punctuation", "strip", "--unicode-form", "NFC"],
            Normaliser(punctuation="strip", unicode_form="NFC"),
        ),
    ],
)
def test_options_of_the_normaliser(words, expected):
    parser = Parser()
    add_normaliser(parser)
    assert normaliser_of(parser.parse_args(words)) == expected


def test_older_spellings_are_taken_with_a_warning(capsys):
    args = parse(["lattice", "rescore", "l", "--from=slf", "--text", "o", "--order", "3"])
    assert (args.format, args.text_out, args.max_ngram_order) == ("slf", "o", 3)
    assert capsys.readouterr().err.splitlines() == [
        f"lmtools lattice: warning: {old} is now {new}; the next version takes {new} alone"
        for old, new in (
            ("--from", "--format"),
            ("--text", "--text-out"),
            ("--order", "--max-ngram-order"),
        )
    ]


def test_older_spellings_of_the_export_to_espnet(capsys):
    words = ["export", "--tokens=t", "--lm", "m"]
    assert update_spelling(words, "lmtools.bridges.espnet") == [
        "export",
        "--token-list=t",
        "--lm",
        "m",
    ]
    assert capsys.readouterr().err.startswith(
        "lmtools.bridges.espnet: warning: --tokens is now --token-li"
    )


def test_an_option_that_has_gone(capsys):
    words = ["--no-arpa", "--order", "3"]
    assert update_spelling(words, "lmtools ngram") == ["--order", "3"]
    assert capsys.readouterr().err.startswith("lmtools ngram: warning: --no-arpa has gone: lmtools")
    assert update_spelling(words, "lmtools corpus") == words


def test_spellings_of_today_and_of_other_verbs_stay(capsys):
    for verb, words in (
        ("lmtools lattice", ["nbest", "l", "--out", "o"]),
        ("lmtools corpus", ["--text", "rescore"]),
    ):
        assert update_spelling(words, verb) == words
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", sorted(RENAMED.keys() - {"lmtools.bridges.espnet"}))
def test_no_verb_has_an_option_of_an_older_spelling(command, capsys):
    """Nor does its --help-all show one."""
    words = command.split()[1:]
    with pytest.raises(SystemExit):
        parse([*words, *(["nbest"] if words == ["lattice"] else []), "--help-all"])
    shown = capsys.readouterr().out.replace(",", " ").split()
    for old, new in RENAMED[command].items():
        assert new in shown and old not in shown


def test_an_option_is_declared_once():
    names = [name for options in GROUPS.values() for name in options]
    assert len(names) == len(set(names))


def test_verbs_do_not_import_each_other():
    folder = Path(cli.__file__).parent / "verbs"
    for path in folder.rglob("*.py"):
        own = path.relative_to(folder).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            verb = (
                (getattr(node, "module", None) or "").removeprefix("lmtools.verbs.").split(".")[0]
            )
            assert verb not in cli.VERBS or verb == own, (path, verb)
