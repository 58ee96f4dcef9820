"""Rescoring of lattices by any language models: left-to-right ones state by state, those that read
both sides over a path cover. Lattices go in order, each by itself, in this process or in several.
"""

import functools
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from lmtools.base.computing import USUAL, Computing
from lmtools.base.errors import UserError, out_of_memory
from lmtools.base.options import check_options, option
from lmtools.base.specs import LMSpec
from lmtools.base.workers import map_ordered
from lmtools.lattice.check import drop_unusable
from lmtools.lattice.density import duration
from lmtools.lattice.expand import OLD, STATES, expand, refuse_taken
from lmtools.lattice.forward import prune
from lmtools.lattice.histories import MixtureLM
from lmtools.lattice.paths import as_nbest, best
from lmtools.lattice.weights import merge_scores
from lmtools.score.base import Scorer, check_wordwise
from lmtools.score.cover import approximation, rescore_cover
from lmtools.score.load import load
from lmtools.score.ngram import NgramScorer
from lmtools.types import EMPTY, PHRASES, Lattice, NBest

LEFT_TO_RIGHT = "perplexity"  # the kind of scorers whose words depend on those before alone


@dataclass(frozen=True)
class LatticeOptions:
    """Options of lattice rescoring.

    `lms`: the name of a new score -> its language model. `old`: the model that is part of the
    lattice's `graph` score. `weights` of scores, old and new, and `words`, guide pruning.
    `prune_beam` bounds the lattice before,
    `order`, `beam`, `tokens` and `states` its expansion (lmtools.lattice.expand); an `order` that
    is one number is that of all models that never forget, which n-gram models do. `cover_beam`
    prunes what models that read both sides are to score, by all other scores: the better the paths,
    the nearer are the scores of arcs to those of whole sentences. `glossary` gives a score PHRASES,
    of the words of its phrases.
    """

    lms: Mapping[str, LMSpec]
    weights: Mapping[str, float]
    old: LMSpec | None = None
    prune_beam: float | None = option(
        None, "before rescoring, drop arcs of which no path is within X of the best", least=0
    )
    cover_beam: float | None = option(
        None,
        "for LMs that read both sides: score only arcs of which a path is within X of the best",
        least=0,
    )
    order: Mapping[str, int | None] | int | None = None
    beam: float = math.inf
    tokens: int | None = option(
        None, "keep the N best histories of each state of a lattice (default: all)", least=1
    )
    states: int = option(STATES, "most states that a rescored lattice may have", least=1)
    computing: Computing = USUAL
    glossary: Any = None

    def __post_init__(self):
        check_options(self)

    def load(self) -> "Rescorer":
        """Load the models; UserError for one that cannot be loaded, and unfit names."""
        load_once = functools.cache(lambda spec: load(spec, self.computing))
        scorers = {name: load_once(spec) for name, spec in self.lms.items()}
        return Rescorer(self, scorers, self.old and load_once(self.old))


