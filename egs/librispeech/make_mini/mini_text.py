#!/usr/bin/env python3
"""Writes the LM text and the held-out sentences of the mini corpus from a SWORD module in `imp`
form (what `mod2imp` prints).

Whole books are held out. A held-out sentence is kept when it has 6 to 25 words, every word is in
the decoder's dictionary (no language model can repair a word that the decoder cannot write), and no
run of eight words of it occurs in the training text.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lmtools.base.atomic import atomic_text
from lmtools.base.files import read_lines

ROMAN = {"I": "1", "II": "2", "III": "3", "IV": "4"}
# words a line: at least, split at ; and : above this, split at commas above this
SHORTEST, SOFT_LIMIT, LONGEST = 3, 25, 40
SPOKEN = range(6, 26)  # words of a sentence that is read aloud
# a held-out sentence that shares this many words in a row with the training text is a parallel
# passage
RUN = 8
DROPPED = re.compile(
    r"<note\b.*?</note>|<title\b.*?</title>|<speaker\b.*?</speaker>|<div[^>]*type=\"glossary\".*",
    re.DOTALL,
)
MARK = "\x01(\\d+)\x02"  # where a verse begins, inside the running text of a chapter
SENTENCE_END = re.compile("(?<=[.!?])([”’)\\]]*)\\s+(?=(?:\x01\\d+\x02)?[“‘(\\[]*[A-Z])")
CLAUSE_END = re.compile("(?<=[;:—])\\s*|(?<=[;:—][”’])\\s+")
COMMA = re.compile("(?<=,)\\s+")


class Sentence(NamedTuple):
    """One line of text: where it starts, its words (upper case) and its printed form."""

    book: str
    chapter: int
    verse: int
    words: str
    printed: str


def main() -> None:
    args = arguments()
    books = group(parse(args.imp))
    held_out = {*args.valid, *args.dev, *args.test}
    if missing := held_out - books.keys():
        raise SystemExit(
            f"{args.imp}: no book {', '.join(sorted(missing))}; there are {', '.join(books)}"
        )
    train = [sentence for book in books if book not in held_out for sentence in books[book]]
    seen = runs(train)
    write_text(args.out / "train.txt.xz", train)
    write_text(
        args.out / "valid.txt.xz",
        [s for book in args.valid for s in books[book] if not overlaps(s, seen)],
    )
    known = recognisable({word for book in books for s in books[book] for word in s.words.split()})
    for name, chosen in (("test", args.test), ("dev", args.dev)):
        spoken = [
            s
            for book in chosen
            for s in books[book]
            if speakable(s, known) and not overlaps(s, seen)
        ]
        write_sentences(args.work / f"{name}.sentences", spoken)
        seen |= runs(spoken)  # what is in test is not in dev either


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--imp", required=True, help="what mod2imp wrote")
    parser.add_argument(
        "--out", required=True, type=Path, help="directory of train.txt.xz and valid.txt.xz"
    )
    parser.add_argument(
        "--work", required=True, type=Path, help="directory of dev.sentences and test.sentences"
    )
    for name in ("valid", "dev", "test"):
        parser.add_argument(
            f"--{name}", required=True, nargs="+", metavar="BOOK", help=f"books held out for {name}"
        )
    return parser.parse_args()


def parse(path) -> Iterator[tuple[str, int, int, str]]:
    """Yield (book, chapter, verse, text) of every verse of an imp file, without mark-up, notes,
    titles, prefaces and glossary.
    """
    key, lines = "", []
    for _, line in [*read_lines(path), (0, "$$$")]:
        if not line.startswith("$$$"):
            lines.append(line)
            continue
        place = re.fullmatch(r"(.+) (\d+):(\d+)", key)
        if place and int(place[2]) and int(place[3]):  # chapter or verse 0 is a preface
            raw = DROPPED.sub(" ", " ".join(lines))
            yield place[1], int(place[2]), int(place[3]), re.sub(r"<(?!/?w\b)[^>]*>", " ", raw)
        key, lines = line[3:], []


def group(verses) -> dict[str, list[Sentence]]:
    """Return Book slug -> its sentences; a sentence may run over verses but not over chapters."""
    chapters: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for book, chapter, verse, text in verses:
        plain = " ".join(re.sub(r"</?w\b[^>]*>", "", text).split())
        chapters.setdefault((slug(book), chapter), []).append((verse, plain))
    books: dict[str, list[Sentence]] = {}
    for (book, chapter), parts in chapters.items():
        books.setdefault(book, []).extend(
            Sentence(book, chapter, *rest) for rest in sentences(parts)
        )
    return books


def slug(book: str) -> str:
    """Return `II Maccabees` -> `2maccabees`: no spaces, no '#'."""
    first, *rest = book.replace("(", "").replace(")", "").split()
    return "".join([ROMAN.get(first, first), *rest]).lower()


def sentences(parts: list[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield (verse where it starts, words, printed form) of every line of a chapter, 3 to 40 words
    each; shorter leftovers are dropped.
    """
    marked = " ".join(f"\x01{verse}\x02{text}" for verse, text in parts)
    verse = 0
    for piece in merge_short(pieces(marked)):
        marks = re.findall(MARK, piece)
        starts = int(marks[0]) if piece.startswith("\x01") else verse
        verse = int(marks[-1]) if marks else verse
        printed = re.sub(MARK, "", piece)
        words = normalise(printed)
        if SHORTEST <= len(words.split()) <= LONGEST and not re.search(r"\d", printed):
            yield starts, words, printed


