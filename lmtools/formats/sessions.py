"""Sessions: which utterances of lists follow each other, and in which order."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.formats import kaldi_text
from lmtools.types import EMPTY, SESSION, NBest

TIMES = re.compile(r"(\S+) (\d+(?:\.\d+)?) (\d+(?:\.\d+)?)")  # of Kaldi's segments, behind the id
NUMBER = re.compile(r"[-_][^-_]*$")


def find_sessions(nbests: Sequence[NBest], path: str | None = None) -> list[list[int]]:
    """Return the sessions of lists, the places of each in order: those of a file of Kaldi's
    (`segments`, by time; `utt2spk` or the like), of the extra `session`, or of ids up to the last
    `-` or `_`. UserError for an utterance that file or lists say nothing of.
    """
    names = SessionNames(path, {} if path else read_extras(nbests))
    sessions: dict[str, list[int]] = {}
    for place, nbest in enumerate(nbests):
        sessions.setdefault(names.of(nbest.utt), []).append(place)
    for session in sessions.values():
        order = names.order([nbests[place].utt for place in session])
        session[:] = [session[rank] for rank in order]
    return list(sessions.values())


def join_texts(
    texts: Mapping[str, str], nbests: Sequence[NBest], path: str | None = None
) -> dict[str, str]:
    """Return texts by session, those of its utterances joined in order; sessions are those of
    `find_sessions`. A session none of whose utterances has a text is not there.
    """
    names = SessionNames(path, {} if path else read_extras(nbests))
    joined = {}
    for places in find_sessions(nbests, path):
        utts = [nbests[place].utt for place in places]
        if said := [texts[utt] for utt in utts if utt in texts]:
            joined[names.of(utts[0])] = " ".join(filter(None, said))
    return joined


class SessionNames:
    """The session and begin in seconds of each utterance: of a file, else `given`, else by ids."""

    def __init__(self, path: str | None, given: Mapping[str, str] = EMPTY):
        self.path = path
        self.given, self.times = read_sessions(path) if path else (given, {})

    def of(self, utt: str) -> str:
        """Return the session of an utterance; UserError where the file has none."""
        if self.path and utt not in self.given:
            raise UserError(f"{self.path}: has no session of {utt!r}; give that of these lists")
        return self.given.get(utt) or NUMBER.sub("", utt)

    def order(self, utts: Sequence[str]) -> list[int]:
        """Return the places of a session's utterances by time, else by numbers in sorted ids."""
        places = range(len(utts))
        if not self.times and list(utts) == sorted(utts):
            return sorted(places, key=lambda place: split_numbers(utts[place]))
        return sorted(places, key=lambda place: self.times.get(utts[place], 0.0))


def split_numbers(utt: str) -> list[tuple[int, str]]:
    parts = re.split(r"([0-9]{1,18})", utt)
    return [(int(part), "") if n % 2 else (-1, part) for n, part in enumerate(parts)]


def read_extras(nbests: Sequence[NBest]) -> dict[str, str]:
    """Return the session of each utterance whose lists have one; UserError where only some do."""
    said = {nbest.utt: nbest.extra[SESSION] for nbest in nbests if SESSION in nbest.extra}
    if said and len(said) < len(nbests):
        silent = next(nbest.utt for nbest in nbests if nbest.utt not in said)
        raise UserError(f"utterance {silent!r} has no {SESSION}, others have; give it to all")
    return said


def read_sessions(path: str) -> tuple[dict[str, str], dict[str, float]]:
    """Read sessions by utterance, and begins if known; of a directory `segments` or `utt2spk`."""
    if Path(path).is_dir():
        held = [Path(path, name) for name in ("segments", "utt2spk") if Path(path, name).exists()]
        if not held:
            raise UserError(f"{path}: holds neither segments nor utt2spk; name a file of sessions")
        path = str(held[0])
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
