"""Pronunciation dictionaries: `word SOUND SOUND ...` a line, as Kaldi's lexicon.txt and CMUdict."""

import re

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.text.phrases.tokens import fold

VARIANT = re.compile(r"\(\d+\)$")  # behind a word: `read(2)`
STRESS = re.compile(r"(?<=[^\d\W])[0-2]$")  # of a vowel: `AH0`
COMMENTS = (";;;", "#")
MOST = 10_000  # sounds, each of which becomes a character


def read_lexicon(path) -> dict[str, str]:
    """Read the first pronunciation of each word, without case, as one character a sound; stress is
    left out. UserError for a word without sounds, more than MOST sounds, and a file without words.
    """
    numbers: dict[str, int] = {}
    sounds: dict[str, str] = {}
    for number, line in read_lines(path):
        if not line.strip() or line.startswith(COMMENTS):
            continue
        word, *names = line.split()
        if not names:
            raise UserError(
                f"{path}:{number}: no sounds of {word!r:.40}; write a word and its sounds with"
                " blanks between them"
            )
        if len(numbers) > MOST:
            raise UserError(
                f"{path}:{number}: more than {MOST:,} different sounds; give a pronunciation"
                " dictionary, as CMUdict"
            )
        places = [numbers.setdefault(STRESS.sub("", name), len(numbers)) for name in names]
        sounds.setdefault(fold(VARIANT.sub("", word)), "".join(map(chr, places)))
    if not sounds:
        raise UserError(f"{path}: no words; give a pronunciation dictionary, as CMUdict")
    return sounds
