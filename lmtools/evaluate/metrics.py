"""The metrics; each is a function of statistics that add up over utterances, so that tuning and the
bootstrap only sum arrays.

METRICS["wer"].statistics(ref, hyps) has one row a hypothesis; METRICS["wer"].score(rows.sum(0)) is
the corpus-level figure. A metric with options is METRICS["NAME:option=value,..."].
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pairs
from lmtools.evaluate.edits import Alignment, Counts, align
from lmtools.evaluate.sacre import (
    BLEU_ORDER,
    CHRF_ORDER,
    TOKENISERS,
    Sacre,
    bleu,
    chrf,
    sentence_bleu,
    ter,
)
from lmtools.text.scripts import HAN
from lmtools.types import EMPTY
from lmtools.version import __version__


def words(text: str) -> list[str]:
    """Return the words of `text`: what stands between white space."""
    return text.split()


def characters(text: str) -> str:
    """Return the characters of `text`, counting one space between words, as jiwer does."""
    return " ".join(text.split())


def characters_alone(text: str) -> str:
    """Return the characters of `text` without white space, as icefall counts them for AISHELL."""
    return "".join(text.split())


def mixed(text: str) -> list[str]:
    """Return the Chinese characters of `text` one by one, and its other words, as mixed error
    rates of Chinese and English count them (SEAME, ASRU 2019's code-switching challenge).
    """
    return HAN.sub(r" \g<0> ", text).split()


@dataclass(frozen=True)
class ErrorRate:
    """WER, CER or MER in percent; statistics are substitutions, deletions, insertions and reference
    length.

    `rules` is what the signature says beside the rest. `choices`: option -> value, the default
    first -> the fields that it changes.
    """

    title: str
    unit: str
    split: Callable[[str], Sequence[str]]
    rules: str = ""
    choices: Mapping[str, Mapping[str, Mapping]] = field(default_factory=lambda: EMPTY, hash=False)
    lower_is_better = True
    width = 4

    def statistics(self, ref: str, hyps: Sequence[str]) -> np.ndarray:
        """Return substitutions, deletions, insertions, reference length: int (hypotheses, 4)."""
        return self.sum_up([self.align(ref, hyp) for hyp in hyps])

    def align(self, ref: str, hyp: str) -> Alignment:
        """Return a hypothesis aligned in the metric's units; UserError for several references."""
        if not isinstance(ref, str):
            raise UserError(
                f"{len(ref)} references of an utterance: {self.title} takes one; give one, or take"
                " bleu, chrf or ter"
            )
        return align(self.split(ref), self.split(hyp))

    def sum_up(self, alignments: Sequence[Alignment]) -> np.ndarray:
        """Return `statistics` of hypotheses that are aligned already."""
        counts = [alignment.counts for alignment in alignments]
        rows = [(c.substitutions, c.deletions, c.insertions, c.length) for c in counts]
        return np.array(rows, dtype=np.int64).reshape(-1, self.width)

    def score(self, totals: np.ndarray) -> np.ndarray:
        """Return percent (...,) from summed statistics (..., 4)."""
        totals = np.asarray(totals)
        return 100 * totals[..., :3].sum(-1) / np.maximum(totals[..., 3], 1)

    def length(self, totals: np.ndarray) -> np.ndarray:
        """Return the units of references (...,) from statistics (..., 4)."""
        return totals[..., 3]

    def gain(self, statistics: np.ndarray) -> np.ndarray:
        """Return the quality of each hypothesis, higher is better: minus its errors."""
        return -statistics[..., :3].sum(-1)

    def cap(self, statistics: np.ndarray) -> np.ndarray:
        """Return statistics without insertions beyond as many errors as the reference has units."""
        beyond = statistics[..., :3].sum(-1) - np.maximum(statistics[..., 3], 1)
        capped = statistics.copy()
        capped[..., 2] -= np.maximum(beyond, 0)
        return capped

    def describe(self, total: np.ndarray) -> str:
        """Return the counts behind a score, in words."""
        counts = Counts(*map(int, total))
        split = f"{counts.substitutions} sub, {counts.deletions} del, {counts.insertions} ins"
        return f"{split}; {counts.length} {self.unit}"

    def change(self, fields: Mapping) -> "ErrorRate":
        return replace(self, **fields)

    @property
    def signature(self) -> str:
        """Return the rules and the version by which the figure can be computed again."""
        rules = f"case:mixed|norm:none|nrefs:1|missing:deleted{self.rules}"
        return f"metric:{self.title.lower()}|{rules}|version:lmtools-{__version__}"


class Metrics(dict[str, ErrorRate | Sacre]):
    """The metrics by name; [spec] is also NAME:option=value,..., else UserError."""

    def __missing__(self, spec: str) -> ErrorRate | Sacre:
        return find_metric(spec)[1]


@functools.cache
def find_metric(spec: str) -> tuple[str, ErrorRate | Sacre]:
    """Find the metric of NAME or NAME:option=value,..., and its one name without defaults."""
    name, _, rest = spec.partition(":")
    if name not in METRICS:
        raise UserError(f"no metric is called {name!r:.40}; known are {', '.join(METRICS)}")
    metric = METRICS[name]
    known = f"{name} takes {describe_options(metric.choices) or 'no options'}"
    options = parse_pairs(filter(None, rest.split(",")), f"metric {spec:.60}: option", remedy=known)
    for option, value in options.items():
        if (name, option) == ("wer", "rules"):
            known = "sctk's sclite counts by NIST's rules (lmtools convert --to trn)"
        if value not in metric.choices.get(option, ()):
            raise UserError(f"metric {spec!r:.60}: no option {option}={value:.40}; {known}")
    chosen = {
        option: options[option]
        for option, values in metric.choices.items()
        if option in options and options[option] != next(iter(values))
    }
    fields: dict = {}
    for option, value in chosen.items():
        fields |= metric.choices[option][value]
    assigned = ",".join(f"{option}={value}" for option, value in chosen.items())
    return f"{name}:{assigned}" if chosen else name, metric.change(fields)


def describe_metrics() -> str:
    names = (
        f"{name} ({options})" if (options := describe_options(metric.choices)) else name
        for name, metric in METRICS.items()
    )
    return ", ".join(names)


def describe_options(choices: Mapping[str, Mapping]) -> str:
    return ", ".join(f"{option}={'|'.join(values)}" for option, values in choices.items())


LOWERCASE = {"no": {}, "yes": {"lowercase": True}}  # sacreBLEU's option, of BLEU and chrF

METRICS = Metrics(
    wer=ErrorRate("WER", "words", words),
    cer=ErrorRate(
        "CER",
        "characters",
        characters,
        rules="|blanks:yes",
        choices={"blanks": {"yes": {}, "no": {"split": characters_alone, "rules": "|blanks:no"}}},
    ),
    mer=ErrorRate("MER", "words and characters", mixed, rules="|units:han+words"),
    bleu=Sacre(
        "BLEU",
        "BLEU",
        2 + 2 * BLEU_ORDER,
        bleu,
        sentence_score=sentence_bleu,
        choices={
            "tokenize": {name: {"tokenize": name} for name in TOKENISERS},
            "lowercase": LOWERCASE,
            "effective_order": {"no": {}, "yes": {"effective_order": True}},
        },
    ),
    chrf=Sacre(
        "chrF",
        "CHRF",
        3 * CHRF_ORDER,
        chrf,
        unit="characters",
        choices={
            "word_order": {"0": {}, "1": {"word_order": 1}, "2": {"word_order": 2}},
            "lowercase": LOWERCASE,
        },
    ),
    ter=Sacre(
        "TER",
        "TER",
        2,
        ter,
        lower_is_better=True,
        choices={
            "normalized": {"no": {}, "yes": {"normalized": True}},
            "asian": {"no": {}, "yes": {"asian_support": True}},
        },
    ),
)


def find_aligner(metric: str) -> ErrorRate:
    """Find what aligns texts in a metric's units: its error rate, or that of its tokens."""
    measure = METRICS[metric]
    if isinstance(measure, ErrorRate):
        return measure
    split = characters_alone if measure.unit == "characters" else measure.tokenise
    return ErrorRate(measure.title, measure.unit, split)


METRIC_HELP = f"NAME or NAME:option=value,... of {describe_metrics()}"
