"""Options: groups, the normaliser, older spellings."""

import pytest

from lmtools.text import NORMALISERS, Normaliser
from lmtools.verbs.options import Parser, add_normaliser, normaliser_of


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
