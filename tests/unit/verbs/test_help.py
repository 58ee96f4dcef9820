"""--help shows what most users need, --help-all everything."""

import argparse
import re

import pytest

from lmtools.cli import VERBS, main
from lmtools.verbs.help import HelpParser, Rare
from lmtools.verbs.parser import Parser, make_parser

MOST = 14  # options in --help, beside those of the help itself


def parsers(verb: str) -> dict[str, Parser]:
    """The parser of a verb and those of its actions, by their words."""
    parser = make_parser(verb)
    made = {verb: parser}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            made |= {f"{verb} {name}": sub for name, sub in action.choices.items()}
    return made


def printed(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as done:
        main([*words])
    assert done.value.code == 0
    return capsys.readouterr().out


def name(action: argparse.Action) -> str:
    words = [word for word in action.option_strings if word[:5] != "--no-"]
    return words[-1]


def named(text: str) -> set[str]:
    """The options that have a line of their own in a help."""
    return set(re.findall(r"^  (?:-h, )?(--[\w-]+)", text, re.MULTILINE))


@pytest.mark.parametrize("verb", VERBS)
def test_help_is_short_and_help_all_complete(verb, capsys):
    for words, parser in parsers(verb).items():
        short, whole = (printed(capsys, *words.split(), f"--help{end}") for end in ("", "-all"))
        options = [action for action in parser._actions if action.option_strings]
        shown = {name(action) for action in options if action.help != argparse.SUPPRESS}
        assert named(whole) == shown
        assert named(short) <= shown and len(named(short)) <= MOST + 2
        assert {name(action) for action in options if action.required} <= named(short)
        hidden = len(shown - named(short))
        more = re.search(r"^(\d+) more options?: (.*)$", short, re.MULTILINE)
        assert int(more[1]) == hidden if hidden else more is None
        assert not hidden or more[2] == f"lmtools {words} --help-all"
        assert "more option" not in whole


def test_a_required_option_is_never_rare():
    parser = HelpParser(prog="p")
    parser.add_argument("--needed", required=True, help=Rare("r"))
    parser.add_argument("--other", help=Rare("o"))
    assert named(parser.format_help()) == {"--help", "--needed"}
    assert "--other" not in parser.format_usage()
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--either", help=Rare("e"))
    assert named(parser.format_help()) == {"--help", "--needed", "--either"}
    group.required = False
    assert parser.parse_args(["--needed", "1", "--other", "2"]).other == "2"


@pytest.mark.parametrize(
    ("command", "usage", "error"),
    [
        ("resc", "VERB", "no verb 'resc'; did you mean rescue or rescore?"),
        ("score --nbst f", "score", "no option --nbst; did you mean --nbest?"),
        ("score --nbest f --lm l --out o extra", "score", "unrecognized arguments: extra"),
        ("show --nbest f --colour", "show", "no option --colour"),
        ("lattice nbest f --outt o", "lattice nbest", "no option --outt; did you mean --out?"),
        ("lattice nbst", "lattice", "; did you mean nbest?"),
        ("show l.jsonl", "show", "the following arguments are required: --nbest"),
    ],
)
def test_wrong_usage_is_answered_with_the_usage_and_what_may_be_meant(
    command, usage, error, capsys
):
    with pytest.raises(SystemExit) as done:
        main(command.split())
    said = capsys.readouterr().err
    assert done.value.code == 2 and error in said.splitlines()[-1]
    assert said.startswith(f"usage: lmtools {usage} ")


def test_without_a_verb_the_verbs_are_listed(capsys):
    with pytest.raises(SystemExit) as done:
        main([])
    alone = capsys.readouterr().out
    assert done.value.code == 2 and alone == printed(capsys, "--help")
