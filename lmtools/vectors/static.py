"""Averages of static word vectors from a file in the text form of GloVe or word2vec, the oldest way
to a sentence vector.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines, sha256
from lmtools.text import NORMALISERS, Normaliser
from lmtools.vectors.base import Encoder
from lmtools.version import __version__

GREATEST = float(np.finfo(np.float32).max)


class StaticVectors(Encoder):
    """An encoder whose sentence vector is the mean of the vectors of the words that the file has,
    zeros if it has none of them.

    `path`: lines `WORD NUMBER...`, plain, .gz or .xz, with (word2vec) or without (GloVe) a first
    line `COUNT DIMENSION`; of a word that comes twice the first line counts. Words are looked up as
    the normaliser leaves them: by default in lower case and without punctuation; one with an
    apostrophe whole if the file has it so, else in parts (`spell_word`). Only vectors of words that
    occur in the prepared texts are held. UserError, with the line, for a file of another form.
    """

    layers = (0,)

    def __init__(self, path, normaliser: Normaliser | None = None):
        self.path, self.normaliser = path, normaliser or NORMALISERS["librispeech"]
        self.count, self.width = read_shape(path)
        self.held: dict[str, np.ndarray] = {}
        self.sought: set[str] = set()  # what the file has been searched for
        self.words = 0  # in all texts prepared so far
        # those of them that have no vector, with how often they occur
        self.missing: Counter[str] = Counter()

    @cached_property
    def signature(self) -> dict[str, str]:
        """What, besides the words, the vectors depend on."""
        signature = {"lm": "words", "model": sha256(self.path)[:16]}
        signature |= {"normaliser": self.normaliser.hash[:16], "pool": "mean"}
        return signature | {"version": __version__}

    def prepare(self, texts: Iterable[str]) -> list[tuple[str, ...]]:
        """Return the words of each text as the file has them, sorted; reads the file when the texts
        have words it was not yet searched for.

        UserError where no word of any text has a vector.
        """
        split = [self.normaliser(text).split() for text in texts]
        counts = Counter(word for words in split for word in words)
        wanted = {part for word in counts for way in spell_word(word) for part in way} - self.sought
        if wanted:
            self.load(wanted)
        if counts and not self.held:
            raise UserError(
                f"{self.path}: none of the {len(counts)} words of the texts, as"
                f" '{next(iter(counts))}', is there; give vectors of their language, of words in"
                " lower case"
            )
        known = {word: self.spelt(word) for word in counts}
        self.words += counts.total()
        self.missing.update({word: count for word, count in counts.items() if not known[word]})
        return [tuple(sorted(part for word in words for part in known[word])) for words in split]

    def spelt(self, word: str) -> tuple[str, ...]:
        """Return the parts of a word that have vectors, in the first of the spellings of which the
        file has the largest share.
        """
        known = [
            (way, tuple(part for part in way if part in self.held)) for way in spell_word(word)
        ]
        return max(known, key=lambda pair: len(pair[1]) / len(pair[0]))[1]

    def load(self, wanted: set[str]) -> None:
        """Hold the vectors of the wanted words; only their lines are split into numbers, since
        files have millions.
        """
        header, number = self.count is not None, 0
        for number, line in read_lines(self.path):
            word = line.partition(" ")[0]
            if word in wanted and word not in self.held and not (header and number == 1):
                vector = parse_vector(self.path, number, line, self.width)
                if vector is not None:
                    self.held[word] = vector
        if header and number - 1 < self.count:
            raise UserError(
                f"{self.path}: {number - 1} words, but line 1 says {self.count}; the file is cut"
                " short, fetch it again"
            )
        self.sought |= wanted

    def describe_missing(self):
        if not self.missing:
            return ""
        share = f"{self.missing.total():,} of {self.words:,} words of distinct texts"
        often = ", ".join(word for word, _ in self.missing.most_common(5))
        return f"{share} have no vector, most often {often}"

    def vectors(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """Return the means, float32 (B, 1, D), of prepared sentences."""
        result = np.zeros((len(sentences), 1, self.width), dtype=np.float32)
        for row, words in zip(result, sentences, strict=True):
            if words:
                row[0] = np.mean([self.held[word] for word in words], axis=0, dtype=np.float64)
        return result


def spell_word(word: str) -> list[tuple[str, ...]]:
    """Return the ways in which a file may have a word: `it's`; as treebanks take it apart, `it 's`
    and `do n't`; cut at apostrophes, `it s`.
    """
    head, apostrophe, tail = word.rpartition("'")
    if not apostrophe:
        return [(word,)]
    negated = [(word[:-3], "n't")] if word.endswith("n't") else []
    ways = [(word,), *negated, (head, f"'{tail}"), tuple(word.split("'"))]
    return [way for way in (tuple(filter(None, way)) for way in ways) if way]


def read_shape(path) -> tuple[int | None, int]:
    """Read the number of words, where the first line says it, and of values of each vector;
    UserError for a file of another form.
    """
    for number, line in read_lines(path):
        fields = line.split()
        counts = len(fields) == 2 and all(f.isascii() and f.isdigit() for f in fields)
        if counts and int(fields[1]):
            return int(fields[0]), int(fields[1])
        if len(fields) < 2:
            raise UserError(
                f"{path}:{number}: no word with its vector; give lines WORD NUMBER..., as GloVe and"
                " word2vec have"
            )
        parse_vector(path, number, line, len(fields) - 1)
        return None, len(fields) - 1
    raise UserError(f"{path}: empty; give lines WORD NUMBER..., as GloVe and word2vec have")


def parse_vector(path, number: int, line: str, width: int) -> np.ndarray | None:
    """Parse the vector on a line, float32 (width,); None if its word goes on after the first space,
    as some do in glove.840B.
    """
    fields = line.split()
    extra = len(fields) - 1 - width
    if extra > 0 and not all(map(is_numeric, fields[1 : 1 + extra])):
        return None
    if extra:
        raise UserError(
            f"{path}:{number}: {len(fields) - 1} numbers, not {width} as in line 1; the file is"
            " damaged, fetch it again"
        )
    wrong = [field for field in fields[1:] if not is_numeric(field)]
    if wrong:
        raise UserError(
            f"{path}:{number}: '{wrong[0]}' is not a number; give lines WORD NUMBER..., as GloVe"
            " and word2vec have"
        )
    return np.array(fields[1:], dtype=np.float32)


def is_numeric(field: str) -> bool:
    """Return whether a field is a number that float32 can hold."""
    try:
        return abs(float(field)) <= GREATEST
    except ValueError:
        return False
