"""One language model of an experiment: what was trained, on what, how long, and how well it
predicts each text.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lmtools.report.style import Names, Printed, Style

HUGE = 700.0  # a loss whose perplexity is no number any more
NGRAM, ESULMO, OTHER = "ngram", "esulmo", "other"  # families of a Style
PIECES = {"bpe": "BPE pieces", "unigram": "unigram pieces", "char": "characters", "word": "words"}
VALID, TEST = "valid", "test"
UPDATES = {"updates": "step", "epochs": "epoch", "seconds": "seconds"}


@dataclass(frozen=True)
class Vocabulary:
    """Input units of a model, and the words that it predicts where these spell words."""

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
    def kind(self) -> str:
        """Return the kind of its perplexities, a key of lms.KINDS."""
        kinds = (tree["kind"] for tree in self.figures.values() if tree.get("kind"))
        return next(kinds, "perplexity")

    @property
    def hash(self) -> str:
        """Return the model's hash, as its perplexities say; nothing where they do not."""
        signatures = (tree.get("signature") or {} for tree in self.figures.values())
        return next((str(tree["model"]) for tree in signatures if tree.get("model")), "")

    def ppl(self, name: str) -> float | None:
        return self.figures.get(name, {}).get("word_ppl")

    def last(self, key: str):
        """Return the last value of `key` in its training; None where it is not known."""
        return next((line[key] for line in reversed(self.lines) if key in line), None)

    @property
    def tokens(self) -> int | None:
        """Tokens that training saw, repeated ones too; of an n-gram model those of its text."""
        counted = self.config.get("kind") == NGRAM
        return self.config.get("tokens") if counted else self.last("tokens")

    @property
    def quantities(self) -> dict[str, float | None]:
        """Return what it is and took in figures; None of what is not known."""
        losses = [line["valid_loss"] for line in self.lines if "valid_loss" in line]
        return {
            "parameters": self.parameters,
            "tokens": self.tokens,
            **{name: self.last(key) for name, key in UPDATES.items()},
            "tokens a second": self.pace,
            "milliseconds a step": step_time(self.lines),
            "best valid loss": min(losses, default=None),
        }

    @property
    def pace(self) -> float | None:
        """Tokens a second of training, validation and saving not counted."""
        timed = next((line for line in reversed(self.lines) if "seconds" in line), None)
        return timed["tokens"] / timed["seconds"] if timed and timed["seconds"] else None


def models_of(names: Names, parts: Mapping[str, Mapping]) -> dict[str, Model]:
    """Return every model with a directory or a perplexity, in printing order."""
    figures, families = {}, names.style.families
    for (name, text), tree in parts["ppl"].items():
        figures.setdefault(name, {})[text] = tree
    models = []
    for name in sorted(parts["configs"].keys() | figures.keys()):
        config = parts["configs"].get(name, {})
        facts = config.get("facts") or {}
        known = facts.get("vocabulary")
        vocabulary = known and Vocabulary(
            known.get("scheme", "?"), known.get("size", 0), known.get("words")
        )
        family = family_of(config, vocabulary, names.style)
        title = facts.get("family") if family == OTHER else None
        model = Model(
            name,
            config,
            parts["learning"].get(name, ()),
            figures.get(name, {}),
            vocabulary=vocabulary,
            parameters=facts.get("parameters") or sum(config.get("counts", ())) or None,
            label=names.label(name),
            shown=replace(families[family], label=title or families[family].label),
            place=list(families).index(family),
        )
        models.append(model)
    return {model.name: model for model in ordered(models)}


def family_of(config: Mapping, vocabulary: Vocabulary | None, style: Style) -> str:
    """Return the family of a model in a Style; ELMo of pieces is a family of its own."""
    family = config.get("kind") or config.get("model")
    if family == "elmo" and vocabulary and vocabulary.words and vocabulary.scheme != "char":
        return ESULMO
    return family if family in style.families else OTHER


def step_time(lines: Sequence[Mapping]) -> float | None:
    """Return the milliseconds a training step between the first and the last line of a training."""
    seen = [line for line in lines if "train_loss" in line and "seconds" in line]
    if not seen or seen[-1]["step"] == seen[0]["step"]:
        return None
    return 1000 * (seen[-1]["seconds"] - seen[0]["seconds"]) / (seen[-1]["step"] - seen[0]["step"])


def curve(lines: Sequence[Mapping]) -> np.ndarray:
    """Return seconds of training, interpolated, and finite validation perplexities, (., 2)."""
    steps = [(ln["step"], ln["seconds"]) for ln in lines if "train_loss" in ln and "seconds" in ln]
    losses = [
        (line["step"], line["valid_loss"]) for line in lines if line.get("valid_loss", HUGE) < HUGE
    ]
    if not losses or not steps or not steps[-1][1]:
        return np.empty((0, 2))
    (at, losses), (step, seconds) = np.array(losses).T, np.array([(0, 0), *steps]).T
    return np.stack([np.interp(at, step, seconds), np.exp(losses)], axis=1)


def ordered(models: Iterable[Model]) -> list[Model]:
    """Return the models by family, then by name, numbers in it by size."""

    def place(model):
        parts = re.split(r"(\d+)", model.name)  # text and numbers in turn
        return model.place, [int(part) if part.isdecimal() else part for part in parts]

    return sorted(models, key=place)


def list_absent(home: Path, models: Mapping[str, Model]) -> Iterator[str]:
    """Yield a line for models without perplexity where others have one."""
    unmeasured = [name for name, model in models.items() if not model.figures]
    if unmeasured and len(unmeasured) < len(models):
        yield (
            f"{home}/ppl/{', '.join(unmeasured)}: absent, so their perplexity is not known"
            " (`lmtools ppl --out` writes it)"
        )


def sets(models: Iterable[Model]) -> list[str]:
    """Return the sets that perplexities are known of: valid, test, then others."""
    names = {name for model in models for name in model.figures}
    return [name for name in (VALID, TEST) if name in names] + sorted(names - {VALID, TEST})


def list_sizes(models: Iterable[Model]) -> Iterator[str]:
    """Yield the sentences and words of each set; counts that differ stand side by side."""
    for name in sets(models):
        trees = (model.figures[name] for model in models if name in model.figures)
        counts = dict.fromkeys((tree.get("sentences"), tree.get("words")) for tree in trees)
        sizes = [
            f"{lines:,} sentences, {words:,} words" for lines, words in counts if lines and words
        ]
        yield f"{name}: {' or '.join(sizes) or 'size unknown'}"


def list_rules(models: Iterable[Model]) -> Iterator[str]:
    """Yield the rules of the perplexities, with the models of each where there are several."""
    rules: dict[str, list[str]] = {}
    for model in models:
        trees = model.figures.values()
        for rule in dict.fromkeys(tree["rules"] for tree in trees if tree.get("rules")):
            rules.setdefault(rule, []).append(model.name)
    for rule, names in rules.items():
        yield f"{', '.join(names)}: {rule}." if len(rules) > 1 else f"{rule[:1].upper()}{rule[1:]}."
