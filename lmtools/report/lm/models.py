"""One language model of a language-modelling experiment: what was trained, on what, how long, and
how well it predicts each text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp

from lmtools.report.page.labels import HUGE
from lmtools.report.style import Look, Printed, Style

NGRAM, ESULMO, OTHER = "ngram", "esulmo", "other"  # families of a Style
PIECES = {"bpe": "BPE pieces", "unigram": "unigram pieces", "char": "characters", "word": "words"}
VALID, TEST = "valid", "test"


@dataclass(frozen=True)
class Vocabulary:
    """Vocabulary of a model: its input units (`scheme` and their number) and, where these spell
    words, the number of words that it predicts; specials counted.
    """

    scheme: str
    size: int
    words: int | None = None

    def __str__(self) -> str:
        read = f"{self.size:,} {PIECES.get(self.scheme, self.scheme)}"
        return f"{read}, {self.words:,} words" if self.words else read


@dataclass(frozen=True, eq=False)
class Model:
    """A language model by the directory lm/NAME and what was measured of it; a part that is absent
    is empty or None.

    `figures`: what `lmtools ppl` wrote, by set; `lines`: metrics.jsonl; `parameters`: numbers that
    were learnt, of n-grams the n-grams; `shown`: how its family is printed and drawn; `place`: of
    the family among others; `label`: the model's printed name.
    """

    name: str
    config: Mapping
    lines: Sequence[Mapping]
    figures: Mapping[str, Mapping]
    vocabulary: Vocabulary | None
    parameters: int | None
    label: str
    shown: Printed
    place: int

    @property
    def family(self) -> str:
        """The family's printed name."""
        return self.shown.label

    @property
    def look(self) -> Look:
        """The look of its family."""
        return self.shown.look

    @property
    def is_ngram(self) -> bool:
        """Return whether this is an n-gram model."""
        return self.config.get("kind") == NGRAM

    @property
    def kind(self) -> str:
        """Return the kind of its perplexities: `perplexity`, `two-way perplexity` or
        `pseudo-perplexity`.
        """
        return next(
            (tree["kind"] for tree in self.figures.values() if tree.get("kind")), "perplexity"
        )

    def ppl(self, name: str) -> float | None:
        """Return the word perplexity on a set."""
        return self.figures.get(name, {}).get("word_ppl")

    def last(self, key: str):
        """Return the last value of `key` in its training: `step`, `epoch`, `tokens`, `seconds`;
        None where it is not known.
        """
        return next((line[key] for line in reversed(self.lines) if key in line), None)

    @property
    def tokens(self) -> int | None:
        """Tokens that training saw, repeated ones counted again; of an n-gram model those of its
        text.
        """
        return self.config.get("tokens") if self.is_ngram else self.last("tokens")

    @property
    def validations(self) -> list[tuple[int, float]]:
        """Updates and perplexity of a prediction at each validation, as far as it is finite."""
        found = [(line["step"], line.get("valid_loss", HUGE)) for line in self.lines]
        return [(step, exp(loss)) for step, loss in found if loss < HUGE]

    @property
    def pace(self) -> float | None:
        """Tokens a second of training, validation and saving not counted."""
        tokens, seconds = next(
            ((one["tokens"], one["seconds"]) for one in reversed(self.lines) if "seconds" in one),
            (0, 0),
        )
        return tokens / seconds if seconds else None


def family_of(config: Mapping, vocabulary: Vocabulary | None, style: Style) -> str:
    """Return the family of a model among those of a Style; words spelled by anything but characters
    make an ELMo a subword ELMo.
    """
    family = config.get("kind") or config.get("model")
    if family == "elmo" and vocabulary and vocabulary.words and vocabulary.scheme != "char":
        return ESULMO
    return family if family in style.families else OTHER


def ordered(models: Iterable[Model]) -> list[Model]:
    """Models by family, then by name, numbers in it by size."""

    def place(model):
        parts = re.split(r"(\d+)", model.name)  # text and numbers in turn
        return model.place, [int(part) if part.isdecimal() else part for part in parts]

    return sorted(models, key=place)


def vocabulary_of(facts: Mapping) -> Vocabulary | None:
    """Return a model's vocabulary by the facts in its config.yaml; None where they lack it."""
    said = facts.get("vocabulary")
    return said and Vocabulary(said.get("scheme", "?"), said.get("size", 0), said.get("words"))
