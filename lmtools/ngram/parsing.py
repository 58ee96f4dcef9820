"""Sections of ARPA files parsed a block of lines at a time: by arrays of their bytes, or where a
line is not of the plain form by its fields.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from lmtools.base.errors import UserError

PART = 8  # bytes of a word hashed at once
FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], dtype=np.uint64)  # odd
MASKS = np.array([(1 << (8 * size)) - 1 for size in range(PART + 1)], dtype=np.uint64)
TAB, NEWLINE, SPACE, MINUS, POINT, ZERO = b"\t\n -.0"
ZEROS, NINES, HIGH_BITS = (
    np.uint64(int.from_bytes(bytes([byte] * PART), "little")) for byte in (ZERO, 0x76, 0x80)
)
# of eight digits, a byte each, to numbers of two, of four and of eight: mask, factor, shift
FOLDS = [
    tuple(map(np.uint64, (mask, 10**width * 2 ** (8 * width) + 1, 8 * width)))
    for width, mask in ((1, 0x0F0F0F0F0F0F0F0F), (2, 0x00FF00FF00FF00FF), (4, 0x0000FFFF0000FFFF))
]
DIGITS = 15  # so many are exact in a float64, and the quotient by a power of ten is rounded once
POWERS = 10.0 ** np.arange(DIGITS + 1)
# as KenLM and SRILM read numbers: float() takes underscores and the digits of any script too
NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|-inf(?:inity)?", re.IGNORECASE
)
ROUNDING = 1e-4  # log10 of a probability above 1 that is rounding
HIGHEST = 99.0  # log10 of a back-off weight
SHOWN = 60  # characters of a line in a message


class WordTable:
    """Ids of words by the bytes of the words: a hash table with open addressing."""

    def __init__(self, ids: Mapping[str, int]):
        encoded = [word.encode() for word in ids]
        lengths = np.array(list(map(len, encoded)))
        ends = np.cumsum(lengths)
        text = b"".join(encoded)
        hashed = hash_words(text, ends - lengths, lengths)
        self.shift = np.uint64(64 - max(4, (4 * len(ids)).bit_length()))
        slots = 1 << (64 - int(self.shift))
        self.hashed, self.ids = np.zeros(slots, dtype=np.uint64), np.full(slots, -1)
        left, at = np.arange(len(ids)), (hashed >> self.shift).astype(np.int64)
        while len(left):  # of those that meet in a slot one stays, the others move on
            free = self.ids[at] < 0
            self.ids[at[free]] = left[free]
            stays = self.ids[at] == left
            self.hashed[at[stays]] = hashed[left[stays]]
            left, at = left[~stays], (at[~stays] + 1) % slots
        self.distinct = len(np.unique(hashed)) == len(ids)

    def find(self, text: bytes, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return the ids of the words of `text` that begin at `starts`; -1: not here."""
        hashed = hash_words(text, starts, lengths)
        at = (hashed >> self.shift).astype(np.int64)
        ids = self.ids[at]
        left = np.flatnonzero((self.hashed[at] != hashed) & (ids >= 0))
        while len(left):
            at[left] = (at[left] + 1) % len(self.ids)
            ids[left] = self.ids[at[left]]
            left = left[(self.hashed[at[left]] != hashed[left]) & (ids[left] >= 0)]
        return ids


