"""Lattices rescored in the context of the utterances before them, by session."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from lmtools.base.errors import UserError
from lmtools.base.workers import map_ordered
from lmtools.formats.lattices import default_weights
from lmtools.formats.sessions import SessionNames
from lmtools.lattice.check import drop_unusable
from lmtools.lattice.histories import MixtureLM
from lmtools.lattice.paths import best
from lmtools.score.context import CONTEXT, FIRST, ORIGIN, RESCORED, ContextScorer, History
from lmtools.score.lattice_run import LatticeOutputs, LatticeResult, run_lattice
from lmtools.score.lattices import LatticeOptions, Rescorer
from lmtools.types import EMPTY, Lattice


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
            return first_text(lattice)
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


def first_text(lattice: Lattice) -> str:
    """Return the words of the best path by the lattice's own weights."""
    lattice, _ = drop_unusable(lattice)
    return " ".join(best(lattice, default_weights(lattice)).words)
