"""Speed of rescoring lattices: against real time, by their density and by the number of histories
kept.
"""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.lattice.density import duration
from lmtools.lattice.forward import prune
from lmtools.score import load
from lmtools.score.lattices import LatticeOptions, Rescorer
from lmtools.types import Lattice
from measures.machine import describe_machine


def bench_lattice(
    lattices: Sequence[Lattice],
    lms: Mapping[str, LMSpec],
    settings: LatticeOptions,
    beams: Sequence[float],
    tokens: Sequence[int],
    repeats: int,
) -> dict:
    """Measure the rescoring of lattices: one row for each LM and setting, wall-clock medians; the
    LMs take turns.

    Rows are of the whole lattices under `settings`; of the
    lattices pruned by each of `beams` (`density`: arcs a second of speech); and with each of
    `tokens` histories a state. UserError where lattices have no times.
    """
    if not lattices:
        raise UserError("no lattices to measure with; give the recogniser's")
    speech = sum(map(duration, lattices))
    if not speech > 0:
        raise UserError(
            "the lattices have no times, so that nothing can be said of real time; give SLF or"
            " Kaldi lattices"
        )
    scorers = {name: load(spec, settings.computing) for name, spec in lms.items()}
    old = {key: weight for key, weight in settings.weights.items() if key not in lms}
    rows = []
    work = list_work(lattices, old, usual=settings.tokens, beams=beams, tokens=tokens)
    for kind, beam, kept, pruned in work:
        rescorers = {}
        for name, scorer in scorers.items():
            weights = old | {name: settings.weights[name]}
            alone = replace(settings, lms={name: lms[name]}, weights=weights, tokens=kept)
            rescorers[name] = Rescorer(alone, {name: scorer})
        arcs = sum(len(lattice.words) for lattice in pruned)
        size = {"kind": kind, "beam": beam, "tokens": kept, "arcs": arcs, "density": arcs / speech}
        timed = time_lattices(pruned, rescorers, arcs, speech, repeats=repeats)
        rows += [size | row for row in timed]
    return {
        "rows": rows, "lattices": len(lattices), "speech": speech, "order": settings.order,
        "repeats": repeats,
        "threads": torch.get_num_threads(), "precision": settings.computing.precision,
        "machine": describe_machine(torch.device("cpu")),
        "models": {name: dict(scorer.signature) for name, scorer in scorers.items()},
    }  # fmt: skip


def list_work(
    lattices: Sequence[Lattice], weights: Mapping, usual: int, beams: Sequence, tokens: Sequence
) -> Iterator[tuple[str, float | None, int, Sequence[Lattice]]]:
    """Yield the kind of a row, the beam that its lattices are pruned by, the histories kept a
    state, and the lattices.
    """
    yield "whole", None, usual, lattices
    for beam in beams:
        yield "density", beam, usual, [prune(lattice, weights, beam=beam) for lattice in lattices]
    for kept in tokens:
        yield "tokens", None, kept, lattices


def time_lattices(
    lattices: Sequence[Lattice],
    rescorers: Mapping[str, Rescorer],
    arcs: int,
    speech: float,
    repeats: int,
) -> Iterator[dict]:
    """Yield one row an LM; every turn goes through all lattices with each LM, so that noise meets
    all alike.
    """
    spent: dict[str, list[float]] = {name: [] for name in rescorers}
    grown = {}
    for _ in range(repeats):
        for name, rescorer in rescorers.items():
            begun = time.perf_counter()
            grown[name] = sum(len(rescorer.rescore(lattice)[0].words) for lattice in lattices)
            spent[name].append(time.perf_counter() - begun)
    for name, seconds in spent.items():
        median = statistics.median(seconds)
        factor = {"real_time_factor": median / speech, "arcs_per_second": arcs / median}
        yield {"lm": name, "rescored_arcs": grown[name], "seconds": seconds, **factor}


def format_lines(figures: Mapping) -> Iterator[str]:
    """Yield the machine, then one line a measurement."""
    yield (
        f"{figures['machine']}; {figures['threads']} thread(s), {figures['precision']}, median of"
        f" {figures['repeats']}"
    )
    yield (
        f"{figures['lattices']} lattices, {figures['speech']:.1f} s of speech; neural LMs: order"
        f" {figures['order'] or 'unlimited'}"
    )
    for row in figures["rows"]:
        bounds = f"{row['density']:.1f} arcs a second, {row['tokens'] or 'all'} histories a state"
        yield (
            f"{row['lm']}: {row['real_time_factor']:.4f} x real time, {row['arcs_per_second']:,.0f}"
            f" arcs/s ({bounds})"
        )
