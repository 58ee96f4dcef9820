"""The values that all of the house passes around: small, frozen, torch-free."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.grammar import (
    EMPTY,
    PLAIN,
    check_kind,
    check_mapping,
    check_numbers,
    check_text,
    check_whole,
    list_items,
    list_texts,
)

# the score that rescoring ranks by; a format with room for one score holds it, or else `am`
TOTAL = "total"
PHRASES = "phrases"  # the score of the words that a glossary has
EAR = "ear"  # the column of a second recogniser, for which there are default weights
SESSION = "session"  # extra of an utterance: what it belongs to
SPEAKER = "speaker"  # extra of an utterance: who speaks; empty: several
NO_WORD = ""  # of a slot in which nothing may have been said
# names in signatures: what only the last digits of scores and vectors depend on
NUMERICS = ("precision", "device", "rows")


@dataclass(frozen=True)
class Hypothesis:
    """One transcription or translation with its named first-pass scores (natural log, higher is
    better).

    `extra` is what else its format holds (alignments, times, tokens), by name and verbatim, so that
    it can be written back. `written` is the text as the recogniser wrote it, with case, punctuation
    and digits, where `text` is another, that of language models and metrics; None where it is
    `text`. UserError for a text that is no str, and scores that are no mapping.
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

    def with_scores(self, scores: Mapping[str, float]) -> "Hypothesis":
        """Return the hypothesis with other scores."""
        return Hypothesis(self.text, scores, self.extra, self.written)

    def __post_init__(self):
        if type(self.text) is not str:
            object.__setattr__(self, "text", check_text(self.text, "text"))
        if type(self.scores) not in PLAIN or type(self.extra) not in PLAIN:
            check_mapping(self.scores, "scores", "a mapping of names to numbers")
            check_mapping(self.extra, "extra", "a mapping of names to texts")


@dataclass(frozen=True)
class NBest:
    """The hypotheses of an utterance, best first; `ref` is None where unknown ('': an empty one).

    `extra` is what else its format holds of the utterance (the source sentence, say), by name and
    verbatim. `more_refs` are references beside `ref`, as good as it, which metrics of translation
    take. UserError for an id or reference that is no str, and hypotheses that are none.
    """

    utt: str
    hyps: tuple[Hypothesis, ...]
    ref: str | None = None
    extra: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    more_refs: tuple[str, ...] = ()

    def __post_init__(self):
        if type(self.utt) is not str:
            object.__setattr__(self, "utt", check_text(self.utt, "utt"))
        where = f"utterance {self.utt!r}"
        if self.ref is not None and type(self.ref) is not str:
            object.__setattr__(self, "ref", check_text(self.ref, f"{where}: ref"))
        if type(self.hyps) is not tuple:
            hyps = list_items(self.hyps, f"{where}: hyps", "Hypothesis")
            object.__setattr__(self, "hyps", tuple(hyps))
        for place, hyp in enumerate(self.hyps):
            if type(hyp) is not Hypothesis:
                check_kind(hyp, Hypothesis, f"{where}: hyps[{place}]", "a Hypothesis")
        if type(self.more_refs) is not tuple or self.more_refs:
            refs = list_texts(self.more_refs, f"{where}: more_refs")
            object.__setattr__(self, "more_refs", tuple(refs))
        if type(self.extra) not in PLAIN:
            check_mapping(self.extra, f"{where}: extra", "a mapping of names to texts")

    @classmethod
    def of(
        cls, utt: str, texts: Iterable[str], ref: str | None = None, **scores: Iterable[float]
    ) -> "NBest":
        """Return the list of `texts`, best first, and of scores by name, one a text:
        `NBest.of("u1", texts, am=numbers)`. UserError where there are more or fewer, and where a
        text is no str.
        """
        where = f"utterance {check_text(utt, 'utt')!r}"
        texts = list_texts(texts, f"{where}: texts")
        columns = {name: check_numbers(row, f"{where}: {name}") for name, row in scores.items()}
        for name, row in columns.items():
            if len(row) != len(texts):
                raise UserError(
                    f"{where}: {name}: {len(row)} numbers for {len(texts)} texts; give each its own"
                )
        named = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
        pairs = zip(texts, named if scores else [EMPTY] * len(texts), strict=True)
        return cls(utt, tuple(Hypothesis(text, row) for text, row in pairs), ref)


