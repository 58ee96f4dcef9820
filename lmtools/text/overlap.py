"""What a text shares with the sentences that models are judged by: runs of words, also across its
lines, and whole sentences. Words are compared without case and punctuation; in scripts that put no
blanks between words, letters.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmtools.base.atomic import atomic_text
from lmtools.text.blocks import read_text
from lmtools.text.scripts import CHARACTER, UNIT, find_spacing

RUNS = (7, 8)  # lengths of shared runs that are counted; lines with the shortest are marked
WHOLE = 6  # words of a sentence that counts as whole, at least
LETTERS = 8, 14, 16  # in the place of WHOLE and RUNS
ALIKE = str.maketrans("\N{RIGHT SINGLE QUOTATION MARK}ı", "'i")
WORD = re.compile(rf"{UNIT.pattern}|(?:(?!{CHARACTER.pattern})[^\W_])+(?:'[^\W_]+)*")
BLOCK = 1 << 20  # words of text that are looked up at once
BITS = 22  # of the table that most runs of a text fail
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, of a golden ratio: keys spread over 64 bits


@dataclass
class SetOverlap:
    """What a text has of a set: the numbers of sentences of which it has a run of so many words,
    and of those of WHOLE words and more (`long`) that stand in it.
    """

    sentences: int
    long: int
    runs: dict[int, set[int]]
    whole: set[int] = field(default_factory=set)


@dataclass
class Overlap:
    """What texts share with sets by name, and their lines, from 1, that share a run or belong to a
    whole sentence, by path; the `lengths` of whole sentences and of runs, in `unit`, that count;
    how many lines that are not empty were read.
    """

    sets: dict[str, SetOverlap]
    lines: dict[str, set[int]]
    lengths: Sequence[int]
    unit: str
    read: int = 0

    @property
    def marked(self) -> int:
        return sum(map(len, self.lines.values()))


def split_words(line: str) -> list[str]:
    """Return the words of a line in lower case, without punctuation but apostrophes inside; letters
    of scripts without blanks one by one.
    """
    line = line.casefold().replace("i\u0307", "i").translate(ALIKE)
    words = WORD.findall(line)
    return words if line.isascii() else [word for word in words if word[0].isalnum()]


def hash_runs(words: np.ndarray, lengths: Sequence[int]) -> dict[int, np.ndarray]:
    """Return 64-bit keys of the runs of each length (words - length + 1,) in ids of words."""
    mixed = (words.astype(np.uint64) + np.uint64(1)) * FACTOR
    mixed = (mixed ^ (mixed >> np.uint64(29))) * FACTOR
    keys, found = np.zeros(len(words) + 1, dtype=np.uint64), {}
    for length in range(1, max(lengths) + 1):
        keys = keys[:-1] * FACTOR + mixed[length - 1 :]
        keys ^= keys >> np.uint64(31)
        if length in lengths:
            found[length] = keys
    return found


class RunIndex:
    """RunIndex of one length in the ids `words`, which begin at `starts`, to be found in a text."""

    def __init__(self, words: np.ndarray, starts: np.ndarray, keys: np.ndarray):
        order = np.argsort(keys[starts], kind="stable")
        self.words, self.starts, self.keys = words, starts[order], keys[starts][order]
        self.table = np.zeros(1 << BITS, dtype=bool)
        self.table[self.keys >> np.uint64(64 - BITS)] = True

    def find(self, text: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where runs stand in the ids of a `text` with these `keys`, and in `words`; each
        pair was compared word by word.
        """
        length = len(text) - len(keys) + 1
        places = np.flatnonzero(self.table[keys >> np.uint64(64 - BITS)])
        first = np.searchsorted(self.keys, keys[places], side="left")
        count = np.searchsorted(self.keys, keys[places], side="right") - first
        rows = np.repeat(first + count - np.cumsum(count), count) + np.arange(count.sum())
        places, starts, steps = np.repeat(places, count), self.starts[rows], np.arange(length)
        same = (text[places[:, None] + steps] == self.words[starts[:, None] + steps]).all(1)
        return places[same], starts[same]


