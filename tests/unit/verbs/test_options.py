"""Options: groups, the normaliser, whole names."""

import ast
from pathlib import Path

import pytest

from lmtools import cli
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


@pytest.mark.parametrize(
    "command", ["lattice rescore l --nbest-o o", "tune --nbest n --out w --fol 5", "score --writ"]
)
def test_an_option_is_given_by_its_whole_name(command, capsys):
    """So that a new option never changes what a command of before says."""
    with pytest.raises(SystemExit) as ended:
        parse(command.split())
    told = capsys.readouterr().err
    assert ended.value.code == 2 and "error: " in told
    assert "no option --" in told


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