@dataclass(frozen=True)
class ScoreTable:
    """One language model's score of every hypothesis of a set.

    log_prob[utt] and tokens[utt] have shape (hypotheses,): natural-log probability with the end of
    sentence counted, and the number of tokens it sums over. `signature` says what made it (model
    hash, vocabulary hash, version; under the names in NUMERICS, what only rounding depends on).
    `lists` is the hash of the lists that it was made of (lmtools/formats/scores.py), None where
    unknown.
    """

    log_prob: Mapping[str, np.ndarray]
    tokens: Mapping[str, np.ndarray]
    signature: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    lists: str | None = None


@dataclass(frozen=True)
class Slot:
    """A place in an utterance and what may have been said there: `words` with their posteriors,
    most probable first, NO_WORD where nothing; the posteriors sum to 1.

    `chosen` is the word that the consensus, or a hypothesis, has there, `confidence` how probably
    it is right, `time` its start and end in seconds, None where unknown.
    """

    words: Mapping[str, float]
    chosen: str
    confidence: float
    time: tuple[float, float] | None = None


@dataclass(frozen=True)
class ConfusionNetwork:
    """The slots of an utterance, in order; `ref` is None where unknown."""

    utt: str
    slots: tuple[Slot, ...]
    ref: str | None = None

    @property
    def spoken(self) -> tuple[Slot, ...]:
        """The slots in which a word is chosen."""
        return tuple(slot for slot in self.slots if slot.chosen != NO_WORD)

    @property
    def text(self) -> str:
        """The chosen words."""
        return " ".join(slot.chosen for slot in self.spoken)


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
        cls, utt: str, states: int, start: int, arcs: Sequence[Arc], finals: Sequence[Final],
        times=None, header=EMPTY,
    ) -> "Lattice":  # fmt: skip
        """Return the lattice of rows; scores that a row does not name are 0, extras ''. UserError
        for rows that are none, and for states, words and scores of other types.
        """
        arcs = check_rows(arcs, Arc, "arcs")
        finals = check_rows(finals, Final, "finals")
        check_text(utt, "utt")
        check_mapping(header, "header", "a mapping of names to texts")
        for name, number in (("states", states), ("start", start)):
            check_whole(number, name)
        rows = [*arcs, *finals]
        names = [dict.fromkeys(name for row in rows for name in row.scores)]
        names.append(dict.fromkeys(name for row in rows for name in row.extra))
        scores, extra = named_columns(arcs, names, "arcs")
        final_scores, final_extra = named_columns(finals, names, "finals")
        for place, arc in enumerate(arcs):
            if arc.word is not None and type(arc.word) is not str:
                check_text(arc.word, f"arcs[{place}]: word")
        return cls(
            utt=utt, states=states, start=start, times=check_times(times, states),
            source=integers([arc.source for arc in arcs], "arcs: source"),
            target=integers([arc.target for arc in arcs], "arcs: target"),
            words=tuple(arc.word for arc in arcs), scores=scores, extra=extra,
            finals=integers([final.state for final in finals], "finals: state"),
            final_scores=final_scores, final_extra=final_extra, header=header,
        )  # fmt: skip

    def arcs(self) -> list[Arc]:
        """Return the arcs as rows."""
        plain = self.source.tolist(), self.target.tolist(), self.words
        count = len(self.words)
        named = named_rows(self.scores, count), named_rows(self.extra, count)
        return list(map(Arc, *plain, *named))

    def ends(self) -> list[Final]:
        """Return the final states as rows."""
        count = len(self.finals)
        named = [named_rows(part, count) for part in (self.final_scores, self.final_extra)]
        return list(map(Final, self.finals.tolist(), *named))

    def take(self, arcs, finals, /, **changes) -> "Lattice":
        """Return the lattice of the arcs and finals with these indices, repeats allowed, in this
        order; `changes` replace further fields. UserError for an index that there is not.
        """
        arcs = indices(arcs, len(self.words), "arcs")
        finals = indices(finals, len(self.finals), "finals")
        taken = {
            "source": self.source[arcs],
            "target": self.target[arcs],
            "words": picked(self.words, arcs),
            "scores": {name: row[arcs] for name, row in self.scores.items()},
            "extra": {name: picked(row, arcs) for name, row in self.extra.items()},
            "finals": self.finals[finals],
            "final_scores": {name: row[finals] for name, row in self.final_scores.items()},
            "final_extra": {n: picked(row, finals) for n, row in self.final_extra.items()},
        }
        return replace(self, **{**taken, **changes})

    def __eq__(self, other) -> bool:
        """Return whether all fields are equal, NaN equal to itself; rows in the same order."""
        if not isinstance(other, Lattice):
            return NotImplemented
        return all(alike(getattr(self, name), getattr(other, name)) for name in vars(self))

    __hash__ = None


