"""Kaldi text: one utterance a line, `utt w1 w2 ...`; an id alone is an empty utterance."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.checks import Utterances, encodable, identifier
from lmtools.text.blocks import read_text
from lmtools.types import SPEAKER, NBest

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


FEW = 3  # ids that tell nothing of whether speakers come again, and no p says much of
HEAD = re.compile(r"(?!(?:19|20)\d{6}[-_])([^-_]+)[-_].")  # what may be a speaker: no date


def find_speakers(
    utts: Collection[str], said: Mapping[str, str] | None, source, remedy: str
) -> dict[str, str]:
    """Return the speaker of each utterance: as `said` (by utt2spk, lists or an stm), or else what
    ids have before their first `-` or `_` where that can be one, as Kaldi and LibriSpeech write it:
    all have it, and speakers come again; of one speaker with a digit in it. UserError with the
    `remedy` where nobody says who speaks.
    """
    if said:
        wrong = next((utt for utt in utts if not said.get(utt)), None)
        if wrong is not None:
            what = "several speakers in" if wrong in said else "no speaker of"
            raise UserError(f"{source}: {what} {wrong!r}; {remedy}")
        return {utt: said[utt] for utt in utts}
    heads = {utt: match[1] if (match := HEAD.match(utt)) else "" for utt in utts}
    if len(heads) == 1:
        return {utt: head or utt for utt, head in heads.items()}
    names = {*heads.values()}
    alone = len(names) == 1 and not any(map(str.isdigit, *names))
    if "" in names or alone or (len(heads) > FEW and 2 * len(heads) < 3 * len(names)):
        utt = next((utt for utt, head in heads.items() if not head), next(iter(heads), ""))
        raise UserError(f"{source}: ids such as {utt!r} do not tell who speaks; {remedy}")
    return heads


def list_speakers(nbests: Iterable[NBest]) -> dict[str, str]:
    """Return the speakers that lists name, by utterance."""
    return {nbest.utt: nbest.extra[SPEAKER] for nbest in nbests if SPEAKER in nbest.extra}
