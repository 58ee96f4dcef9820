"""The values that all of the house passes around: small, frozen, torch-free."""

import copyreg
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

EMPTY: Mapping = MappingProxyType({})
# the score that rescoring ranks by; a format with room for one score holds it, or else `am`
TOTAL = "total"
# names in signatures: what only the last digits of scores and vectors depend on
NUMERICS = ("precision", "device", "rows")


def read_only(values: Mapping) -> Mapping:
    """A view of `values` that cannot be written to."""
    return MappingProxyType(values)


# values with EMPTY in them go to other processes
copyreg.pickle(MappingProxyType, lambda view: (read_only, (dict(view),)))


@dataclass(frozen=True)
class Hypothesis:
    """One transcription or translation with its named first-pass scores (natural log, higher is
    better).

    `extra` is what else its format holds (alignments, times, tokens), by name and verbatim, so that
    it can be written back. `written` is the text as the recogniser wrote it, with case, punctuation
    and digits, where `text` is another, that of language models and metrics; None where it is
    `text`.
    """

    text: str
    scores: Mapping[str, float] = field(default_factory=lambda: EMPTY)
    extra: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    written: str | None = None

    @property
    def display(self) -> str:
        """The text as the recogniser wrote it."""
        return self.text if self.written is None else self.written

    def with_text(self, text: str) -> "Hypothesis":
        """Return the hypothesis with another text; what the recogniser wrote stays, as `written`
        unless the words of both are the same.
        """
        same = self.display.split() == text.split()
        return replace(self, text=text, written=None if same else self.display)


@dataclass(frozen=True)
class NBest:
    """The hypotheses of an utterance, best first; `ref` is None where unknown ('': an empty one).

    `extra` is what else its format holds of the utterance (the source sentence, say), by name and
    verbatim. `more_refs` are references beside `ref`, as good as it, which metrics of translation
    take.
    """

    utt: str
    hyps: tuple[Hypothesis, ...]
    ref: str | None = None
    extra: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    more_refs: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, utt: str, texts: Iterable[str], ref: str | None = None, **scores: Iterable[float]
    ) -> "NBest":
        """The list of `texts`, best first, and of scores by name, one a text: `NBest.of("u1",
        texts, am=numbers)`. ValueError where there are more or fewer.
        """
        rows = zip(*(map(float, column) for column in scores.values()), strict=True)
        named = [dict(zip(scores, row, strict=True)) for row in rows]
        texts = list(texts)
        pairs = zip(texts, named if scores else [EMPTY] * len(texts), strict=True)
        return cls(utt, tuple(Hypothesis(text, own) for text, own in pairs), ref)


@dataclass(frozen=True)
class ScoreTable:
    """One language model's score of every hypothesis of a set.

    log_prob[utt] and tokens[utt] have shape (hypotheses,): natural-log probability with the end of
    sentence counted, and the number of tokens it sums over. `signature` says what made it (model
    hash, vocabulary hash, version; under the names in NUMERICS, what only rounding depends on).
    checks[utt] is what the rows of a file say of the texts they were made of
    (lmtools/formats/scores.py); None where they say nothing.
    """

    log_prob: Mapping[str, np.ndarray]
    tokens: Mapping[str, np.ndarray]
    signature: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    checks: Mapping[str, Sequence[str]] | None = None


@dataclass(frozen=True)
class SentencePair:
    """Two sentences and how similar people found them."""

    left: str
    right: str
    similarity: float | None = None


@dataclass(frozen=True)
class Arc:
    """A row of a Lattice: from state `source` to `target` with `word` (None is epsilon), its scores
    and extras.
    """

    source: int
    target: int
    word: str | None
    scores: Mapping[str, float] = field(default_factory=lambda: EMPTY)
    extra: Mapping[str, str] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True)
class Final:
    """A state in which paths may end, with the scores paid and the extras collected there."""

    state: int
    scores: Mapping[str, float] = field(default_factory=lambda: EMPTY)
    extra: Mapping[str, str] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, eq=False)
