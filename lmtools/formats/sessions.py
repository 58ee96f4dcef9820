"""Sessions: which utterances of lists follow each other, and in which order."""

import re
from collections.abc import Sequence

from lmtools.base.errors import UserError
from lmtools.formats import kaldi_text
from lmtools.types import NBest

SESSION = "session"  # extra of an utterance
TIMES = re.compile(r"(\S+) (\d+(?:\.\d+)?) (\d+(?:\.\d+)?)")  # of Kaldi's segments, behind the id
NUMBER = re.compile(r"[-_][^-_]*$")


def find_sessions(nbests: Sequence[NBest], path: str | None = None) -> list[list[int]]:
    """Return the sessions of lists, each the places of its lists in order: those of a file of
    Kaldi's (`segments`: a recording by time; `utt2spk` or the like: in the lists' order), or by the
    extra `session` of the lists, or else by their ids up to the last `-` or `_`, as LibriSpeech
    has it (speaker-chapter-utterance).

    UserError for an utterance that the file, or some of the lists, say nothing of.
    """
    if path:
        names, times = read_sessions(path)
        if unknown := [nbest.utt for nbest in nbests if nbest.utt not in names]:
            raise UserError(f"{path}: has no session of {unknown[0]!r}; give that of these lists")
    else:
        names, times = name_sessions(nbests), {}
    sessions: dict[str, list[int]] = {}
    for place, nbest in enumerate(nbests):
        sessions.setdefault(names[nbest.utt], []).append(place)
    for session in sessions.values():
        session.sort(key=lambda place: times.get(nbests[place].utt, 0.0))
    return list(sessions.values())


def name_sessions(nbests: Sequence[NBest]) -> dict[str, str]:
    """Return the session of each utterance, by its extra or its id."""
    said = {nbest.utt: nbest.extra[SESSION] for nbest in nbests if SESSION in nbest.extra}
    if said and len(said) < len(nbests):
        silent = next(nbest.utt for nbest in nbests if nbest.utt not in said)
        raise UserError(f"utterance {silent!r} has no {SESSION}, others have; give it to all")
    return said or {nbest.utt: NUMBER.sub("", nbest.utt) for nbest in nbests}


def read_sessions(path: str) -> tuple[dict[str, str], dict[str, float]]:
    """Read the session of each utterance, and its begin in seconds if the file has times."""
    rows = kaldi_text.read(path)
    matches = {utt: TIMES.fullmatch(row) for utt, row in rows.items()}
    if rows and all(matches.values()):
        names = {utt: match[1] for utt, match in matches.items() if match}
        return names, {utt: float(match[2]) for utt, match in matches.items() if match}
    if wrong := [utt for utt, row in rows.items() if len(row.split()) != 1]:
        raise UserError(
            f"{path}: {wrong[0]!r} has {rows[wrong[0]]!r}; give Kaldi's segments, or a session an"
            " utterance as in utt2spk"
        )
    return rows, {}
