"""Every number that an option takes is looked at before anything is read: what is none is wrong
usage, in one line.
"""

import argparse

import pytest

from lmtools.cli import VERBS, main
from lmtools.verbs import numbers as types
from lmtools.verbs.parser import find_module, make_parser

WHOLE = {types.positive, types.from_zero, types.seed}
FROM_ONE = {types.positive}
SIGNED = {types.weight, types.named}


def parser_of(words: list[str]) -> argparse.ArgumentParser:
    """The parser of a verb, or of a verb's action."""
    parser = make_parser(words[0])
    for word in words[1:]:
        parser = next(
            a for a in parser._actions if isinstance(a, argparse._SubParsersAction)
        ).choices[word]
    return parser


def commands() -> list[list[str]]:
    """The words before the options of every verb and action."""
    actions = {verb: getattr(find_module(verb), "ACTIONS", ()) for verb in VERBS}
    return [[verb, *rest] for verb in VERBS for rest in [[a] for a in actions[verb]] or [[]]]


def numeric() -> list[tuple[list[str], str, object]]:
    """(words, option, type) of every option that takes a number."""
    return [
        (words, action.option_strings[0], action.type)
        for words in commands()
        for action in parser_of(words)._actions
        if action.type
    ]


CASES = numeric()


def test_no_option_has_a_type_of_its_own():
    """One place says what numbers are."""
    assert {kind.__module__ for _, _, kind in CASES} == {types.__name__}
    assert len(CASES) > 50


def wrong(kind) -> list[str]:
    texts = ["x", "nan", "1e400", "", "9" * 5000, "-1e400"]
    texts += [] if kind in SIGNED else ["-2"]
    texts += ["0"] if kind in FROM_ONE else []
    texts += ["1.5", "99999999999999999999"] if kind in WHOLE else []
    return [f"a={text}" for text in texts] if kind is types.named else texts


@pytest.mark.parametrize(
    ("words", "option", "kind"),
    CASES,
    ids=[" ".join([*words, option]) for words, option, _ in CASES],
)
def test_what_is_no_number_is_wrong_usage(words, option, kind, capsys):
    for text in wrong(kind):
        with pytest.raises(SystemExit) as caught:
            main([*words, f"{option}={text}"])
        said = capsys.readouterr().err.splitlines()
        assert caught.value.code == 2 and "Traceback" not in "".join(said)
        errors = [line for line in said if line.startswith(f"lmtools {' '.join(words)}: error: ")]
        assert errors == said[-1:] and option in errors[0] and len(errors[0]) < 200, text


@pytest.mark.parametrize(("kind", "text", "value"), [
    (types.positive, "1", 1), (types.from_zero, "0", 0), (types.seed, "4294967295", 2**32 - 1),
    (types.weight, "-1e-3", -1e-3),
    (types.amount, "0", 0.0),
    (types.named, "a=b=-2", ("a=b", -2.0)),
])  # fmt: skip
def test_what_is_one_is_taken(kind, text, value):
    assert kind(text) == value