class Lattice:
    """A word lattice as columns: states 0 .. states-1, A arcs, F final states.

    Arc i leads from source[i] to target[i], both (A,) int64, with words[i] (None: epsilon) and
    scores[name][i], (A,) float64; ending in finals[j], (F,) int64 without repeats, adds
    final_scores[name][j]. Scores are natural logs, unscaled, higher is better; arcs and finals have
    the same names, 0 where the source said nothing; -inf is impossible. `times` (S,) are seconds,
    NaN where unknown. `extra` and `final_extra` are what else a format holds, by name, verbatim,
    one text an arc or final; `header` the same of the whole.
    """

    utt: str
    states: int
    start: int
    source: np.ndarray
    target: np.ndarray
    words: tuple[str | None, ...]
    scores: Mapping[str, np.ndarray]
    finals: np.ndarray
    final_scores: Mapping[str, np.ndarray]
    times: np.ndarray | None = None
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: EMPTY)
    final_extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: EMPTY)
    header: Mapping[str, str] = field(default_factory=lambda: EMPTY)

    @classmethod
    def of(
        cls,
        utt: str,
        states: int,
        start: int,
        arcs: Sequence[Arc],
        finals: Sequence[Final],
        times=None,
        header=EMPTY,
    ) -> "Lattice":
        """The lattice of rows; scores that a row does not name are 0, extras ''."""
        rows = [*arcs, *finals]
        names = list(dict.fromkeys(name for row in rows for name in row.scores))
        extras = list(dict.fromkeys(name for row in rows for name in row.extra))
        columns = [
            (
                {
                    n: np.array([row.scores.get(n, 0.0) for row in some], dtype=np.float64)
                    for n in names
                },
                {n: tuple(row.extra.get(n, "") for row in some) for n in extras},
            )
            for some in (arcs, finals)
        ]
        ids = (
            [arc.source for arc in arcs],
            [arc.target for arc in arcs],
            [final.state for final in finals],
        )
        ends = [np.array(column, dtype=np.int64) for column in ids]
        (scores, extra), (final_scores, final_extra) = columns
        words = tuple(arc.word for arc in arcs)
        times = None if times is None else np.asarray(times, dtype=np.float64)
        return cls(
            utt,
            states,
            start,
            ends[0],
            ends[1],
            words,
            scores,
            ends[2],
            final_scores,
            times,
            extra,
            final_extra,
            header,
        )

    def arcs(self) -> list[Arc]:
        """The arcs as rows."""
        scores = [
            dict(zip(self.scores, values, strict=True))
            for values in rows_of(self.scores, len(self.words))
        ]
        extras = [
            dict(zip(self.extra, values, strict=True))
            for values in rows_of(self.extra, len(self.words))
        ]
        return list(
            map(Arc, self.source.tolist(), self.target.tolist(), self.words, scores, extras)
        )

    def ends(self) -> list[Final]:
        """The final states as rows."""
        scores = [
            dict(zip(self.final_scores, values, strict=True))
            for values in rows_of(self.final_scores, len(self.finals))
        ]
        extras = [
            dict(zip(self.final_extra, values, strict=True))
            for values in rows_of(self.final_extra, len(self.finals))
        ]
        return list(map(Final, self.finals.tolist(), scores, extras))

    def take(self, arcs, finals, /, **changes) -> "Lattice":
        """The lattice of the arcs and finals with these indices, repeats allowed, in this order;
        `changes` replace further fields.
        """
        arcs, finals = np.asarray(arcs, dtype=np.int64), np.asarray(finals, dtype=np.int64)
        taken = {
            "source": self.source[arcs], "target": self.target[arcs],
            "words": picked(self.words, arcs),
            "scores": {name: column[arcs] for name, column in self.scores.items()},
            "extra": {name: picked(column, arcs) for name, column in self.extra.items()},
            "finals": self.finals[finals],
            "final_scores": {name: column[finals] for name, column in self.final_scores.items()},
            "final_extra": {name: picked(column, finals) for name,
            column in self.final_extra.items()},
        }  # fmt: skip
        return replace(self, **{**taken, **changes})

    def __eq__(self, other) -> bool:
        """Whether all fields are equal, NaN equal to itself; rows in the same order."""
        if not isinstance(other, Lattice):
            return NotImplemented
        plain = ("utt", "states", "start", "words", "extra", "final_extra", "header")
        arrays = [
            (self.source, other.source),
            (self.target, other.target),
            (self.finals, other.finals),
        ]
        named = [
            (self.scores, other.scores),
            (self.final_scores, other.final_scores),
            ({"": self.times}, {"": other.times}),
        ]
        return (
            all(getattr(self, name) == getattr(other, name) for name in plain)
            and all(np.array_equal(a, b) for a, b in arrays)
            and all(
                a.keys() == b.keys() and all(alike(a[name], b[name]) for name in a)
                for a, b in named
            )
        )

    __hash__ = None


def rows_of(columns: Mapping[str, Sequence], length: int) -> list[tuple]:
    """The columns turned into `length` rows of plain values."""
    values = [
        column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()
    ]
    return list(zip(*values, strict=True)) if values else [()] * length


def picked(values: Sequence, indices: np.ndarray) -> tuple:
    """The values at `indices`."""
    return tuple([values[i] for i in indices.tolist()])


def alike(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    """Whether two optional columns are equal, NaN equal to itself."""
    return a is b if a is None or b is None else np.array_equal(a, b, equal_nan=True)
