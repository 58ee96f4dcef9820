"""What systems and language models are called in print, in which order they stand, and how they are drawn."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FIRST, ORACLE = "@first", "@oracle"  # the decoder's own choice and the best of each list; no directory is called so
LATTICE = "lattice-"  # before the name of a system that rescored lattices
LABELS = {
    FIRST: "first pass",
    ORACLE: "oracle",
    "first-pass": "first pass, tuned",
    "ngram": "n-gram",
    "causal": "uniLM (causal)",
    "lstm": "LSTM",
    "masked": "biLM (masked)",
    "masked-shared": "biLM, shared work",
    "tta": "T-TA",
    "all": "all LMs",
}


def label(name: str) -> str:
    """The printed name of a system or language model; `a+b` is a combination, `lattice-a` rescored lattices instead of lists."""
    if name.startswith(LATTICE):
        return f"{label(name.removeprefix(LATTICE)).partition(' (')[0]}, lattice"
    if "+" in name:
        return " + ".join(label(part).partition(" (")[0] for part in name.split("+"))
    return LABELS.get(name, name)


def ordered(names: Iterable[str]) -> list[str]:
    """Names in the order of LABELS, then single ones of the user, then combinations, then `all`; lattices after the lists."""
    known = list(LABELS)

    def place(name):
        lattice, name = name.startswith(LATTICE), name.removeprefix(LATTICE)
        combined = 2 if name == "all" else "+" in name
        return lattice, combined, known.index(name) if name in known else len(known), name.count("+"), name

    return sorted(names, key=place)


@dataclass(frozen=True)
class Look:
    """How a system is drawn: colour on light and on dark paper, marker and line, so that colour never stands alone."""

    light: str
    dark: str
    marker: str
    line: str = "-"


# "masked-shared" is what `lmtools bench` calls a masked model whose passes over one sentence share their work.
# Okabe and Ito's colours, told apart by colour-blind people; the darkest are lighter on dark paper.
LOOKS = {
    FIRST: Look("#6b7280", "#a3abb8", "s", "--"),
    ORACLE: Look("#111111", "#f2f2f2", "x", ":"),
    "first-pass": Look("#8c6d46", "#c9a97e", "D", "--"),
    "ngram": Look("#d98c00", "#f0b23c", "^"),
    "causal": Look("#0072b2", "#5ab4f0", "o"),
    "lstm": Look("#9c4a3c", "#e3a195", "p", "-."),
    "masked": Look("#d0502b", "#f58a5c", "v"),
    "masked-shared": Look("#d0502b", "#f58a5c", "H", "--"),
    "tta": Look("#00876a", "#2fcaa0", "*"),
    "tta+ngram": Look("#b5568f", "#e59cc6", "P"),
    "all": Look("#6a4fb3", "#b3a1ee", "X"),
}
SPARE = (
    Look("#7a8f00", "#c3d64a", ">", "-."),
    Look("#2f8fbf", "#8fd0f5", "<", "-."),
    Look("#3d6b52", "#94c9ab", "h", "-."),
    Look("#7f4f9e", "#cda6e6", "d", "-."),
    Look("#5c6b9e", "#aab6e0", "8", "-."),
    Look("#a0522d", "#e0a98c", "1", "-."),
    Look("#00707f", "#6fd0dc", "2", "-."),
)


def looks(names: Iterable[str]) -> Mapping[str, Look]:
    """The look of each name; those that LOOKS lacks take the spare ones in alphabetical order."""
    unknown = sorted(set(names) - LOOKS.keys())
    return LOOKS | {name: SPARE[i % len(SPARE)] for i, name in enumerate(unknown)}
