"""sclite's trn: an utterance a line, its id in parentheses last, `blue finch sings (zed1)`.

Only plain words are read and written: `{ um / uh }` alternations, `(optional)` words and the null
word `@` are markup that sclite scores in its own way, and are refused. Lines that start with `;;`
are comments.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.checks import encodable, first_time, identifier

SUMMARY = "sclite, CMU Sphinx: words, then the id in parentheses; one hypothesis an utterance"
# CMU Sphinx has marks of sentences, and scores behind ids
LINE = re.compile(r"(?:<s> )?(.*?)(?:</s> )?\(([^()\s]+)(?: -?[0-9]+)?\)\s*")
SUFFIXES = {".trn", ".transcription", ".match"}
# What sclite takes for more than letters: braces, a word in parentheses, the null word, a final
# star, `word;tag`, a backslash.
MARKUP = re.compile(r".*[{}].*|\(.*\)|@|.+\*|.*[;\\].*")


def recognises(path: Path, first: str) -> bool:
    """Return whether the name is a trn file's, or Sphinx's; Kaldi text may end alike."""
    return not SUFFIXES.isdisjoint(path.suffixes)


def read(path) -> dict[str, str]:
    """Read the text by utterance id; UserError for no trn, and for markup."""
    texts: dict[str, str] = {}
    for number, line in read_lines(path):
        if not line.strip() or line.startswith(";;"):
            continue
        where = f"{path}:{number}"
        match = LINE.fullmatch(line)
        if not match:
            raise UserError(
                f"{where}: no utterance id at the end of the line; write `w1 w2 ... (utt)`"
            )
        first_time(identifier(match[2], where), texts, where)
        texts[match[2]] = " ".join(plain(match[1], where))
    return texts


def write(texts: Mapping[str, str], path) -> None:
    """Write `texts`; UserError for words that sclite would not take literally."""
    with atomic_text(path) as out:
        for utt, text in texts.items():
            where = f"{path}: utterance {utt!r}"
            if "(" in identifier(utt, where) or ")" in utt:
                raise UserError(f"{where}: trn ids hold no parentheses; rename it")
            out.write(" ".join([*plain(encodable(text, where), where), f"({utt})"]) + "\n")


def plain(text: str, where: str) -> list[str]:
    """Return the words of `text`; UserError if one is markup."""
    words = text.split()
    for word in words:
        if MARKUP.fullmatch(word):
            raise UserError(f"{where}: {word!r} is markup in trn; replace it by plain words")
    return words