def hash_words(text: bytes, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return (W,) uint64 hashes of pieces of `text`; of one length up to 8 bytes they differ."""
    padded = text + bytes(PART)
    parts = np.ndarray(len(text) + 1, "<u8", padded, strides=(1,))  # the 8 bytes from each place
    first = parts[starts] & MASKS[np.minimum(lengths, PART)]
    hashed = first * FACTORS[0] ^ lengths.astype(np.uint64) * FACTORS[1]
    hashed ^= hashed >> np.uint64(32)
    rows, done = np.flatnonzero(lengths > PART), PART
    while len(rows):
        part = parts[starts[rows] + done] & MASKS[np.minimum(lengths[rows] - done, PART)]
        mixed = (hashed[rows] * FACTORS[1]) ^ part
        mixed *= FACTORS[0]
        hashed[rows] = mixed ^ (mixed >> np.uint64(29))
        done += PART
        rows = rows[lengths[rows] > done]
    return hashed * FACTORS[1]


class NewWords:
    """Ids of words that are told one by one, as those of unigrams, which get new ones."""

    distinct = True

    def __init__(self, ids: dict[str, int]):
        self.ids = ids

    def find(self, text: bytes, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return the ids of words that begin at `starts`; all -1 for no UTF-8, or <UNK>."""
        pieces = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
        try:
            words = [text[start:end].decode() for start, end in pieces]
        except UnicodeDecodeError:
            words = ["<UNK>"]
        if "<UNK>" in words or "" in words:
            return np.full(len(starts), -1)
        ids = self.ids
        return np.array([ids.setdefault(word, len(ids)) for word in words], dtype=np.int64)


def parse_section(text: bytes, n: int, table: WordTable | NewWords):
    """Return (R, n) ids and (2, R) numbers (no logs; 1 for none) of whole usual lines; None where a
    line has another form, an unknown word or an unusual number.
    """
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(letters <= SPACE)
    kinds = letters[ends]
    last = np.flatnonzero(kinds == NEWLINE)
    first = np.concatenate(([0], last[:-1] + 1))
    fields = last - first + 1
    weighed = fields == n + 2
    if not (table.distinct and len(last) and (weighed | (fields == n + 1)).all()):
        return None
    places = first[:, None] + np.arange(n + 1)  # of probability and words among the fields
    expected = np.array([TAB, *[SPACE] * (n - 1)], dtype=np.uint8)
    if (kinds[places[:, :-1]] != expected).any() or (kinds[first[weighed] + n] != TAB).any():
        return None
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts
    numbers = np.concatenate((first, last[weighed]))
    logs = parse_numbers(text, starts[numbers], lengths[numbers])
    if logs is None:
        return None
    probs, weights = logs[: len(last)], logs[len(last) :]
    if probs.max() > ROUNDING or weights.max(initial=0) > HIGHEST:
        return None
    wanted = places[:, 1:].ravel()
    words = table.find(text, starts[wanted], lengths[wanted])
    if (words < 0).any():
        return None
    values = np.ones((2, len(last)))
    # 1e-99, which files have for 0, is 0 beside any other
    values[0], values[1, weighed] = 10.0 ** np.minimum(probs, 0), 10.0**weights
    return words.reshape(-1, n), values


def parse_numbers(text: bytes, starts: np.ndarray, lengths: np.ndarray):
    """Return (M,) float64 of numbers of sign, digits and point; None for other or long ones."""
    letters = np.frombuffer(bytes(PART) + text + bytes(DIGITS + 1), dtype=np.uint8)
    starts = starts + PART
    negative = letters[starts] == MINUS
    starts, lengths = starts + negative, lengths - negative
    value, decimals, usual = parse_usual(letters, starts, lengths)
    if len(rest := np.flatnonzero(~usual)):
        others = parse_places(letters, starts[rest], lengths[rest])
        if others is None:
            return None
        value[rest], decimals[rest] = others
    value /= POWERS[decimals]
    return np.negative(value, out=value, where=negative)


def parse_usual(letters: np.ndarray, starts: np.ndarray, lengths: np.ndarray):
    """Return the digits of numbers as one integer, float64 (M,), how many of them are decimals, and
    which numbers have the usual form that these hold of: a digit, a point, 1 to 8 digits more.

    The last eight bytes become one integer at once, as digits of which neighbours are joined.
    """
    parts = np.ndarray(len(letters) - PART + 1, "<u8", letters, strides=(1,))
    decimals = lengths - 2
    usual = (decimals > 0) & (decimals <= PART) & (letters[starts + 1] == POINT)
    decimals[~usual] = 0
    digits = (parts[starts + lengths - PART] ^ ZEROS) & ~MASKS[PART - decimals]
    before = (letters[starts] - np.uint8(ZERO)).astype(np.float64)
    usual &= (before <= 9) & (((digits + NINES) | digits) & HIGH_BITS == 0)
    for mask, factor, shift in FOLDS:
        digits = ((digits & mask) * factor) >> shift
    value = before * POWERS[decimals] + digits
    return value, decimals, usual


def parse_places(letters: np.ndarray, starts: np.ndarray, lengths: np.ndarray):
    """Return digits as one integer (M,), and decimals, place by place; None as `parse_numbers`."""
    most = int(lengths.max(initial=0))
    if most > DIGITS + 1 or lengths.min(initial=1) < 1:
        return None
    value, points = np.zeros(len(starts)), np.zeros(len(starts), dtype=np.int64)
    decimals = np.zeros(len(starts), dtype=np.int64)
    for place in range(most):
        letter = letters[starts + place]
        inside = lengths > place
        point = inside & (letter == POINT)
        digit = letter - np.uint8(ZERO)
        take = inside & ~point
        if (digit[take] > 9).any():
            return None
        value = np.where(take, value * 10 + digit, value)
        decimals += take & (points > 0)
        points += point
    if (points > 1).any() or (lengths - points < 1).any() or (lengths - points > DIGITS).any():
        return None
    return value, decimals


def parse_lines(name, lines: Sequence[tuple[int, str]], n: int, ids: dict):
    """Return `parse_section` of numbered lines of any blanks, tabs and numbers; unigrams get ids.
    UserError at the first that is no n-gram of file `name`.
    """
    try:
        return parse_rows([line for _, line in lines], n, ids)
    except ValueError as error:
        if len(lines) == 1:
            raise UserError(f"{name}:{lines[0][0]}: {error}; write the file again") from None
    for line in lines:
        parse_lines(name, [line], n, ids)
    raise UserError(f"{name}: its section of order {n} is damaged; write the file again")


def parse_rows(lines: Sequence[str], n: int, ids: dict):
    """Return `parse_section` of lines; ValueError says why one of them is no n-gram."""
    rows = [split_fields(line) for line in lines]
    if odd := next((row for row in rows if not n < len(row) <= n + 2), None):
        if odd[0].startswith("\\"):
            raise ValueError(
                f"{odd[0]:.{SHOWN}} comes before the last n-gram that `ngram {n}=` counts"
            )
        raise ValueError(
            f"expected log10 probability, TAB, {n} words of the unigrams, TAB, back-off"
        )
    words = [word for row in rows for word in row[1 : n + 1]]
    if "<UNK>" in words:
        words = ["<unk>" if word == "<UNK>" else word for word in words]  # as KenLM reads it
    if n == 1:
        for word in words:
            ids.setdefault(word, len(ids))
    numbers = [read_log(row[0]) for row in rows]
    weights = [read_log(row[-1]) if len(row) > n + 1 else 0.0 for row in rows]
    logs = np.array([numbers, weights])
    if logs[0].max(initial=0) > ROUNDING:
        raise ValueError(f"{rows[0][0]:.{SHOWN}} is the logarithm of a probability above 1")
    if logs[1].max(initial=0) > HIGHEST:
        raise ValueError(f"{rows[0][-1]:.{SHOWN}} is no logarithm of a back-off weight")
    try:
        word_ids = np.fromiter(map(ids.__getitem__, words), np.int64, len(words))
    except KeyError as error:
        raise ValueError(f"the word {error.args[0]!r:.{SHOWN}} is not among the unigrams") from None
    # 1e-99, which files have for 0, is 0 beside any other
    return word_ids.reshape(-1, n), 10.0 ** np.minimum(logs, [[0.0], [HIGHEST]])


def split_fields(line: str) -> list[str]:
    """Split a line at blanks and tabs, as SRILM and KenLM do: words may hold other white space."""
    fields = line.replace("\t", " ").split(" ")
    return [field for field in fields if field] if "" in fields else fields


def read_log(text: str) -> float:
    """Read the number that a field spells; ValueError where it spells none."""
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{text[:SHOWN]!r} is no number")
    return float(text)
