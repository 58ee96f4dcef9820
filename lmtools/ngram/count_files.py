"""Counts of n-grams in files, as SRILM's `ngram-count -write` leaves them: the words of an n-gram,
blanks or a tab, how often it occurs; all orders, with <s> and </s>.
"""

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.ngram.counts import Grams, IndexedText, append_rows, append_words
from lmtools.ngram.sentences import BOS, EOS, RESERVED, SYMBOLS, UNKNOWN, split_words

BEGIN, END = SYMBOLS[BOS], SYMBOLS[EOS]
NUMBER = re.compile("[0-9]+")  # str.isdecimal takes the digits of any script
LARGEST = 10**15  # of a number, and of a sum of them: exact in the arithmetic of smoothing


class CountFiles:
    """The n-grams of files of counts; reading tallies `sentences`, `tokens` and `reserved` (counted
    words that read <unk>, whose n-grams are left out) as TokenisedText does, and whether words are
    `foreign`: some hold white space that KenLM and SRILM leave in words, our normalisers do not.

    `rename` maps a word to the model's name for it, as UNKNOWN for one outside a vocabulary.
    Several counts of one n-gram are summed.
    """

    def __init__(self, paths: Sequence, rename: Callable[[str], str] = str):
        self.paths, self.rename = paths, rename
        self.sentences = self.tokens = self.reserved = 0
        self.foreign = False

    def tally(
        self, order: int, closed: bool, folder=None, min_counts: Sequence[int] = ()
    ) -> tuple[IndexedText, list[Grams]]:
        """Return the vocabulary and the n-grams of orders 1 to `order`, as lmtools.ngram.counts has
        them of a text; all of it in memory.

        UserError where an n-gram's beginning or end has no count: probabilities are those of all
        orders' counts, without cut-offs.
        """
        counts: list[dict[tuple[str, ...], int]] = [{} for _ in range(order)]
        self.reserved = 0
        for words, number in self.rows(order):
            ngrams = counts[len(words) - 1]
            ngrams[words] = ngrams.get(words, 0) + number
        self.check_sums(counts)
        counts[0].pop((BEGIN,), None)
        self.sentences = counts[0].get((END,), 0)
        self.tokens = sum(counts[0].values()) - self.sentences
        missing = [n for n, ngrams in enumerate(counts, 1) if not ngrams]
        if missing or not self.sentences:
            lacks = f"n-grams of {missing[0]} words" if missing else f"{END}"
            raise UserError(
                f"{self.paths[0]}: no counts of {lacks}; give all orders up to --order, with"
                f" {BEGIN} and {END}, as ngram-count -write has them"
            )
        self.foreign = any(len(word.split()) > 1 for (word,) in counts[0])
        words = dict.fromkeys((*SYMBOLS, *(word for (word,) in counts[0])))
        if closed:
            words[UNKNOWN] = None
        ids = {word: i for i, word in enumerate(words)}
        occurrences = np.zeros(len(ids), dtype=np.int64)
        for (word,), number in counts[0].items():
            occurrences[ids[word]] = number
        grams = [Grams(folder, least) for least in min_counts or [1] * order]
        rows = self.gather(counts[1:], ids)
        append_words(grams, occurrences, append_rows(grams, rows, len(ids)))
        return IndexedText(None, list(words), occurrences), grams

    def rows(self, order: int) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield each line's words and count, of n-grams up to `order`."""
        for path in self.paths:
            for line, text in read_lines(path):
                *words, number = split_words(text) or ("",)
                if not words and not number:
                    continue
                if not words or not NUMBER.fullmatch(number):
                    raise UserError(
                        f"{path}:{line}: {text!r:.60} is no n-gram with a whole number after it;"
                        " write `of the 12`"
                    )
                if len(words) > order or number.strip("0") == "":
                    continue
                if len(number.lstrip("0")) >= len(str(LARGEST)):
                    raise UserError(
                        f"{path}:{line}: {number:.20} ...: counts go to {LARGEST:,}; check that it"
                        " is the right file, or scale its counts down"
                    )
                if BEGIN in words[1:] or END in words[:-1]:
                    raise UserError(
                        f"{path}:{line}: {text!r:.60} goes on across the end of a sentence; count"
                        " sentence by sentence"
                    )
                named = [each if each in (BEGIN, END) else self.rename(each) for each in words]
                if not RESERVED.isdisjoint(
                    named[named[0] == BEGIN : len(named) - (named[-1] == END)]
                ):
                    self.reserved += int(number) if len(words) == 1 else 0
                    continue
                yield tuple(named), int(number)

    def check_sums(self, counts: Sequence[dict]) -> None:
        """Raise UserError where counts of an order are too many together."""
        for n, ngrams in enumerate(counts, 1):
            if sum(ngrams.values()) > LARGEST:
                raise UserError(
                    f"{self.paths[0]}: the counts of {n} words go beyond {LARGEST:,} together;"
                    " scale them down"
                )

    def gather(self, counts: Sequence[dict], ids: dict[str, int]) -> list[tuple]:
        """Return the n-grams of the orders from 2 in suffix order: rows for `append_rows`."""
        size, result, keys = len(ids), [], []
        for ngrams in counts:
            rows = np.array(
                [[self.look_up(ids, word, words) for word in words] for words in ngrams]
            )
            suffix = self.find(rows[:, 1:], keys, size, ngrams)
            self.find(rows[:, :-1], keys, size, ngrams)
            key = suffix * size + rows[:, 0]
            by_key = np.argsort(key)
            keys.append(key[by_key])
            each = np.fromiter(ngrams.values(), dtype=np.int64, count=len(ngrams))
            result.append((rows[by_key, 0], suffix[by_key], each[by_key]))
        return result

    def look_up(self, ids: dict[str, int], word: str, words: Sequence[str]) -> int:
        """Return the word's number; UserError where it has no count of its own."""
        if word not in ids:
            raise self.lacking(word, words)
        return ids[word]

    def find(self, rows: np.ndarray, keys: Sequence[np.ndarray], size: int, ngrams) -> np.ndarray:
        """Return (N,) the index of each of `rows` (N, n) among the n-grams of n words."""
        place = rows[:, -1].astype(np.int64)
        for n, key in zip(range(2, rows.shape[1] + 1), keys, strict=False):
            wanted = place * size + rows[:, -n]
            place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
            if len(absent := np.flatnonzero(key[place] != wanted)):
                raise self.lacking("its beginning or its end", list(ngrams)[absent[0]])
        return place

    def lacking(self, what: str, words: Sequence[str]) -> UserError:
        """Return the error on an n-gram whose parts were not counted."""
        return UserError(
            f"{self.paths[0]}: `{' '.join(words)}` is counted, {what} is not; give counts of all"
            " orders, without cut-offs (--min-count leaves out what is rare)"
        )