class Rescorer:
    """Rescores one lattice at a time; `signatures` says which model gives each new score."""

    def __init__(
        self, settings: LatticeOptions, scorers: Mapping[str, Scorer], old: Scorer | None = None
    ):
        check_names(settings)
        self.settings = settings
        self.left = {
            name: scorer.by_word for name, scorer in scorers.items() if scorer.kind == LEFT_TO_RIGHT
        }
        self.glossary = settings.glossary and settings.glossary.load()
        self.both_sides = {
            name: scorer for name, scorer in scorers.items() if name not in self.left
        }
        for scorer in self.both_sides.values():
            check_wordwise(scorer)
        self.old = old and old.by_word
        for lm in (*self.left.values(), *([self.old] if old else [])):
            lm.prefixes()  # refuses what has none
        order = {name: settings.order for name, lm in self.left.items() if never_forgets(lm)}
        self.order = settings.order if isinstance(settings.order, Mapping) else order
        models = self.left | self.both_sides
        self.signatures = {name: models[name].signature for name in settings.lms}

    def rescore(self, lattice: Lattice) -> tuple[Lattice, list[str]]:
        """Add a score a model; return the lattice, repaired and pruned where need be, and messages.
        UserErrors name the utterance.
        """
        try:
            refuse_taken(lattice, [*self.signatures, *self.phrases])
            lattice, messages = drop_unusable(lattice)
            if self.settings.prune_beam is not None:
                lattice = prune(lattice, self.known_weights(lattice), self.settings.prune_beam)
            lattice, more = self.expand(lattice)
            messages += more
            if self.both_sides and self.settings.cover_beam is not None:
                lattice = prune(lattice, self.known_weights(lattice), self.settings.cover_beam)
            for name, scorer in self.both_sides.items():
                known = self.known_weights(lattice, name)
                lattice = rescore_cover(lattice, scorer, known, name)
            return lattice, messages
        except UserError as error:
            named = str(error).startswith(lattice.utt)
            raise error if named else UserError(f"{lattice.utt}: {error}") from None

    @property
    def phrases(self) -> tuple[str, ...]:
        return (PHRASES,) if self.glossary else ()

    def known_weights(self, lattice: Lattice, *names: str) -> dict[str, float]:
        """Return the weights, without those of scores that models are still to give."""
        given = {*self.signatures, *self.phrases, *([OLD] if self.old else [])}
        coming = given - lattice.scores.keys() - set(names)
        weights = self.settings.weights.items()
        return {name: weight for name, weight in weights if name not in coming}

    def expand(self, lattice: Lattice) -> tuple[Lattice, list[str]]:
        """Add the left-to-right models' scores, to half the arcs where memory fails; messages."""
        whole, messages = len(lattice.words), []
        while self.left or self.old or self.glossary:
            try:
                done, more = self.expand_whole(lattice)
                return done, messages + more
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
            smaller = prune(lattice, self.known_weights(lattice), arcs=len(lattice.words) // 2)
            if len(smaller.words) == len(lattice.words):
                raise UserError(
                    f"{lattice.utt}: not even its best path fits into memory; drop it or use a"
                    " larger machine"
                )
            lattice = smaller
            messages = [
                f"{lattice.utt}: too large for the memory; pruned from {whole} to"
                f" {len(lattice.words)} arcs before"
            ]
        return lattice, messages

    def expand_whole(self, lattice: Lattice) -> tuple[Lattice, list[str]]:
        """Expand the lattice in one piece; return it and the messages of `expand`."""
        settings, old = self.settings, self.old and self.old.prefixes()
        lms = {name: lm.prefixes() for name, lm in self.left.items()}
        if self.glossary:
            lms[PHRASES] = self.glossary.prefixes(lattice.utt)
        weights = self.known_weights(lattice, *lms, OLD)
        bounds = {name: getattr(settings, name) for name in ("beam", "tokens", "states")}
        return expand(lattice, lms, weights, order=self.order, **bounds, old=old)


def check_names(settings: LatticeOptions) -> None:
    """Raise UserError where names in `settings` clash, or mean no model that they could."""
    new = [*settings.lms, *([OLD] if settings.old else [])]
    new += [PHRASES] if settings.glossary else []
    if not new:
        raise UserError("no language model to rescore lattices with; name one")
    for name in new:
        if new.count(name) > 1:
            raise UserError(
                f"two language models are called {name!r}; give each its own name ({OLD!r} is the"
                " old model's)"
            )
        if settings.weights and name not in settings.weights and name != OLD:
            raise UserError(
                f"no weight for {name!r}; give all language models one, 0 if its score is not to"
                " count"
            )
    orders = settings.order if isinstance(settings.order, Mapping) else ()
    if unknown := [name for name in orders if name not in new]:
        raise UserError(
            f"order of {unknown[0]!r}: no language model is called so; known are {', '.join(new)}"
        )


def never_forgets(lm: Scorer | MixtureLM) -> bool:
    """Return whether the probability of a word may depend on all words before it."""
    if isinstance(lm, MixtureLM):
        return any(map(never_forgets, lm.parts))
    return not isinstance(lm, NgramScorer)


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
