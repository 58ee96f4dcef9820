"""Profile of a collection of texts: characters, words, signs of tokenisation."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from lmtools.text.scripts import split_units
from lmtools.text.unify import UNIFIERS, unifier

# How Moses writes what has a meaning in its files; the last three in older versions.
ESCAPES = {
    "apos": "'",
    "quot": '"',
    "amp": "&",
    "lt": "<",
    "gt": ">",
    "#91": "[",
    "#93": "]",
    "#124": "|",
}
ESCAPES |= {"bra": "[", "ket": "]", "bar": "|"}
ESCAPED = rf"&({'|'.join(ESCAPES)});|(?<!\S)@-@(?!\S)"
APOSTROPHES = "'’‘‛ʼ＇"
FREE = 0.2  # of the other side's punctuation, from which a side is written with punctuation


@dataclass(frozen=True)
class Sign:
    """Sign of tokenisation: `pattern` matches it, `rate` a word is usual, `undo` replaces it."""

    label: str
    pattern: re.Pattern
    rate: float
    undo: Callable[[re.Match], str]


SIGNS = {
    "pieces": Sign(
        "subword marks",
        re.compile(r"(?<=\S)@@(?: |$)|▁| ##(?=\w)"),
        rate=0.002,
        undo=lambda match: "",
    ),
    "escapes": Sign(
        "escapes of Moses's tokeniser",
        re.compile(ESCAPED),
        rate=0.0005,
        undo=lambda match: ESCAPES.get(match[1], "-"),
    ),
    # French puts a space before ; : ? ! as people write it
    "spaces": Sign(
        "spaces before commas and full stops",
        re.compile(r"(?<=\S)\s[,.](?!\S)"),
        rate=0.01,
        undo=lambda match: match[0],
    ),
}


@dataclass
class Profile:
    """Counts of a collection of texts; `first`: where each character or sign came first; `whole`:
    the `wanted` texts that came. Characters are of text with pieces joined, words as they stand.
    """

    name: str
    path: str
    lines: int = 0
    words: Counter = field(default_factory=Counter)
    characters: Counter = field(default_factory=Counter)
    signs: Counter = field(default_factory=Counter)  # of tokenisation, by name
    first: dict[str, str] = field(default_factory=dict)
    starts: Counter = field(default_factory=Counter)  # first words, of the first lines only
    whole: set[str] = field(default_factory=set)
    split: Callable[[str], list[str]] = split_units

    def add(
        self,
        place: str,
        text: str,
        wanted: Callable[[str], bool] | None = None,
        bare: Callable[[str], str] = str,
    ) -> None:
        """Count one text: its `wanted` words, the characters that `bare` leaves."""
        words = self.split(text)
        self.lines += 1
        for name, sign in SIGNS.items():
            if count := len(sign.pattern.findall(text)):
                self.signs[name] += count
                self.first.setdefault(name, place)
        for sign in SIGNS.values() if self.signs else ():
            text = sign.pattern.sub(sign.undo, text)
        text = bare(text)
        for character in set(text).difference(self.first):
            self.first[character] = place
        self.characters.update(text)
        self.words.update(words if wanted is None else filter(wanted, words))
        if words and self.lines <= 1000:
            self.starts[words[0]] += 1

    def letters(self, chosen: Callable[[str], bool]) -> int:
        return sum(count for character, count in self.characters.items() if chosen(character))

    @property
    def spaces(self) -> int:
        """About how many words it has (of a long text, `words` has only some)."""
        return self.letters(str.isspace) + self.lines

    @property
    def case(self) -> str | None:
        """lower, upper or mixed; None for scripts without case."""
        upper, lower = self.letters(str.isupper), self.letters(str.islower)
        if not upper + lower:
            return None
        part = upper / (upper + lower)
        return "lower" if part < 0.002 else "upper" if part > 0.998 else "mixed"

    def punctuation(self) -> Counter:
        """Return its punctuation and symbols; apostrophes belong to words."""
        return Counter(
            {
                c: n
                for c, n in self.characters.items()
                if unicodedata.category(c)[0] in "PS" and c not in APOSTROPHES
            }
        )

    def punctuates(self, other: "Profile") -> bool:
        """Return whether it has punctuation of its own, not far less than `other`."""
        ours, theirs = (
            side.punctuation().total() / max(1, side.characters.total()) for side in (self, other)
        )
        return ours > FREE * theirs

    def unify(self, names: Collection[str]) -> "Profile":
        """Return the profile in these forms of Unicode, accents apart if one joins them."""
        forms = [name for name in names if name in UNIFIERS]
        change, characters = unifier(forms), Counter()
        for character, count in self.characters.items():
            text = character if character.isspace() else change(character)
            for part in unicodedata.normalize("NFD", text) if "nfc" in forms else text:
                characters[part] += count
        return replace(self, characters=characters) if forms else self

    def foreign_punctuation(self, other: "Profile") -> Counter:
        return Counter(
            {
                mark: count
                for mark, count in self.punctuation().items()
                if other.characters[mark] / other.spaces < 0.1 * count / self.spaces
            }
        )