def pieces(text: str) -> Iterator[str]:
    """Yield sentences; those over 25 words are split at semicolons, colons and dashes, those still
    over 40 at commas.
    """
    for sentence in SENTENCE_END.sub("\\1\n", text).split("\n"):
        for clause in CLAUSE_END.split(sentence) if count(sentence) > SOFT_LIMIT else [sentence]:
            yield from pack(COMMA.split(clause)) if count(clause) > LONGEST else [clause]


def pack(parts: list[str]) -> Iterator[str]:
    """Yield neighbouring parts joined for as long as they stay within 25 words."""
    line = ""
    for part in parts:
        if line and count(line) + count(part) > SOFT_LIMIT:
            yield line
            line = part
        else:
            line = f"{line} {part}".strip()
    yield line


def merge_short(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines of one or two words are joined to the line before them."""
    last = ""
    for line in lines:
        if (
            last
            and (count(line) < SHORTEST or count(last) < SHORTEST)
            and count(last) + count(line) <= LONGEST
        ):
            last = f"{last} {line}"
            continue
        if last:
            yield last
        last = line
    if last:
        yield last


def count(printed: str) -> int:
    return len(normalise(re.sub(MARK, " ", printed)).split())


def normalise(printed: str) -> str:
    """Return LibriSpeech's form: upper case A-Z, apostrophes inside words and after a possessive S,
    one space between words.
    """
    text = re.sub(r"(?<=[A-Za-z])’(?=[A-Za-z])|(?<=s)’(?= [a-z])", "'", printed)
    return " ".join(re.sub(r"[^A-Z' ]", " ", text.upper()).split())


def runs(lines: list[Sentence]) -> set[str]:
    """Return every run of eight words; of shorter lines the line itself, with its ends, so that
    only equal lines match.
    """
    ngrams = set()
    for line in lines:
        words = line.words.split()
        ngrams.update(" ".join(words[i : i + RUN]) for i in range(len(words) - RUN + 1))
        ngrams.add(f"<{line.words}>")
    return ngrams


def overlaps(sentence: Sentence, seen: set[str]) -> bool:
    return not seen.isdisjoint(runs([sentence]))


def recognisable(words: set[str]) -> set[str]:
    """Return the words that are in both the decoder's dictionary and its language model."""
    from pocketsphinx import Decoder  # only this needs it; egs/stsb shares the rest

    decoder = Decoder(loglevel="FATAL")
    model, nothing = decoder.get_lm(), decoder.get_logmath().get_zero()
    return {
        word
        for word in words
        if decoder.lookup_word(word.lower()) and model.prob([word.lower()]) > nothing
    }


def speakable(sentence: Sentence, known: set[str]) -> bool:
    words = sentence.words.split()
    return len(words) in SPOKEN and known.issuperset(words)


def write_text(path: Path, lines: list[Sentence]) -> None:
    with atomic_text(path) as out:
        out.writelines(f"{line.words}\n" for line in lines)


def write_sentences(path: Path, lines: list[Sentence]) -> None:
    """Write `web-BOOK-CHAPTER-VERSE <TAB> words <TAB> printed form`; only the first sentence of a
    verse, so that the name is unique.
    """
    first: dict[str, Sentence] = {}
    for line in lines:
        first.setdefault(f"web-{line.book}-{line.chapter}-{line.verse}", line)
    with atomic_text(path) as out:
        out.writelines(f"{name}\t{line.words}\t{line.printed}\n" for name, line in first.items())


if __name__ == "__main__":
    main()
