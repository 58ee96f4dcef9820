"""Normalisation of case, punctuation, apostrophes, Unicode form and white space, or by the rules
that Whisper is measured with, stored beside every model trained on its output.

Case is changed as people write the language, where its rules are not those of all others (Turkish,
Azerbaijani, Lithuanian; Unicode's SpecialCasing.txt). `detokeniser` puts tokenised translations in
plain form again.
"""

import hashlib
import itertools
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.config import LATE, as_tree, dump, from_yaml
from lmtools.base.errors import UserError, explain_missing
from lmtools.base.grammar import parse_pairs
from lmtools.text.scripts import split_letters
from lmtools.text.whisper import NAMES as WHISPER_NAMES
from lmtools.text.whisper import apply_rules, name_version

# What becomes other letters before the change of case that all languages share.
TURKIC = {"lower": (("I\u0307", "i"), ("İ", "i"), ("I", "ı")), "upper": (("i", "İ"),)}
# Lithuanian keeps the dot of i and j below an accent.
ACCENTS = "\u0300\u0301\u0303"
LITHUANIAN = {
    "lower": (
        *zip("ÌÍĨ", (f"i\u0307{accent}" for accent in ACCENTS), strict=True),
        *(
            (f"{letter}{accent}", f"{letter.lower()}\u0307{accent}")
            for letter in "IJĮ"
            for accent in ACCENTS
        ),
    ),
    "upper": tuple((f"{letter}\u0307", letter.upper()) for letter in "ijį"),
}
# Greek has no accents in upper case
GREEK = (*zip("άέήίόύώΐΰΆΈΉΊΌΎΏ\u0301", (*"ΑΕΗΙΟΥΩΪΫΑΕΗΙΟΥΩ", ""), strict=True),)
# Language -> case -> what is replaced, in this order, and by what
CASINGS: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "none": {"lower": (), "upper": ()},
    "tr": TURKIC,
    "az": TURKIC,
    "lt": LITHUANIAN,
    "el": {"lower": (), "upper": GREEK},
}
LANGUAGE = re.compile(r"[a-z]{2,3}")


def change_case(text: str, case: str, language: str = "none") -> str:
    """Return the text in lower or upper case by the rules of the language."""
    for old, new in CASINGS[language][case]:
        text = text.replace(old, new)
    return text.lower() if case == "lower" else text.upper()


def detokeniser(language: str) -> Callable[[str], str]:
    """Return a function from tokenised to detokenised lines of `language` (ISO 639), subword marks
    joined; UserError without sacremoses.
    """
    if not LANGUAGE.fullmatch(language):
        raise UserError(f"--detokenise {language}: not a language code; write en, de, fr ..")
    try:
        from sacremoses import MosesDetokenizer
    except ImportError as error:
        raise explain_missing(error, f"--detokenise {language}") from None
    rules = MosesDetokenizer(lang=language)
    return lambda text: rules.detokenize(text.split())


CHOICES = {
    "case": ("keep", "lower", "upper"),
    "punctuation": ("keep", "strip"),
    "apostrophe": ("keep", "straight", "strip"),
    "unicode_form": ("none", "NFC", "NFKC"),
}
# Settings that only NAME:option=value gives
MORE_CHOICES = {
    "language": tuple(CASINGS),
    "whisper": ("none", *WHISPER_NAMES.values()),
    "letters": ("keep", "split"),
}
SETTINGS = CHOICES | MORE_CHOICES
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
ANY_APOSTROPHE = re.compile(f"[{APOSTROPHES}]")
QUOTES = re.compile(f"[{APOSTROPHES}]{{2,}}")  # ``quoted'' holds quotation marks, not apostrophes


