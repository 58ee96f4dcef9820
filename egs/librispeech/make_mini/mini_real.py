#!/usr/bin/env python3
"""Writes mini-real: N-best lists of a recogniser, and LM text from books, one sentence a line with
an empty line between books. Both are normalised like LibriSpeech's LM text and have mister, missus
and doctor in full; hypotheses that are then equal are merged, and what the recogniser wrote stays
beside the text. Of the scores only `am` is kept.

Whole books are chosen by how well they predict transcripts that are neither dev's nor test's: of
each book's first 60,000 words a bigram with Witten-Bell smoothing (Witten and Bell 1991, method C)
is estimated over the words of all books and the transcripts, and the transcripts' cross entropy
under it ranks the book. The best ones are taken until there are 1.2 million words; the book
that comes next in the ranking gives the first lines to `valid`. Lines that share a run of seven
words with a reference of the lists are left out.
"""

import argparse
import hashlib
import json
import lzma
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from lmtools.base.atomic import atomic_binary
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import read_lines
from lmtools.formats import jsonl
from lmtools.formats.edits import merge_equal, rewrite_list, spell
from lmtools.text import NORMALISERS
from lmtools.types import NBest

WORDS, MOST = 1_200_000, 1_250_000  # of train: at least, and no book that leads above
# words of a book: fewer are tales and plays, more would be too large a share of one author
LENGTHS = range(60_000, 200_001)
SAMPLE = 60_000  # words of each book that rank it, as many for all
VALID_LINES = 700
RUN = 7  # words in a row that no line shares with a reference
# as LibriSpeech writes them, in its LM text as in its transcripts
IN_FULL = {"mr": "mister", "mrs": "missus", "dr": "doctor"}
MOST_SHARED = 20  # lines of a book that do, by chance; the book itself has hundreds


class Book(NamedTuple):
    """Consecutive lines of the books' file; `first` is the number of its first line."""

    first: int
    lines: list[str]

    @property
    def words(self) -> int:
        return sum(len(line.split()) for line in self.lines)


def main() -> None:
    args = arguments()
    transcripts = [
        line.lower().split()[1:] for path in args.rank_by for _, line in read_lines(path)
    ]
    books = list(split(read_lines(args.books), args.leave_out))
    vocabulary = {word for words in transcripts for word in words}
    vocabulary.update(word for book in books for line in book.lines for word in line.split())
    pairs = Counter(pair for words in transcripts for pair in bigrams(words))
    ranked = sorted(
        (cross_entropy(pairs, book, len(vocabulary) + 1), book.first, book)
        for book in books
        if book.words in LENGTHS
    )
    train, taken = [], 0
    valid = None
    for nats, _, book in ranked:
        if taken < WORDS and taken + book.words <= MOST:
            train.append(book)
            taken += book.words
            print(f"{nats:.3f} nats  {book.words:7,} words  line {book.first}: {book.lines[0]}")
        else:
            valid = valid or book
    if taken < WORDS or not valid:
        raise UserError(f"{args.books}: {taken:,} words in books that fit; need {WORDS:,}")
    print(f"valid: {VALID_LINES} lines from line {valid.first}: {valid.lines[0]}")
    lists = {name: read_lists(path) for name, path in args.lists}
    held_out = {
        run for nbests in lists.values() for nbest in nbests for run in runs_of(nbest.ref.split())
    }
    texts = {
        "train": [line for book in train for line in drop_shared(book.lines, held_out)],
        "valid": drop_shared(valid.lines[:VALID_LINES], held_out),
    }
    for name, lines in texts.items():
        pack(args.out / f"{name}.txt.xz", lines)
    lists |= {name: read_lists(path) for name, path in args.train_lists}
    for name, nbests in lists.items():
        rows = map(jsonl.as_tree, nbests)
        pack(args.out / f"{name}.nbest.jsonl.xz", (json.dumps(row) for row in rows))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--books", required=True, help="text, plain or packed")
    parser.add_argument(
        "--leave-out",
        nargs="*",
        default=[],
        type=int,
        metavar="LINE",
        help="books in which these lines are: those that the utterances were read from",
    )
    parser.add_argument(
        "--rank-by",
        required=True,
        nargs="+",
        help="transcripts, Kaldi text: LibriSpeech's dev sets",
    )
    parser.add_argument(
        "--lists",
        required=True,
        nargs="+",
        metavar="NAME=FILE",
        type=lambda text: tuple(text.split("=", 1)),
        help="N-best lists, jsonl; NAME.nbest.jsonl.xz is written",
    )
    parser.add_argument(
        "--train-lists",
        nargs="*",
        default=[],
        metavar="NAME=FILE",
        type=lambda text: tuple(text.split("=", 1)),
        help="lists to train and choose on: the text may share lines with their references",
    )
    parser.add_argument("--out", required=True, type=Path, help="directory of the corpus")
    return parser.parse_args()


