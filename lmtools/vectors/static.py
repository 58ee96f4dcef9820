"""Encoders without a model: averages of static word vectors from a file in the text form of GloVe
or word2vec, the oldest way to a sentence vector, and words weighted by how rare they are (tf-idf),
what overlap of words alone says of similarity.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines, sha256
from lmtools.text import NORMALISERS, Normaliser
from lmtools.text.blocks import read_text
from lmtools.version import __version__

GREATEST = float(np.finfo(np.float32).max)


class PoolingOptions(NamedTuple):
    """Options of pooling: how sentence vectors are made of a model's states.

    `layers`: `last`, `all` or numbers, 0 the embedding layer. `pool`: a name of POOLS.
    `boundaries`: mean and max take the boundary tokens in. `masked`: of masked models, each
    position's state is from a copy in which it alone is masked; else from the intact input. `unit`:
    vectors have length 1.
    """

    layers: str | tuple[int, ...] = "last"
    pool: str = "mean"
    boundaries: bool = False
    masked: bool = False
    unit: bool = False

    def choose_layers(self, last: int, source: str) -> tuple[int, ...]:
        """Return the layers' numbers, of which `last` is the last; UserError for others."""
        layers = {"last": (last,), "all": tuple(range(last + 1))}.get(self.layers, self.layers)
        missing = [layer for layer in layers if not 0 <= layer <= last]
        if missing or not layers:
            raise UserError(
                f"{source}: has the layers 0 (embedding) to {last}, no"
                f" {', '.join(map(str, missing)) or 'empty list'}; choose of these"
            )
        if self.masked and 0 in layers:
            raise UserError(
                f"{source}: layer 0 of a masked position is the mask's own embedding in any"
                " sentence; leave it or --masked out"
            )
        return layers

    @property
    def signature(self) -> dict[str, str]:
        flags = {"boundaries": self.boundaries, "masked": self.masked, "unit": self.unit}
        return {"pool": self.pool} | {name: "yes" for name, value in flags.items() if value}


LAST_MEAN = PoolingOptions()


class Encoder(ABC):
    """Texts in, vectors out; a sentence is what `prepare` made: hashable, equal for equals."""

    signature: dict[str, str]
    layers: tuple[int, ...]
    rows: int | None = None  # model rows of a batch; None: it computes each sentence by itself
    ragged = False  # sentences of any costs go through together without padding

    @abstractmethod
    def prepare(self, texts: Sequence[str]) -> list[tuple]:
        """Return one sentence a text: normalised and segmented."""

    def cost(self, sentence: tuple) -> int:
        """Return a sentence's rows in a batch, at least 1; equal costs have equal shapes."""
        return max(1, len(sentence))

    @abstractmethod
    def vectors(self, sentences: Sequence[tuple]) -> np.ndarray:
        """Return vectors, float32 (B, layers, D); narrower layers are filled with zeros."""

    def describe_missing(self) -> str:
        """Return what words of the prepared texts have no vector, for people; empty: all have."""
        return ""


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
        signature = {"lm": "words", "model": sha256(self.path)[:16]}
        signature |= {"normaliser": self.normaliser.hash[:16], "pool": "mean"}
        return signature | {"version": __version__}

    def prepare(self, texts: Iterable[str]) -> list[tuple[str, ...]]:
        """Return each text's words that the file has, sorted, reading it for new ones; UserError
        without any.
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
        """Return a word's parts with vectors, in the spelling that the file has best."""
        known = [
            (way, tuple(part for part in way if part in self.held)) for way in spell_word(word)
        ]
        return max(known, key=lambda pair: len(pair[1]) / len(pair[0]))[1]

    def load(self, wanted: set[str]) -> None:
        """Hold the vectors of the wanted words; only their lines become numbers."""
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
    """Return spellings of a word: `it's`; treebanks' `it 's`, `do n't`; cut, `it s`."""
    head, apostrophe, tail = word.rpartition("'")
    if not apostrophe:
        return [(word,)]
    negated = [(word[:-3], "n't")] if word.endswith("n't") else []
    ways = [(word,), *negated, (head, f"'{tail}"), tuple(word.split("'"))]
    return [way for way in (tuple(filter(None, way)) for way in ways) if way]


def read_shape(path) -> tuple[int | None, int]:
    """Read the number of words, where line 1 says it, and of values of a vector."""
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
    """Parse a line's vector, float32 (width,); None if its word has a space."""
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
    try:
        return abs(float(field)) <= GREATEST
    except ValueError:
        return False


class Tfidf(Encoder):
    """An encoder whose sentence vector has, for each word, tf × idf, scaled to length 1; zeros for
    a sentence without words.

    tf: how often the word is in the sentence; idf = ln((1 + n) / (1 + df)) + 1, df of n texts
    having the word (scikit-learn's smooth idf; Spärck Jones 1972). The texts counted are the lines
    of `text_path` (plain, .gz, .xz), else the distinct texts that were prepared. A word is what the
    normaliser leaves between spaces, by default in lower case and without punctuation. The vectors'
    values are those of the words of all prepared texts, sorted; any other word would be 0 in all of
    them. UserError for a text without words.
    """

    layers = (0,)

    def __init__(self, text_path=None, normaliser: Normaliser | None = None):
        self.path, self.normaliser = text_path, normaliser or NORMALISERS["librispeech"]
        # texts counted, and how many of them have each word
        self.total, self.frequency = 0, Counter()
        self.seen: set[str] = set()  # texts prepared
        self.column: dict[str, int] = {}
        self.idf = np.zeros(0)
        if text_path is not None:
            self.count(line for _, line in read_text(text_path))
            if not self.frequency:
                raise UserError(f"{text_path}: no words to count; give a text, a sentence a line")

    @property
    def width(self) -> int:
        return len(self.column)

    @property
    def signature(self) -> dict[str, str]:
        counts = [self.total, [(word, self.frequency[word]) for word in self.column]]
        model = hashlib.sha256(json.dumps(counts).encode()).hexdigest()
        signature = {"lm": "tfidf", "model": model[:16]}
        signature |= {"normaliser": self.normaliser.hash[:16], "pool": "mean"}
        return signature | {"version": __version__}

    def prepare(self, texts: Iterable[str]) -> list[tuple[str, ...]]:
        """Return each text's words, sorted; new ones change width and, without a file, idf."""
        texts = list(texts)
        split = [tuple(sorted(self.normaliser(text).split())) for text in texts]
        if self.path is None:
            self.count(text for text in dict.fromkeys(texts) if text not in self.seen)
        self.seen.update(texts)
        words = sorted(self.column.keys() | {word for words in split for word in words})
        self.column = {word: i for i, word in enumerate(words)}
        having = np.array([self.frequency[word] for word in self.column], dtype=np.float64)
        self.idf = np.log((1 + self.total) / (1 + having)) + 1
        return split

    def count(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.total += 1
            self.frequency.update(set(self.normaliser(text).split()))

    def vectors(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """Return vectors of length 1 or 0, float32 (B, 1, width), of prepared sentences."""
        weights = np.zeros((len(sentences), self.width))
        for row, words in zip(weights, sentences, strict=True):
            np.add.at(row, [self.column[word] for word in words], 1.0)
        weights *= self.idf
        lengths = np.linalg.norm(weights, axis=1, keepdims=True)
        np.divide(weights, lengths, out=weights, where=lengths > 0)
        return weights.astype(np.float32)[:, None]