FAR = 1 << 32  # beyond any number of a state


def check_rows(rows: Iterable, kind: type, name: str) -> list:
    """Return rows of a Lattice; UserError for one of another type."""
    rows = list_items(rows, name, kind.__name__)
    for place, row in enumerate(rows):
        where = f"{name}[{place}]"
        check_kind(row, kind, where, kind.__name__)
        if type(row.scores) not in PLAIN or type(row.extra) not in PLAIN:
            check_mapping(row.scores, f"{where}: scores", "a mapping of names to numbers")
            check_mapping(row.extra, f"{where}: extra", "a mapping of names to texts")
    return rows


def integers(values: Sequence, name: str) -> np.ndarray:
    """Return int64 (N,) of numbers of states; UserError for what is none."""
    if any(type(item) is not int or abs(item) > FAR for item in values):
        values = [check_whole(item, f"{name}[{place}]") for place, item in enumerate(values)]
    return np.array(values, dtype=np.int64)


def numbers(values: Sequence, name: str) -> np.ndarray:
    """Return float64 (N,) of scores; UserError for what is no number."""
    plain = type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind in "fiu"
    if not plain and (type(values) is not list or any(type(item) is not float for item in values)):
        values = check_numbers(values, name)
    return np.array(values, dtype=np.float64)


def indices(values, size: int, name: str) -> np.ndarray:
    """Return int64 (N,) of places among `size` rows; UserError for what is none."""
    if type(values) is not np.ndarray or values.ndim != 1 or values.dtype.kind not in "iu":
        items = list_items(values, name, "places")
        values = np.array(integers(items, name), dtype=np.int64)
    if len(wrong := values[(values < 0) | (values >= size)]):
        raise UserError(f"{name}: there is no row {wrong[0]} among {size}; give places from 0")
    return values.astype(np.int64, copy=False)


def rows_of(columns: Mapping[str, Sequence], length: int) -> list[tuple]:
    """Return the columns turned into `length` rows of plain values."""
    values = [
        column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()
    ]
    return list(zip(*values, strict=True)) if values else [()] * length


def named_rows(columns: Mapping[str, Sequence], length: int) -> list[dict]:
    """Return `length` rows as `rows_of` does, their values by name."""
    return [dict(zip(columns, row, strict=True)) for row in rows_of(columns, length)]


def check_times(times, states: int) -> np.ndarray | None:
    """Return the times of so many states; UserError unless each has one, or there are none."""
    if times is None:
        return None
    times = numbers(times, "times")
    if len(times) != states:
        raise UserError(f"times: {len(times)} for {states} states; give each its own")
    return times


def named_columns(rows: Sequence, names: Sequence, where: str) -> tuple:
    """Return the scores and the extras of `rows` as columns, by both their `names`."""
    scores, extras = names
    values = {
        name: numbers([row.scores.get(name, 0.0) for row in rows], f"{where}: scores[{name!r}]")
        for name in scores
    }
    return values, {name: tuple(row.extra.get(name, "") for row in rows) for name in extras}


def picked(values: Sequence, indices: np.ndarray) -> tuple:
    """Return the values at `indices`."""
    return tuple([values[i] for i in indices.tolist()])


def alike(a, b) -> bool:
    """Return whether two fields are equal: arrays with NaN equal to itself, mappings by name."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b, equal_nan=True)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(alike(a[name], b[name]) for name in a)
    return a == b
