"""Rescoring of lattices in order, each by itself or, by session, in the context of those before it;
in this process or in several.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.workers import map_ordered
from lmtools.formats.lattices import default_weights
from lmtools.formats.sessions import SessionNames
from lmtools.lattice.check import drop_unusable
from lmtools.lattice.density import duration
from lmtools.lattice.histories import MixtureLM
from lmtools.lattice.paths import as_nbest, best
from lmtools.lattice.weights import merge_scores
from lmtools.score.context import CONTEXT, FIRST, ORIGIN, RESCORED, ContextScorer, History
from lmtools.score.cover import approximation
from lmtools.score.lattices import LatticeOptions, Rescorer
from lmtools.types import EMPTY, PHRASES, Lattice, NBest


@dataclass(frozen=True)
class LatticeOutputs:
    """Outputs of each rescored lattice: the lattice itself, its `n` best hypotheses (with their
    `total`), the text of its best path.

    `merge` (score, others): put all scores but the others into that one, for formats that hold no
    more. `exact`: compare the scores that arcs have of LMs that read both sides with those of the
    whole sentence, on so many best paths.
    """

    lattice: bool = False
    n: int | None = None
    total: bool = False
    text: bool = False
    merge: tuple[str, Sequence[str]] | None = None
    exact: int | None = None


@dataclass(frozen=True)
class LatticeResult:
    """Result of one lattice: sizes before and after, seconds of speech and of work, messages for
    the user, the wanted outputs; `signatures` names the model of each new score.
    """

    utt: str
    arcs: int
    rescored_arcs: int
    speech: float
    seconds: float
    messages: Sequence[str]
    lattice: Lattice | None = None
    nbest: NBest | None = None
    text: str | None = None
    approximation: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: EMPTY)  # by LM
    signatures: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: EMPTY)


@dataclass
class LatticeTotals:
    """Sums of a run over lattices (`seconds`: of rescoring, in all processes), and the
    approximation of each as rows.
    """

    lattices: int = 0
    arcs: int = 0
    rescored_arcs: int = 0
    speech: float = 0.0
    seconds: float = 0.0
    near: dict[str, list[Mapping[str, float]]] = field(default_factory=dict)
    signatures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def add(self, result: LatticeResult) -> None:
        """Enter one lattice."""
        self.lattices += 1
        self.arcs += result.arcs
        self.rescored_arcs += result.rescored_arcs
        self.speech += result.speech
        self.seconds += result.seconds
        self.signatures = result.signatures
        for name, row in result.approximation.items():
            self.near.setdefault(name, []).append(row)

    def describe(self) -> str:
        """Describe the sums in words."""
        rate = f", {self.seconds / self.speech:.3f} x real time" if self.speech else ""
        return (
            f"{self.lattices:,} lattices, {self.arcs:,} arcs, rescored {self.rescored_arcs:,};"
            f" {self.seconds:.1f} s{rate}"
        )

    def facts(self) -> dict:
        """Return the sums as JSON, with the mean approximation of the LMs that read both sides,
        without what is undefined.
        """
        rows = [row for near in self.near.values() for row in near]
        known = {
            name: [row[name] for row in rows if not np.isnan(row[name])]
            for name in (rows[0] if rows else ())
        }
        means = {name: float(np.mean(values)) for name, values in known.items() if values}
        sums = ("lattices", "arcs", "rescored_arcs", "speech", "seconds")
        return {name: getattr(self, name) for name in sums} | {
            "signatures": dict(self.signatures),
            "approximation": means,
        }


def run_lattices(
    lattices: Iterable[Lattice], settings: LatticeOptions, wanted: LatticeOutputs, nj: int = 1
) -> Iterator[LatticeResult]:
    """Yield the outputs of each lattice as soon as they are ready, in the order of the lattices."""
    work = partial(run_lattice, wanted=wanted)
    return map_ordered(work, lattices, nj, settings.load)


def run_lattice(
    rescorer: Rescorer,
    lattice: Lattice,
    wanted: LatticeOutputs,
    contexts: Mapping[str, str] = EMPTY,
) -> LatticeResult:
    """Rescore a lattice, behind a context a model, and take what is wanted."""
    begun, weights = time.perf_counter(), rescorer.settings.weights
    rescored, messages = rescorer.rescore(lattice, contexts)
    out = LatticeResult(
        utt=lattice.utt, arcs=len(lattice.words), rescored_arcs=len(rescored.words),
        speech=duration(lattice), seconds=time.perf_counter() - begun, messages=messages,
        signatures=rescorer.signatures,
    )  # fmt: skip
    if wanted.n:
        nbest = as_nbest(rescored, weights, wanted.n, total=wanted.total)
        if rescorer.glossary:  # `lmtools tune --phrases` counts them anew, of any glossary
            kept = [{n: v for n, v in hyp.scores.items() if n != PHRASES} for hyp in nbest.hyps]
            hyps = (hyp.with_scores(one) for hyp, one in zip(nbest.hyps, kept, strict=True))
            nbest = replace(nbest, hyps=tuple(hyps))
        out = replace(out, nbest=nbest)
    if wanted.text:
        out = replace(out, text=" ".join(best(rescored, weights).words))
    if wanted.lattice:
        merged = merge_scores(rescored, weights, *wanted.merge) if wanted.merge else rescored
        out = replace(out, lattice=merged)
    if wanted.exact:
        near = {
            name: approximation(
                rescored, lm, weights, name, n=wanted.exact, context=contexts.get(name, "")
            )
            for name, lm in rescorer.both_sides.items()
        }
        out = replace(out, approximation=near)
    return out


@dataclass(frozen=True)
class LatticeContext:
    """What is read before the words of a lattice: up to `tokens` of each model, of the utterances
    before it in its session; their first pass, the best paths once they are rescored, or the
    references `refs` by utterance.

    `sessions`: as of lmtools.formats.sessions.
    """

    tokens: int
    origin: str = FIRST
    sessions: str | None = None
    refs: Mapping[str, str] = field(default_factory=lambda: EMPTY)

    def read(self, lattice: Lattice, rescored: str) -> str:
        """Return the words of a lattice that later ones read; UserError without a reference."""
        if self.origin == FIRST:
            lattice, _ = drop_unusable(lattice)
            return " ".join(best(lattice, default_weights(lattice)).words)
        if self.origin == RESCORED:
            return rescored
        if lattice.utt not in self.refs:
            raise UserError(f"{lattice.utt}: has no reference; give that of all lattices, by --ref")
        return self.refs[lattice.utt]


@dataclass(frozen=True)
class Session:
    """Lattices of a session as they stand in the file, and the places of these in time."""

    lattices: Sequence[Lattice]
    order: Sequence[int]


def group_sessions(lattices: Iterable[Lattice], path: str | None) -> Iterator[Session]:
    """Yield the sessions of lattices, one at a time in memory; UserError for one whose lattices do
    not stand together.
    """
    names, done, name, group = SessionNames(path), set(), None, []
    for lattice in lattices:
        now = names.of(lattice.utt)
        if now != name and group:
            done.add(name)
            yield Session(group, names.order([one.utt for one in group]))
            group = []
        if now in done:
            raise UserError(
                f"{lattice.utt}: its session {now!r} has lattices farther up; sort the lattices by"
                " session"
            )
        name = now
        group.append(lattice)
    if group:
        yield Session(group, names.order([one.utt for one in group]))


def run_sessions(
    lattices: Iterable[Lattice],
    settings: LatticeOptions,
    wanted: LatticeOutputs,
    context: LatticeContext,
    nj: int = 1,
) -> Iterator[LatticeResult]:
    """Yield the outputs of each lattice in the order of the lattices, a session at a time; sessions
    are divided among `nj` processes.
    """
    work = partial(run_session, wanted=wanted, context=context)
    sessions = group_sessions(lattices, context.sessions)
    results = map_ordered(work, sessions, nj, settings.load)
    return chain.from_iterable(results)


def run_session(
    rescorer: Rescorer, session: Session, wanted: LatticeOutputs, context: LatticeContext
) -> list[LatticeResult]:
    """Rescore the lattices of a session in the order of time; return the results in that of the
    file.
    """
    histories = {
        name: History(ContextScorer(first_model(lm)), context.tokens)
        for name, lm in (rescorer.left | rescorer.both_sides).items()
    }
    here = {CONTEXT: f"{context.tokens} tokens", ORIGIN: context.origin}
    signatures = {name: {**said, **here} for name, said in rescorer.signatures.items()}
    results: dict[int, LatticeResult] = {}
    for place in session.order:
        lattice = session.lattices[place]
        contexts = {name: history.context() for name, history in histories.items()}
        result = run_lattice(rescorer, lattice, replace(wanted, text=True), contexts)
        for history in histories.values():
            history.add(context.read(lattice, result.text or ""))
        kept = result.text if wanted.text else None
        results[place] = replace(result, text=kept, signatures=signatures)
    return [results[place] for place in range(len(results))]


def first_model(lm):
    """Return a model, of a mixture the first: its tokens are counted."""
    return first_model(lm.parts[0]) if isinstance(lm, MixtureLM) else lm