class JudgedSentences:
    """The sentences of sets by name, ready to be found in texts of any size."""

    def __init__(self, sets: Mapping[str, Iterable[str]]):
        self.ids: dict[str, int] = {}  # from 1; 0 is any other word, and the end of a sentence
        self.spans: list[tuple[str, int, int]] = []  # set, and where its words begin and end
        words = [0]
        sets, self.sets = {name: [*texts] for name, texts in sets.items()}, {}
        letters = any(find_spacing(texts).language for texts in sets.values())
        self.lengths, self.unit = (LETTERS, "letters") if letters else ((WHOLE, *RUNS), "words")
        whole, *runs = self.lengths
        for name, texts in sets.items():
            lines = [split_words(text) for text in texts]
            self.sets[name] = len(lines), sum(len(line) >= whole for line in lines)
            for line in lines:
                self.spans.append((name, len(words), len(words) + len(line)))
                words += [self.ids.setdefault(word, len(self.ids) + 1) for word in line]
                words.append(0)
        self.words = np.array(words, dtype=np.int64)
        spans = [span[1:] for span in self.spans]
        begins, ends = np.array(spans, dtype=np.int64).reshape(-1, 2).T
        self.begins, lengths = begins, ends - begins
        keys = hash_runs(self.words, self.lengths)
        starts = {
            run: np.concatenate(
                [
                    [],
                    *(
                        b + np.arange(max(0, n - run + 1))
                        for b, n in zip(begins, lengths, strict=True)
                    ),
                ]
            )
            for run in runs
        }
        starts[whole] = begins[lengths >= whole]
        self.runs = {
            n: RunIndex(self.words, at.astype(np.int64), keys[n]) for n, at in starts.items()
        }
        self.longest = max([*self.lengths, *lengths])

    def find_in(self, paths: Sequence, edit: Callable[[str], str] = str) -> Overlap:
        """Find what texts, a sentence a line, share with the sets when `edit` changed each line.
        Memory is that of the sets and of BLOCK words.
        """
        sets = {
            name: SetOverlap(*sizes, {run: set() for run in self.lengths[1:]})
            for name, sizes in self.sets.items()
        }
        overlap = Overlap(sets, {str(path): set() for path in paths}, self.lengths, self.unit)
        for path in map(str, paths):
            for words, lines in self.read_blocks(path, edit, overlap):
                self.mark(words, lines, overlap, path)
        return overlap

    def read_blocks(
        self, path: str, edit: Callable[[str], str], overlap: Overlap
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield ids of words and the numbers of their lines; a block begins with the end of the one
        before, an empty line is the end of a text.
        """
        words, lines, get = [], [], self.ids.get
        for number, line in read_text(path):
            found = split_words(edit(line))
            overlap.read += bool(found)
            words += [get(word, 0) for word in found] or [0]
            lines.append((number, len(found) or 1))
            if len(words) >= BLOCK:
                yield spread(words, lines)
                words, lines = keep_end(words, lines, self.longest)
        yield spread(words, lines)

    def mark(self, words: np.ndarray, lines: np.ndarray, overlap: Overlap, path: str) -> None:
        """Add to `overlap` what a block shares."""
        for length, keys in hash_runs(words, self.lengths).items():
            places, starts = self.runs[length].find(words, keys)
            sentences = np.searchsorted(self.begins, starts, side="right") - 1
            for place, sentence in zip(places.tolist(), sentences.tolist(), strict=True):
                name, begin, end = self.spans[sentence]
                size = end - begin if length == self.lengths[0] else length
                if length != self.lengths[0]:
                    overlap.sets[name].runs[length].add(sentence)
                elif np.array_equal(words[place : place + size], self.words[begin:end]):
                    overlap.sets[name].whole.add(sentence)
                else:
                    continue
                overlap.lines[path].update(lines[place : place + size].tolist())


def spread(words: list[int], lines: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    numbers, counts = np.array(lines, dtype=np.int64).reshape(-1, 2).T
    return np.array(words, dtype=np.int64), np.repeat(numbers, counts)


def keep_end(words: list[int], lines: list[tuple[int, int]], most: int):
    """Return the last lines that have `most` words, or more."""
    count, first = 0, len(lines)
    while first and count < most:
        first -= 1
        count += lines[first][1]
    return words[-count:], lines[first:]


def write_others(paths: Sequence, out: str, overlap: Overlap) -> None:
    """Write the lines of texts that `overlap` did not mark."""
    with atomic_text(out) as text:
        for path in map(str, paths):
            marked = overlap.lines[path]
            text.writelines(f"{line}\n" for n, line in read_text(path) if n not in marked)
