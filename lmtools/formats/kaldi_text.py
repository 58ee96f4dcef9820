"""Kaldi text: one utterance a line, `utt w1 w2 ...`; an id alone is an empty utterance."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.checks import Utterances, encodable, identifier
from lmtools.text.blocks import read_text

SUMMARY = "`utt w1 w2 ...`; one hypothesis an utterance"


def recognises(path: Path, first: str) -> bool:
    """Return False: any text could be Kaldi's."""
    return False


def rows(
    path, text: bool = True, repeated: str = "keep one of them"
) -> Iterator[tuple[int, str, str]]:
    """Yield (line number, utterance id, words); the id ends at a space or tab, words at any white
    space. UserError for a line without id or a repeated one, with the remedy `repeated`.
    """
    utterances = Utterances()
    for number, line in read_text(path, nul=True) if text else read_lines(path):
        utt, _, rest = line.replace("\t", " ", 1).partition(" ")
        where = f"{path}:{number}"
        if not utt:
            raise UserError(
                f"{where}: no utterance id at the start of the line; write `utt w1 w2 ...`"
            )
        yield number, utterances.add(utt, where, repeated), " ".join(rest.split())


def read(path) -> dict[str, str]:
    """Read the text of each utterance by id, in the file's order."""
    return {utt: text for _, utt, text in rows(path)}


def write(texts: Mapping[str, str], path) -> None:
    """Write `texts`, single spaces between words, so that none can start a line."""
    write_rows(texts.items(), path)


def write_rows(rows: Iterable[tuple[str, str]], path) -> None:
    """Write pairs (utterance id, text) one by one, at once where `path` is standard output."""
    with atomic_text(path) as out:
        for utt, text in rows:
            where = f"{path}: utterance {utt!r}"
            out.write(" ".join([identifier(utt, where), *encodable(text, where).split()]) + "\n")
            if str(path) == "-":
                out.flush()
