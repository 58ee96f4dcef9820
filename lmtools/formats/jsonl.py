"""nbest.jsonl, which every other format converts to and from; and the journal of lists that are
made already, so that a run that is killed goes on.

One utterance a line: `{"utt": "a1", "ref": "blue finch", "hyps": [{"text": "blue fins", "scores":
{"am": -12.3}}]}`, hypotheses best first. `ref` may be absent or null (unknown; an empty reference
is ""), and so may `scores`; a list of texts is of several references. Scores are natural
logarithms, higher is better, and every hypothesis of a file has the same components. A hypothesis
whose `text` was rewritten for a language model has what the recogniser wrote as `written`.
An utterance may name its `session`, which becomes one of its extras. Utterance and hypotheses may
have an `extra`, an object of texts: what another format held besides, kept so that it can be
written back. Lines of white space only are skipped.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from lmtools.base.errors import UserError
from lmtools.base.files import cannot, raw_lines, read_lines
from lmtools.base.grammar import Finite, check_texts, fit, parse_json
from lmtools.base.seal import SEAL, digest
from lmtools.formats.checks import Utterances, components, identifier, write_lines
from lmtools.types import EMPTY, SESSION, SPEAKER, Hypothesis, NBest

SUMMARY = "one utterance a line with reference, hypotheses and their scores"
TITLES = {"hyps": "hypothesis", "scores": "score", "extra": "extra"}


class HypothesisObject(msgspec.Struct, forbid_unknown_fields=True):
    """What a hypothesis is in a line."""

    text: str
    written: str | UnsetType = UNSET
    scores: Mapping[str, Finite] = EMPTY
    extra: Mapping[str, str] = EMPTY


class ListObject(msgspec.Struct, forbid_unknown_fields=True):
    """What a line holds; several references are a list of them."""

    utt: str
    hyps: list[HypothesisObject]
    ref: str | Annotated[list[str], msgspec.Meta(min_length=1)] | UnsetType | None = UNSET
    session: str | UnsetType = UNSET
    speaker: str | UnsetType = UNSET
    extra: Mapping[str, str] = EMPTY


DECODER = msgspec.json.Decoder(ListObject)


def recognises(path: Path, first: str) -> bool:
    """Return whether the name, or else the first line, is that of an nbest.jsonl."""
    return ".jsonl" in path.suffixes or (
        first.startswith("{") and '"utt"' in first and '"hyps"' in first
    )


def read(path) -> Iterator[NBest]:
    """Read the N-best lists in `path` (.gz, .xz, `-`) line by line; UserError with the line."""
    utterances, names = Utterances(), None
    for number, text in read_lines(path):
        if text.strip():
            where = f"{path}:{number}"
            nbest = as_nbest(parse_line(text, where), where)
            utterances.add(nbest.utt, where)
            names = components(nbest, names, where)
            yield nbest


def parse_line(text: str, where: str) -> ListObject:
    """Parse a line. msgspec takes a key that comes twice in an object, and tells little of what is
    wrong: Python's reader has another look at a line with more keys than the values have, and at
    one with an error.
    """
    try:
        line = DECODER.decode(text)
        if text.count('":') == count_keys(line):
            return line
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass
    return fit_line(parse_json(text, where), where)


def count_keys(line: ListObject) -> int:
    """Return the number of keys that the line had if each came once."""
    count = 2 + sum(value is not UNSET for value in (line.ref, line.session, line.speaker))
    count += 0 if line.extra is EMPTY else 1 + len(line.extra)
    for hyp in line.hyps:
        count += 1 + (hyp.written is not UNSET)
        count += 0 if hyp.scores is EMPTY else 1 + len(hyp.scores)
        count += 0 if hyp.extra is EMPTY else 1 + len(hyp.extra)
    return count


def fit_line(tree, where: str) -> ListObject:
    line = fit(tree, ListObject, where, TITLES, whole="the line")
    check_texts(tree, where, TITLES)
    return line


def as_nbest(line: ListObject, where: str) -> NBest:
    extra = line.extra
    for name, value in ((SESSION, line.session), (SPEAKER, line.speaker)):
        if value is not UNSET:
            if extra.get(name, value) != value:
                raise UserError(f"{where}: {name!r} differs from that in 'extra'; leave one out")
            extra = {**extra, name: value}
    ref, *more = line.ref if isinstance(line.ref, list) else [line.ref]
    hyps = tuple(
        [
            Hypothesis(h.text, h.scores, h.extra, None if h.written is UNSET else h.written)
            for h in line.hyps
        ]
    )
    utt = identifier(line.utt, where)
    return NBest(utt, hyps, None if ref is UNSET else ref, extra, more_refs=tuple(more))


def utterance(tree, where: str) -> NBest:
    """Return the N-best list that a parsed line describes."""
    return as_nbest(fit_line(tree, where), where)


def write(nbests: Iterable[NBest], path) -> None:
    """Write N-best lists; UserError, and nothing written, for what `read` would refuse."""
    write_lines(nbests, path, lambda nbest, where: [json.dumps(as_tree(nbest), ensure_ascii=False)])


def as_tree(nbest: NBest) -> dict:
    """Return the object that one line holds; keys without a value are left out."""
    hyps = [
        add_filled(
            {"text": h.text} | ({} if h.written is None else {"written": h.written}),
            scores={n: float(v) for n, v in h.scores.items()},
            extra=dict(h.extra),
        )
        for h in nbest.hyps
    ]
    ref = [nbest.ref, *nbest.more_refs] if nbest.more_refs else nbest.ref
    known = {} if ref is None else {"ref": ref}
    return add_filled({"utt": nbest.utt, **known, "hyps": hyps}, extra=dict(nbest.extra))


def add_filled(tree: dict, **more) -> dict:
    """Return `tree` with those of `more` that are not empty."""
    return {**tree, **{name: value for name, value in more.items() if value}}


# what a line is that no run of ours wrote
UNREADABLE = (UserError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class JournalEntry:
    """The list of an utterance, without reference, and what the run notes by name."""

    nbest: NBest
    notes: Mapping[str, str | float] = field(default_factory=lambda: EMPTY)


class Journal:
    """The entries of one output by one model and options (`signature`), in a file beside the
    output. A line that was cut, damaged, or is another's counts as not written.
    """

    def __init__(self, out, signature: Mapping):
        out, self.subject = Path(os.path.realpath(out)), digest(signature)
        self.path = out.with_name(f".{out.name}.{self.subject[:16]}.journal")

    def seal(self, tree: Mapping) -> str:
        """Return the digest of what an entry says, and of what it is an entry of."""
        return digest({**tree, "of": self.subject})

    def read(self) -> dict[str, JournalEntry]:
        entries = {}
        for number, line in raw_lines(self.path) if self.path.is_file() else ():
            with contextlib.suppress(*UNREADABLE):
                tree = json.loads(line)
                if tree.pop(SEAL) == self.seal(tree):
                    nbest = utterance(tree["list"], f"{self.path}:{number}")
                    entries[nbest.utt] = JournalEntry(nbest, dict(tree["notes"]))
        return entries

    @contextlib.contextmanager
    def appending(self) -> Iterator:
        """Yield a function that adds an entry, which is on its way to the disk when it returns."""
        try:
            mode = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(self.path, mode, 0o666), "rb+", buffering=0) as stream:
                size = stream.seek(0, os.SEEK_END)
                if size and os.pread(stream.fileno(), 1, size - 1) != b"\n":
                    stream.write(b"\n")  # after a line that was cut

                def add(entry: JournalEntry) -> None:
                    tree = {"notes": dict(entry.notes), "list": as_tree(entry.nbest)}
                    tree = {SEAL: self.seal(tree), **tree}
                    line = json.dumps(tree, ensure_ascii=False) + "\n"
                    write_all(stream, line.encode("utf-8", "replace"), self.path)

                try:
                    yield add
                finally:
                    if not stream.seek(0, os.SEEK_END):
                        self.path.unlink(missing_ok=True)
        except OSError as error:
            if error.filename != str(self.path):
                raise
            raise cannot("write", self.path, error) from None


def write_all(stream, data: bytes, path: Path) -> None:
    """Write to an unbuffered stream; UserError where it cannot take all."""
    try:
        while data:
            data = data[stream.write(data) :]
    except OSError as error:
        raise cannot("write", path, error) from None
