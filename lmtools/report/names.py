"""What systems and language models are called in print, in which order they stand, and how they are
drawn.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

# the decoder's own choice and the best of each list; no directory is called so
FIRST, ORACLE = "@first", "@oracle"
LATTICE = "lattice-"  # before the name of a system that rescored lattices
MEAN = "-mean"  # after the name of a language model whose scores were divided by their tokens
# after the name of a language model whose scores were not normalised over the vocabulary
UNNORMALISED = "-unnormalised"
LABELS = {
    FIRST: "first pass",
    ORACLE: "oracle",
    "first-pass": "first pass, tuned",
    "mbr": "MBR (no LM)",
    "ngram": "n-gram",
    "causal": "uniLM (causal)",
    "lstm": "LSTM",
    "masked": "biLM (masked)",
    "masked-shared": "biLM, shared work",
    "masked-intact": "biLM, intact input",
    "tta": "T-TA",
    "all": "all LMs",
}
STATIC = {"words": "word vectors", "tfidf": "tf-idf"}  # sentence vectors without a language model
# after the name of a language model: how its sentence vectors were made where not as a mean over
# the tokens of an intact input
VIEWS = {
    "-masked": "mask-and-predict",
    "-eos": "[EOS]",
    "-cls": "[CLS]",
    "-max": "maximum",
    "-boundaries": "with boundaries",
}


@dataclass(frozen=True)
class Look:
    """How a system is drawn: colour on light and on dark paper, marker (matplotlib's) and line, so
    that colour never stands alone.
    """

    light: str
    dark: str
    marker: str | tuple[int, int, int]
    line: str = "-"
    hollow: bool = False


@dataclass(frozen=True)
class Criterion:
    """A training criterion in print: its name in the sampling paper (Gao et al. 2021), its panel in
    figures, how it is drawn.
    """

    label: str
    panel: str
    look: Look


FULL, BINARY, CROSS = "full", "BCE, sampled", "CE, sampled and adaptive"  # panels of figures
# by the name in config.yaml, in the paper's order; a colour a family: MSE grey, BCE blue, CE orange
CRITERIA = {
    "mse": Criterion("MSE", FULL, Look("#4b5563", "#c3cad6", "s")),
    "mse-sigmoid": Criterion("MSE-sigmoid", FULL, Look("#8b93a1", "#8b93a1", "s", "--")),
    "bce": Criterion("BCE", FULL, Look("#08306b", "#cfe3fb", "o")),
    "softmax": Criterion("CE", FULL, Look("#7a2e00", "#ffdcc2", "D")),
    "bce-mcs": Criterion("BCE-MCS", BINARY, Look("#0b5cad", "#4aa0f5", "^", "--")),
    "bce-is": Criterion("BCE-IS", BINARY, Look("#2583d8", "#7fbdf8", "v", "-.")),
    "bce-cps": Criterion("BCE-CPS", BINARY, Look("#0093b3", "#35c3e0", "P", ":")),
    "bce-nce": Criterion("BCE-NCE", BINARY, Look("#4a55c7", "#9aa3ff", "X")),
    "ce-mcs": Criterion("CE-MCS", CROSS, Look("#b34700", "#f58a3c", "^", "--")),
    "ce-is": Criterion("CE-IS", CROSS, Look("#d97706", "#f7b355", "v", "-.")),
    "ce-cps": Criterion("CE-CPS", CROSS, Look("#c2410c", "#ff7a45", "P", ":")),
    "ce-nce": Criterion("CE-NCE", CROSS, Look("#b5851a", "#e8cf6a", "X")),
    "adaptive": Criterion("adaptive softmax", CROSS, Look("#00876a", "#2fcaa0", "*")),
}
CE = "softmax"
# What a sampled criterion takes where config.yaml says nothing.
SAMPLES = {"noise": "log-uniform", "samples": 8192, "drawing": "replacement", "power": 0.75}
# as they stand in names of language models
KEYS = {**{name: one.label for name, one in CRITERIA.items()}, "ce": CRITERIA[CE].label}
ANY_KEY = "|".join(sorted(KEYS, key=len, reverse=True))
TRAINED = re.compile(rf"(?:(?P<trunk>.+)-)?(?P<criterion>{ANY_KEY})(?:-(?P<rest>.+))?")


def label(name: str) -> str:
    """The printed name of a system or language model; `a+b` is a combination, `lattice-a` rescored
    lattices instead of lists.

    `lstm-bce-nce` is an LSTM trained by that criterion, `lstm-bce-nce-unigram` with that noise,
    `lstm-bce-nce-unnormalised` its scores without normalisation.
    """
    if name.startswith(LATTICE):
        return f"{short(name.removeprefix(LATTICE))}, lattice"
    if "+" in name:
        return " + ".join(map(short, name.split("+")))
    if name.endswith(MEAN):
        return f"{label(name.removesuffix(MEAN))}, mean over tokens"
    if name.endswith(UNNORMALISED):
        return f"{label(name.removesuffix(UNNORMALISED))}, unnormalised"
    if name in LABELS or not (found := TRAINED.fullmatch(name)):
        return LABELS.get(name, name)
    words = [KEYS[found["criterion"]], found["trunk"] and label(found["trunk"])]
    return ", ".join(filter(None, (" ".join(filter(None, words)), found["rest"])))


def short(name: str) -> str:
    """The printed name without what it says in parentheses, and means in one word."""
    return re.sub(r" \(.*?\)|(?<=, mean) over tokens$", "", label(name))


def viewed(system: str) -> tuple[str, str]:
    """The language model and the key of VIEWS (or nothing) of a system that makes sentence vectors:
    `causal-eos` is causal's `-eos`.
    """
    view = next((view for view in VIEWS if system.endswith(view) and system != view), "")
    return system.removesuffix(view), view


def view_label(system: str, systems: Iterable[str] = ()) -> str:
    """The printed name of one of `systems` that make sentence vectors; a model that also masks its
    input has intact input elsewhere.
    """
    lm, view = viewed(system)
    intact = not view and (lm == "masked" or f"{lm}-masked" in systems)
    name = STATIC.get(lm) or ("BERT" if lm == "bert" else short(lm))
    return " ".join(filter(None, (name, "intact" if intact else VIEWS.get(view))))


def summed(name: str) -> str:
    """The system that takes the same language models by the sum over tokens; itself if it takes
    none by the mean.
    """
    return "+".join(part.removesuffix(MEAN) for part in name.split("+"))


def feature(name: str) -> str:
    """The feature that the language model of a system of one is: `tta/token` of `tta-mean`, else
    its name.
    """
    return f"{name.removesuffix(MEAN)}/token" if name.endswith(MEAN) else name


def unnormalised(name: str) -> bool:
    """Whether a system or language model takes scores that were not normalised over the
    vocabulary.
    """
    return any(part.endswith(UNNORMALISED) for part in summed(name).split("+"))


def ordered(names: Iterable[str]) -> list[str]:
    """Names in the order of LABELS, then single ones of the user, then combinations, then `all`;
    lattices after the lists.

    Models that differ by criterion alone stand after the model that is called so, in the order of
    CRITERIA; means after their sums.
    """
    known, keys = list(LABELS), list(KEYS)

    def place(own):
        lattice, name = own.startswith(LATTICE), summed(own.removeprefix(LATTICE))
        combined = 2 if name == "all" else "+" in name
        first, plus, others = name.partition("+")
        found = None if first in LABELS else TRAINED.fullmatch(first)
        trunk = (found["trunk"] or "" if found else first) + plus + others
        criterion = keys.index(found["criterion"]) if found else -1
        return (
            lattice,
            combined,
            known.index(trunk) if trunk in known else len(known),
            name.count("+"),
            trunk,
            criterion,
            name,
            own,
        )

    return sorted(names, key=place)


# "masked-shared" is what `lmtools bench` calls a masked model whose passes over one sentence share
# their work, "masked-intact" one that makes sentence vectors in one pass over the input as it is.
# Okabe and Ito's colours, told apart by colour-blind people; the darkest are lighter on dark paper.
LOOKS = {
    FIRST: Look("#6b7280", "#a3abb8", "s", "--"),
    ORACLE: Look("#111111", "#f2f2f2", "x", ":"),
    "first-pass": Look("#8c6d46", "#c9a97e", "D", "--"),
    "mbr": Look("#b0124f", "#ff7fae", (4, 1, 0), "--"),
    "ngram": Look("#d98c00", "#f0b23c", "^"),
    "causal": Look("#0072b2", "#5ab4f0", "o"),
    "lstm": Look("#9c4a3c", "#e3a195", "p", "-."),
    "masked": Look("#d0502b", "#f58a5c", "v"),
    "masked-shared": Look("#d0502b", "#f58a5c", "H", "--"),
    "masked-intact": Look("#d0502b", "#f58a5c", "d", ":"),
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


DASHED = {"-": "--", "--": "-", "-.": ":", ":": "-."}  # the line of a mean, by that of the sum


def looks(names: Iterable[str]) -> Mapping[str, Look]:
    """The look of each name; those that LOOKS lacks take the spare ones in alphabetical order.

    A mean has the colour of the sum, whether that is there or not, a hollow marker and another
    line.
    """
    names = set(names)
    unknown = sorted({summed(name) for name in names} - LOOKS.keys())
    own = LOOKS | {name: SPARE[i % len(SPARE)] for i, name in enumerate(unknown)}
    means = {name: own[summed(name)] for name in names if summed(name) != name}
    return own | {
        name: replace(look, line=DASHED[look.line], hollow=True) for name, look in means.items()
    }


def view_looks(systems: Iterable[str]) -> dict[str, Look]:
    """The look of each system that makes sentence vectors: the colour of its language model, a view
    with marker and line of its own.
    """
    systems = list(systems)
    own = {**looks({viewed(system)[0] for system in systems} - STATIC.keys()), **STATIC_LOOKS}
    found = {}
    for system in systems:
        lm, view = viewed(system)
        marker, line = VIEW_MARKS.get(view, (own[lm].marker, own[lm].line))
        found[system] = replace(own[lm], marker=marker, line=line, hollow=bool(view))
    return found


STATIC_LOOKS = {
    "words": Look("#8c6d46", "#c9a97e", "D", "--"),
    "tfidf": Look("#6b7280", "#a3abb8", "s", "--"),
}
VIEW_MARKS = {
    "-masked": ("o", "--"),
    "-eos": (">", ":"),
    "-cls": ("<", ":"),
    "-max": ("^", "-."),
    "-boundaries": ("s", "--"),
}
