"""Interface of subword schemes, over the reserved ids that all schemes share."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import yaml

from lmtools.base.atomic import atomic_directory
from lmtools.base.errors import UserError
from lmtools.base.seal import add_yaml_seal
from lmtools.text import MARK, Normaliser

PAD, EOS, UNK, BOS, MASK = range(5)
SPECIALS = ("<pad>", "</s>", "<unk>", "<s>", "<mask>")
DESCRIPTION = "subword.yaml"


class LeftOut(NamedTuple):
    """Distinct items that a list leaves out, and their share of the text (None: counts unknown)."""

    items: int
    share: float | None

    @classmethod
    def of(cls, items: int, occurrences: int, all_occurrences: int) -> "LeftOut":
        return cls(items, occurrences / all_occurrences if all_occurrences else None)


def room(vocab_size: int | None, most: int) -> int:
    """Return how many items fit beside the specials, `most` if unbounded; UserError if none."""
    if vocab_size is None:
        return most
    if vocab_size <= len(SPECIALS):
        raise UserError(
            f"a vocabulary of {vocab_size} has no room beside its {len(SPECIALS)} specials; give a"
            " larger --vocab-size"
        )
    return vocab_size - len(SPECIALS)


class Subword:
    """A vocabulary with the segmentation of text into it; immutable, and its ids depend on nothing
    but its content and its normaliser.

    A scheme is a subclass with `scheme`, `file` (the name of its content in the directory),
    `learn`, `read`, `segment`, `surfaces`. `vocabulary` holds the piece of each id, the specials
    first; `begins` (size,) says which pieces begin a word. `left_out` is known of a list where it
    is made, and written into its directory for whoever reads it there.
    """

    scheme = ""
    file = ""
    joiner = ""
    left_out: LeftOut | None = None
    words = None  # what a spelled vocabulary (lmtools.text.subword.spelled) predicts

    def __init__(self, content: bytes, normaliser: Normaliser):
        self.content, self.normaliser = content, normaliser
        self.vocabulary: tuple[str, ...] = self.read(content)
        self.begins = self.beginnings()
        parts = (self.scheme, normaliser.hash, hashlib.sha256(content).hexdigest())
        self.hash = hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def __reduce__(self):
        return type(self), (self.content, self.normaliser)

    @classmethod
    def learn(
        cls, lines: Iterable[str], vocab_size: int | None, min_count=1, sentences=1_000_000
    ) -> tuple[bytes, LeftOut | None]:
        """Return the content learnt from normalised `lines`, and what a list leaves out of them."""
        raise NotImplementedError

    def read(self, content: bytes) -> tuple[str, ...]:
        """Take up the content; return each id's piece. ValueError or RuntimeError if damaged."""
        raise NotImplementedError

    def beginnings(self) -> np.ndarray:
        """Return which pieces begin a word, bool (size,)."""
        return np.array([piece.startswith(MARK) for piece in self.vocabulary])

    def segment(self, texts: Sequence[str]) -> list[list[int]]:
        raise NotImplementedError

    def surfaces(self, text: str) -> list[str]:
        """Return the pieces of a normalised text as they stand in it, unknown ones too."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Return the number of ids, specials included."""
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text` after normalisation, without BOS and EOS; none for ""."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Iterable[str]) -> list[list[int]]:
        """Return `encode` of every text, much faster than one by one."""
        return self.segment([self.normaliser(text) for text in texts])

    def pieces(self, text: str) -> list[str]:
        """Return the pieces of `text` after normalisation, one an id, unknown ones as written."""
        return self.surfaces(self.normaliser(text))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of `ids` without specials, but that an unknown piece reads `<unk>`."""
        pieces = [self.vocabulary[i] for i in ids if i not in (PAD, EOS, BOS, MASK)]
        return self.joiner.join(pieces).replace(MARK, " ").strip()

    def unknown(self, text: str) -> int:
        """Return the number of pieces of `text` that the vocabulary does not hold."""
        return self.encode(text).count(UNK)

    def knows(self, word: str) -> bool:
        return not self.unknown(word)

    def lengths(self, ids: Sequence[int]) -> list[int]:
        """Return the number of ids of each word in `ids` of a whole text."""
        if not len(ids):
            return []
        starts = np.flatnonzero(self.begins[np.asarray(ids)])
        bounds = np.concatenate(([0], starts[starts > 0], [len(ids)]))
        return np.diff(bounds).tolist()

    def save_to(self, directory, follow: bool = True) -> None:
        """Write the model into `directory`, whole or not at all; an older subword model there is
        replaced, anything else refused; a link is followed if `follow`, else replaced.
        """
        with atomic_directory(directory, DESCRIPTION, follow) as temporary:
            (temporary / self.file).write_bytes(self.content)
            self.normaliser.save(temporary)
            description = {"scheme": self.scheme, "size": self.size, "hash": self.hash}
            if self.left_out:
                description["left_out"] = self.left_out._asdict()
            (temporary / DESCRIPTION).write_text(
                add_yaml_seal(yaml.safe_dump(description, sort_keys=False)), encoding="utf-8"
            )
