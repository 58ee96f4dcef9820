#!/usr/bin/env python3
"""make_mini.py OUT: the mini corpus of egs/stsb, made of two public-domain English Bibles, the
World English Bible and King James.

Sentence pairs are graded by construction, no person judged them: the same verse in both
translations, neighbouring verses, verses of one chapter, verses of different books. OUT gets
train.txt.xz, valid.txt.xz, dev.tsv.xz, test.tsv.xz and SHA256SUMS, the same bytes every time. Run
it only to change the corpus or to see that it comes out the same; half a minute. Needs Debian's
packages sword-text-web, libsword-utils and bible-kjv.
"""

import argparse
import hashlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "librispeech/make_mini"))

from mini_grades import SIMILARITY, Verse, graded, runs
from mini_text import count, merge_short, parse, pieces, slug

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.types import SentencePair
from lmtools.vectors import pairs

MODULE = "engWEB2015eb"
REMEDIES = {"mod2imp": "libsword-utils", "bible": "bible-kjv"}
# the books of both translations: our name of each, and what the program `bible` calls it
KING_JAMES = (
    "genesis=Ge exodus=Exo leviticus=Lev numbers=Num deuteronomy=Deu joshua=Josh judges=Jdgs"
    " ruth=Ruth 1samuel=1Sm 2samuel=2Sm 1kings=1Ki 2kings=2Ki 1chronicles=1Chr 2chronicles=2Chr"
    " ezra=Ezra nehemiah=Neh esther=Est job=Job psalms=Psa proverbs=Prv ecclesiastes=Eccl"
    " songofsolomon=SSol isaiah=Isa jeremiah=Jer lamentations=Lam ezekiel=Eze daniel=Dan hosea=Hos"
    " joel=Joel amos=Amos obadiah=Obad jonah=Jonah micah=Mic nahum=Nahum habakkuk=Hab zephaniah=Zep"
    " haggai=Hag zechariah=Zec malachi=Mal matthew=Mat mark=Mark luke=Luke john=John acts=Acts"
    " romans=Rom 1corinthians=1Cor 2corinthians=2Cor galatians=Gal ephesians=Eph philippians=Phi"
    " colossians=Col 1thessalonians=1Th 2thessalonians=2Th 1timothy=1Tim 2timothy=2Tim titus=Titus"
    " philemon=Phmn hebrews=Heb james=Jas 1peter=1Pet 2peter=2Pet 1john=1Jn 2john=2Jn 3john=3Jn"
    " jude=Jude revelationofjohn=Rev"
)
BOOKS = dict(pair.split("=") for pair in KING_JAMES.split())
HELD_OUT = {
    "valid": "jonah galatians",
    "dev": "judges esther ecclesiastes john 1corinthians hebrews",
    "test": "genesis job daniel acts romans",
}
COUNT = {"dev": 400, "test": 800}  # pairs, each grade equally often
# words of a line of text; a longer verse is split into sentences and clauses
SHORTEST, LONGEST = 3, 40
Text = dict[tuple[str, int, int], str]  # book, chapter, verse -> printed form


def main() -> None:
    args = arguments()
    web, kjv = world_english(), king_james()
    held_out = {name: books.split() for name, books in HELD_OUT.items()}
    hidden = {book for books in held_out.values() for book in books}
    texts = {"train": text(web, kjv, [book for book in BOOKS if book not in hidden], set())}
    seen = runs(texts["train"])
    texts["valid"] = text(web, kjv, held_out["valid"], seen)
    seen |= runs(texts["valid"])
    sets: dict[str, list[SentencePair]] = {}
    for name in ("test", "dev"):
        verses = [
            Verse(*place, web[place], kjv[place])
            for place in web
            if place[0] in held_out[name] and place in kjv
        ]
        sets[name] = graded(verses, COUNT[name] // len(SIMILARITY), seen, random.Random(name))
        # what is in test is not in dev either
        seen |= runs(side for pair in sets[name] for side in (pair.left, pair.right))
    for name, lines in texts.items():
        write(args.out / f"{name}.txt.xz", lines)
    for name, chosen in sets.items():
        pairs.write(chosen, args.out / f"{name}.tsv.xz")
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
        for path in sorted(args.out.glob("*.xz"))
    ]
    write(args.out / "SHA256SUMS", sums)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="directory of the corpus")
    return parser.parse_args()


def world_english() -> Text:
    """Return the World English Bible's verses, those of the books that King James has too."""
    with tempfile.NamedTemporaryFile("w+", suffix=".imp") as imp:
        imp.write(output("mod2imp", MODULE))
        imp.flush()
        verses = {
            (slug(book), chapter, verse): plain(words)
            for book, chapter, verse, words in parse(imp.name)
        }
    if not verses:
        raise UserError(f"mod2imp: no module {MODULE}; apt-get install sword-text-web")
    return {place: words for place, words in verses.items() if place[0] in BOOKS}


def king_james() -> Text:
    """Return the King James Bible's verses; the program prints `Ge1:1 In the beginning ...`."""
    books = {short: book for book, short in BOOKS.items()}
    verses = {}
    for line in output("bible", "-f", "gen1:1-rev99:99").splitlines():
        place, words = line.split(" ", 1)
        start, verse = place.split(":")
        short = start.rstrip("0123456789")
        verses[books[short], int(start.removeprefix(short)), int(verse)] = plain(words)
    if not verses:
        raise UserError("bible: prints no verses; apt-get install bible-kjv-text")
    return verses


def output(program: str, *args: str) -> str:
    """Return what a program prints, whatever its exit status: mod2imp's is not to be relied on."""
    if not shutil.which(program):
        raise UserError(f"make_mini.py: {program} not found; apt-get install {REMEDIES[program]}")
    return subprocess.run([program, *args], capture_output=True, encoding="utf-8").stdout


def plain(words: str) -> str:
    """Return the words without marks of lemmas and with single spaces."""
    return " ".join(re.sub(r"</?w\b[^>]*>", "", words).split())


def text(web: Text, kjv: Text, books: list[str], seen: set[str]) -> list[str]:
    """Return the distinct lines of the books, one translation after the other, but none that shares
    a run of words with `seen`.
    """
    lines = (line for book in books for bible in (web, kjv) for line in book_lines(bible, book))
    return list(dict.fromkeys(line for line in lines if seen.isdisjoint(runs([line]))))


def book_lines(bible: Text, book: str) -> Iterable[str]:
    """Yield the verses of a book; in place of one of more than 40 words its sentences and
    clauses.
    """
    for (name, _, _), verse in bible.items():
        if name == book:
            lines = [verse] if count(verse) <= LONGEST else merge_short(pieces(verse))
            yield from (line for line in lines if SHORTEST <= count(line) <= LONGEST)


def write(path: Path, lines: Iterable[str]) -> None:
    with atomic_text(path) as out:
        out.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(str(error))
