"""Normalisation of case, punctuation, apostrophes, Unicode form and white space, stored beside
every model trained on its output.
"""

import dataclasses
import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from lmtools.atomic import atomic_text
from lmtools.config import dump, from_yaml
from lmtools.errors import UserError

CHOICES = {
    "case": ("keep", "lower", "upper"),
    "punctuation": ("keep", "strip"),
    "apostrophe": ("keep", "straight", "strip"),
    "unicode_form": ("none", "NFC", "NFKC"),
}
APOSTROPHES = "'’‘‛ʼ´`′＇"
# U+2581 marks the beginning of a word in pieces; in text it counts as white space, so that words
# stay words
MARK = "▁"
FILE = "normaliser.yaml"
RULES = 1  # part of the hash: raise it when the same settings give another text


class Blanking(dict):
    """A table, filled as characters turn up, of punctuation to spaces; apostrophes stay."""

    def __missing__(self, point: int) -> str:
        letter = chr(point)
        self[point] = (
            " " if unicodedata.category(letter)[0] in "PS" and letter not in APOSTROPHES else letter
        )
        return self[point]


STRAIGHTEN = str.maketrans(dict.fromkeys(APOSTROPHES, "'"))
REMOVE = str.maketrans(dict.fromkeys(APOSTROPHES))
BLANK = Blanking()
QUOTES = re.compile(f"[{APOSTROPHES}]{{2,}}")  # ``quoted'' holds quotation marks, not apostrophes


@dataclass(frozen=True)
class Normaliser:
    """A function text -> text with single spaces, none around; twice changes nothing more.

    `punctuation="strip"` turns punctuation and symbols (Unicode categories P and S) into spaces,
    except an apostrophe inside a word; `apostrophe="straight"` maps typographic apostrophes,
    accents and backticks to `'`, "strip" deletes them all.
    """

    case: str = "keep"
    punctuation: str = "keep"
    apostrophe: str = "keep"
    unicode_form: str = "none"

    def __post_init__(self):
        for name, allowed in CHOICES.items():
            if (value := getattr(self, name)) not in allowed:
                raise UserError(
                    f"normaliser: setting '{name}' is {value!r}; choose one of {', '.join(allowed)}"
                )

    def __call__(self, text: str) -> str:
        once = self.apply(text)
        if text.isascii():
            return once
        # a change of case can leave a form that composes anew
        while (again := self.apply(once)) != once:
            once = again
        return once

    def apply(self, text: str) -> str:
        """One pass over `text`, in an order that lets accents count as apostrophes before
        compatibility forms take them apart.
        """
        if not text.isascii():
            # JSON can hold half a surrogate pair
            text = text.encode("utf-8", "replace").decode("utf-8").replace(MARK, " ")
        if self.apostrophe != "keep":
            text = text.translate(STRAIGHTEN if self.apostrophe == "straight" else REMOVE)
        if self.unicode_form != "none":
            text = unicodedata.normalize(self.unicode_form, text)
        if self.case != "keep":
            text = text.lower() if self.case == "lower" else text.upper()
        if self.punctuation == "keep":
            return " ".join(text.split())
        words = QUOTES.sub(" ", text.translate(BLANK)).split()
        return " ".join(bare for word in words if (bare := word.strip(APOSTROPHES)))

    @property
    def hash(self) -> str:
        """Hexadecimal SHA-256 of the settings and of the version of their meaning."""
        told = json.dumps([RULES, dataclasses.asdict(self)], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()

    def save(self, directory) -> None:
        """Write `normaliser.yaml` into `directory`."""
        with atomic_text(Path(directory) / FILE) as stream:
            stream.write(dump(self))

    @classmethod
    def load(cls, directory) -> "Normaliser":
        """The normaliser saved in `directory`; UserError if there is none."""
        return from_yaml(cls, Path(directory) / FILE)


NORMALISERS = {
    "none": Normaliser(),
    "cased": Normaliser(apostrophe="straight", unicode_form="NFC"),
    "librispeech": Normaliser("lower", "strip", "straight", "NFKC"),
}
