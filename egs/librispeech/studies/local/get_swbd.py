#!/usr/bin/env python3
"""get_swbd.py DATA LISTS LDC...: Switchboard's text as language models want it, and the references
of the user's lists, as DATA/SET/text.

LDC are directories, read with all that is below them, where there may be

- Switchboard-1 (LDC97S62) in the transcription of Mississippi State,
`swNNNN{A,B}-ms98-a-trans.text`, a segment a line:
  `sw2001A-ms98-a-0001 0.000000 0.977625 hi um yeah`;
- Fisher English (LDC2004T19, LDC2005T19), `trans/NNN/fe_03_NNNNN.txt`, a turn a line: `3.76 5.54 A:
and i generally prefer`.

A segment or turn is a sentence. The set valid has the last of each 25 Switchboard conversations (97
of 2,438; both sides of each, counted from the end), train the others and Fisher.
LISTS/{dev,test}.text, Kaldi text, are copied.

What becomes of a token, in lower case (the bracket rules are those of Kaldi's recipe for
Switchboard, which recognisers were trained with):

| written | meaning | kept | |---|---|---| | `[laughter-yes]` | a word said laughing | `yes` | |
`[it'n/isn't]` | said / meant | `it'n` | | `{yuppiedom}` | coined or rare | `yuppiedom` | | `them_1`
| a variant of pronunciation | `them` | | `th[is]-`, `-[a]nd`, `th-` | a part of a word | nothing:
recognisers put out whole words | | `[noise]`, `[laughter]`, `[[skip]]`, `<b_aside>` | no word |
nothing | | `&amp;` | an ampersand | `&` | | `(( i think ))`, `*word`, `yes?` | Fisher: unclear,
unusual, punctuation | `i think`, `word`, `yes` | | `t._v.`, `m._r._i.'s` | Fisher: spelt | `tv`,
`mri's`, as Switchboard writes them |
"""

import html
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from lmtools.base.atomic import atomic_binary, copy_file
from lmtools.base.errors import UserError, exit_with_message

VALID_EVERY = 25  # of so many conversations of Switchboard one is kept for validation
SWITCHBOARD = re.compile(r"sw(\d{4,5})[AB]-ms98-a-trans\.text")
FISHER = re.compile(r"fe_03_\d+\.txt")
RULES = [  # in this order, each on what the one before has left
    (re.compile(r"<[^>]*>|[()*?,]"), ""),
    (re.compile(r"^(-?)\[laughter-(.+)\](-?)$"), r"\1\2\3"),
    (re.compile(r"^\[(.+)/.+\](-?)$"), r"\1\2"),
    (re.compile(r"^\{(.+)\}$"), r"\1"),
    (re.compile(r"_\d"), ""),
    (re.compile(r"^(?:[a-z]\._)*[a-z]\.(?='s$|s$|$)"), lambda spelt: re.sub(r"[._]", "", spelt[0])),
]
NO_WORD = re.compile(r"[][]|^-|-$|^[^a-z0-9&]*$")  # a bracket is left: a noise or a part of a word


def clean(text: str) -> str:
    """Return the words of a transcription; empty if there are none."""
    words = []
    for word in re.sub(r"<[^>]*>", " ", html.unescape(text).lower()).split():
        for pattern, kept in RULES:
            word = pattern.sub(kept, word)
        if not NO_WORD.search(word):
            words.append(word)
    return " ".join(words)


def switchboard(path: Path) -> Iterator[str]:
    """Yield the sentences of one side of a conversation."""
    for number, line in lines(path):
        fields = line.split(maxsplit=3)
        if len(fields) < 3 or "-ms98-a-" not in fields[0]:
            raise UserError(
                f"{path}:{number}: not `segment start end words`; give the transcription as the LDC"
                " distributes it"
            )
        if sentence := clean("".join(fields[3:])):
            yield sentence


def fisher(path: Path) -> Iterator[str]:
    """Yield the sentences of a conversation; comments and empty lines are none."""
    for number, line in lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        turn = re.match(r"[\d.]+ [\d.]+ [AB]\d?: ?(.*)", line)
        if not turn:
            raise UserError(
                f"{path}:{number}: not `start end A: words`; give the transcription as the LDC"
                " distributes it"
            )
        if sentence := clean(turn[1]):
            yield sentence


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a file with their numbers; a byte that is no UTF-8 counts as Latin-1."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return enumerate(text.splitlines(), 1)


def find(folders: list[str]) -> tuple[dict[str, list[Path]], list[Path]]:
    """Return Switchboard's files by conversation, in order, and Fisher's; each once, though it may
    lie in two places.
    """
    sides, turns = {}, {}
    for folder in folders:
        for where, _, names in os.walk(folder):
            for name in names:
                if SWITCHBOARD.fullmatch(name):
                    sides.setdefault(name, Path(where, name))
                elif FISHER.fullmatch(name) and Path(where).parent.name == "trans":
                    turns.setdefault(name, Path(where, name))
    conversations = {}
    for name in sorted(sides, key=lambda name: (int(SWITCHBOARD.fullmatch(name)[1]), name)):
        conversations.setdefault(SWITCHBOARD.fullmatch(name)[1], []).append(sides[name])
    return conversations, [turns[name] for name in sorted(turns)]


def write(path: Path, sentences: Iterator[str]) -> int:
    """Write the sentences, a line each, to a file that is whole or not there; return how many they
    are.
    """
    with atomic_binary(path) as out:
        return sum(1 for sentence in sentences if out.write(f"{sentence}\n".encode()))


def main(data: Path, lists: Path, folders: list[str]):
    """See above; UserError where something is missing."""
    conversations, turns = find(folders)
    if len(conversations) < 2:
        raise UserError(
            f"{' '.join(folders)}: no swNNNN{{A,B}}-ms98-a-trans.text of two conversations; give"
            " LDC97S62's transcriptions"
        )
    for name in ("dev", "test"):
        if not (lists / f"{name}.text").exists():
            raise UserError(
                f"{lists / name}.text: not there; put the references of {name}'s lists there,"
                " `utterance w1 w2 ...` a line"
            )
        copy_file(lists / f"{name}.text", data / name / "text")
    held = set(list(conversations)[::-1][::VALID_EVERY])
    sides = [(path, name in held) for name, paths in conversations.items() for path in paths]
    valid = write(
        data / "valid/text", (line for path, kept in sides if kept for line in switchboard(path))
    )
    spoken = (line for path, kept in sides if not kept for line in switchboard(path))
    train = write(
        data / "train/text", (line for part in (spoken, *map(fisher, turns)) for line in part)
    )
    parts = (
        f"{len(conversations) - len(held):,} conversations of Switchboard and {len(turns):,} of"
        " Fisher"
    )
    print(f"{data}: {train:,} sentences of {parts}, {valid:,} held out")


if __name__ == "__main__":
    with exit_with_message():
        main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