@dataclass(frozen=True)
class Normaliser:
    """A function text -> text with single spaces, none around; without `whisper`, twice changes
    nothing more.

    `punctuation="strip"` turns punctuation and symbols (Unicode categories P and S) into spaces,
    except an apostrophe inside a word; `apostrophe="straight"` maps typographic apostrophes,
    accents and backticks to `'`, "strip" deletes them all. `language`: whose rules of case hold.
    `whisper` names rules of lmtools.text.whisper, which are applied before all others;
    `letters="split"` parts letters of scripts that put no blanks between words, behind all others.
    """

    case: str = "keep"
    punctuation: str = "keep"
    apostrophe: str = "keep"
    unicode_form: str = "none"
    language: str = field(default="none", metadata=LATE)
    whisper: str = field(default="none", metadata=LATE)
    letters: str = field(default="keep", metadata=LATE)

    def __post_init__(self):
        for name, allowed in SETTINGS.items():
            if (value := getattr(self, name)) not in allowed:
                raise UserError(
                    f"normaliser: setting '{name}' is {value!r}; choose one of {', '.join(allowed)}"
                )

    def __call__(self, text: str) -> str:
        if self.whisper != "none":
            text = apply_rules(text, self.whisper)
        once = self.apply(text)
        if text.isascii():
            return once
        # a change of case can leave a form that composes anew
        while (again := self.apply(once)) != once:
            once = again
        return split_letters(once) if self.letters == "split" else once

    def words(self, text: str) -> list[str]:
        if self.keeps_ascii and text.isascii():
            return text.split()
        return self(text).split()

    @cached_property
    def keeps_ascii(self) -> bool:
        parts = self.case, self.punctuation, self.apostrophe, self.whisper
        return parts == ("keep", "keep", "keep", "none")

    def apply(self, text: str) -> str:
        """Apply one pass, in which accents count as apostrophes before forms take them apart."""
        if not text.isascii():
            # JSON can hold half a surrogate pair
            text = text.encode("utf-8", "replace").decode("utf-8").replace(MARK, " ")
        if self.apostrophe != "keep":
            text = text.translate(STRAIGHTEN if self.apostrophe == "straight" else REMOVE)
        if self.unicode_form != "none":
            text = unicodedata.normalize(self.unicode_form, text)
        if self.case != "keep":
            text = change_case(text, self.case, self.language)
        if self.punctuation == "keep":
            return " ".join(text.split())
        text = text.translate(BLANK)
        if not ANY_APOSTROPHE.search(text):
            return " ".join(text.split())
        words = QUOTES.sub(" ", text).split()
        return " ".join(bare for word in words if (bare := word.strip(APOSTROPHES)))

    @property
    def hash(self) -> str:
        """Hexadecimal SHA-256 of the settings and of the version of their meaning."""
        settings = json.dumps([RULES, as_tree(self)], sort_keys=True)
        return hashlib.sha256(settings.encode()).hexdigest()

    @property
    def wordwise(self) -> bool:
        """Return whether words, normalised one by one, are those of the normalised text."""
        return self.whisper == "none"

    @property
    def spec(self) -> str:
        """NAME or NAME:option=value,... by which `parse_normaliser` makes it."""
        specs = []
        for name, base in NORMALISERS.items():
            changes = [key for key in SETTINGS if getattr(self, key) != getattr(base, key)]
            options = ",".join(f"{key}={getattr(self, key)}" for key in changes)
            specs.append((len(changes), f"{name}:{options}" if options else name))
        return min(specs, key=lambda spec: spec[0])[1]

    @property
    def signature(self) -> str:
        """Return what normalises alike: `spec`, and the version of Whisper's rules if used."""
        return self.spec if self.whisper == "none" else f"{self.spec}({name_version()})"

    def save(self, directory) -> None:
        """Write `normaliser.yaml` into `directory`."""
        with atomic_text(Path(directory) / FILE) as stream:
            stream.write(dump(self))

    @classmethod
    def load(cls, directory) -> "Normaliser":
        """Return the normaliser saved in `directory`; UserError if there is none."""
        return from_yaml(cls, Path(directory) / FILE)


NORMALISERS = {
    "none": Normaliser(),
    "cased": Normaliser(apostrophe="straight", unicode_form="NFC"),
    "librispeech": Normaliser("lower", "strip", "straight", "NFKC"),
    **{name: Normaliser(whisper=rules) for name, rules in WHISPER_NAMES.items()},
}


# What makes case alike, by the options of lmtools convert: the first of those that do as well
CASES = {
    f"--normaliser none:language={language} " * (language != "none") + f"--case {case}": Normaliser(
        case=case, language=language
    )
    for language in ("none", "tr", "lt", "el")
    for case in ("lower", "upper")
}


def choose_case(sides: Iterable[Iterable[str]]) -> str:
    """Return that of CASES by which collections of texts share most words: the first where none has
    a letter that another rule writes otherwise.
    """
    sides = [
        Counter(word for text in texts for word in text.translate(BLANK).split()) for texts in sides
    ]
    sides = [side for side in sides if side]
    if all(word.isascii() for side in sides for word in side):
        return next(iter(CASES))

    def count_shared(name: str) -> float:
        changed: list[Counter] = []
        for side in sides:
            changed.append(Counter())
            for word, count in side.items():
                changed[-1][CASES[name](word)] += count
        pairs = itertools.permutations(changed, 2)
        return sum(sum(n for w, n in a.items() if w in b) / a.total() for a, b in pairs)

    return max(CASES, key=count_shared)


def parse_normaliser(spec: str) -> Normaliser:
    """Return the normaliser that NAME or NAME:option=value,... means; UserError for other names."""
    name, _, rest = spec.partition(":")
    if name not in NORMALISERS:
        raise UserError(
            f"normaliser {spec}: none is called {name!r}; known are {', '.join(NORMALISERS)}"
        )
    known = "; ".join(f"{key}={'|'.join(allowed)}" for key, allowed in SETTINGS.items())
    remedy = f"its options are: {known}"
    options = parse_pairs(
        filter(None, rest.split(",")), f"normaliser {spec}: option", remedy=remedy
    )
    options = {key.replace("-", "_"): value for key, value in options.items()}
    if unknown := [key for key in options if key not in SETTINGS]:
        raise UserError(f"normaliser {spec}: there is no option {unknown[0]!r}; {remedy}")
    return replace(NORMALISERS[name], **options)
