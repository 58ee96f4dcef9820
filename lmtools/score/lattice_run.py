"""Rescoring of lattices in order, each by itself; in this process or in several."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from lmtools.base.workers import map_ordered
from lmtools.lattice.density import duration
from lmtools.lattice.paths import as_nbest, best
from lmtools.lattice.weights import merge_scores
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
    """Sums of a run over lattices (`seconds` of all processes), approximations as rows."""

    lattices: int = 0
    arcs: int = 0
    rescored_arcs: int = 0
    speech: float = 0.0
    seconds: float = 0.0
    near: dict[str, list[Mapping[str, float]]] = field(default_factory=dict)
    signatures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def add(self, result: LatticeResult) -> None:
        self.lattices += 1
        self.arcs += result.arcs
        self.rescored_arcs += result.rescored_arcs
        self.speech += result.speech
        self.seconds += result.seconds
        self.signatures = result.signatures
        for name, row in result.approximation.items():
            self.near.setdefault(name, []).append(row)

    def describe(self) -> str:
        rate = f", {self.seconds / self.speech:.3f} x real time" if self.speech else ""
        return (
            f"{self.lattices:,} lattices, {self.arcs:,} arcs, rescored {self.rescored_arcs:,};"
            f" {self.seconds:.1f} s{rate}"
        )

    def facts(self) -> dict:
        """Return the sums and mean approximation as JSON, without what is undefined."""
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


def run_lattice(rescorer: Rescorer, lattice: Lattice, wanted: LatticeOutputs) -> LatticeResult:
    begun, weights = time.perf_counter(), rescorer.settings.weights
    rescored, messages = rescorer.rescore(lattice)
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
            name: approximation(rescored, lm, weights, name, n=wanted.exact)
            for name, lm in rescorer.both_sides.items()
        }
        out = replace(out, approximation=near)
    return out