def write_out(text: str) -> str:
    """Return the text with its abbreviations in full."""
    return spell(text, IN_FULL)


def read_lists(path: str) -> list[NBest]:
    """Return the lists of a file as the corpus has them: the best of equal hypotheses is the first
    that the recogniser gave.
    """

    def change(text: str) -> str:
        return write_out(NORMALISERS["librispeech"](text))

    nbests = []
    for nbest in jsonl.read(path):
        merged = merge_equal(rewrite_list(nbest, change, change, keep=True), str)
        hyps = [replace(hyp, scores={"am": hyp.scores["am"]}) for hyp in merged.hyps]
        nbests.append(replace(merged, hyps=tuple(hyps)))
    return nbests


def pack(path: Path, lines: Iterable[str]) -> None:
    """Write the lines, compressed."""
    data = "".join(f"{line}\n" for line in lines).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_binary(path) as out:
        out.write(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
    print(f"{path}: {data.count(10):,} lines, sha256 {hashlib.sha256(data).hexdigest()} unpacked")


def split(lines: Iterable[tuple[int, str]], left_out: list[int]) -> Iterator[Book]:
    """Yield the books that have none of the lines `left_out`, abbreviations in full."""
    first, book = 1, []
    for number, line in [*lines, (0, "")]:
        if line.strip():
            book.append(write_out(line))
            continue
        if book and not any(first <= out < first + len(book) for out in left_out):
            yield Book(first, book)
        first, book = number + 1, []


def bigrams(words: list[str]) -> Iterator[tuple[str, str]]:
    """Return each word and the end of the sentence, with what stands before."""
    return zip(["<s>", *words], [*words, "</s>"], strict=True)


def cross_entropy(pairs: Counter, book: Book, vocabulary: int) -> float:
    """Return nats a token of `pairs` under a Witten-Bell bigram of the book's first words, which
    backs off to its unigram and that to a uniform distribution over `vocabulary`.
    """
    seen, words = Counter(), 0
    for line in book.lines:
        if words >= SAMPLE:
            break
        words += len(line.split())
        seen.update(bigrams(line.split()))
    single, after, kinds = Counter(), Counter(), Counter()
    for (context, word), count in seen.items():
        single[word] += count
        after[context] += count
        kinds[context] += 1
    tokens, types = after.total(), len(single)
    nats = 0.0
    for (context, word), count in pairs.items():
        chance = (single[word] + types / vocabulary) / (tokens + types)
        if context in after:
            chance = (seen[context, word] + kinds[context] * chance) / (
                after[context] + kinds[context]
            )
        nats -= count * math.log(chance)
    return nats / pairs.total()


def drop_shared(lines: list[str], held_out: set[tuple[str, ...]]) -> list[str]:
    """Return the lines of a book that have none of the runs, nor end or begin one with their
    neighbours; UserError if that is more than a turn of phrase here and there.
    """
    places = [(number, word) for number, line in enumerate(lines) for word in line.split()]
    dropped = set()
    for start, run in enumerate(runs_of([word for _, word in places])):
        if run in held_out:
            print(f"left out, shared with a reference: {' '.join(run)}")
            dropped.update(number for number, _ in places[start : start + RUN])
    if len(dropped) > MOST_SHARED:
        raise UserError(
            f"{len(dropped)} lines of the book {lines[0][:60]!r} share runs of {RUN} words with the"
            " references; name one of its lines after --leave-out"
        )
    return [line for number, line in enumerate(lines) if number not in dropped]


def runs_of(words: list[str]) -> Iterator[tuple[str, ...]]:
    """Return all runs of RUN words."""
    return zip(*(words[start:] for start in range(RUN)), strict=False)


if __name__ == "__main__":
    with exit_with_message():
        main()
