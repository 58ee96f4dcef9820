"""What is wanted of rescored lattices, one lattice at a time, in order, computed here or by several processes."""

import multiprocessing
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from lmtools.lattice.density import duration
from lmtools.lattice.fold import fold
from lmtools.lattice.paths import as_nbest, best
from lmtools.score.cover import approximation
from lmtools.score.lattices import Rescorer, Settings
from lmtools.types import EMPTY, Lattice, NBest

AHEAD = 2  # lattices a process that may wait, so that a long input is not read at once


@dataclass(frozen=True)
class Wanted:
    """What to take of each lattice: the lattice itself, its `n` best hypotheses (with their `total`), the text of its best path.

    `into`: put all scores but `keep` into this one, for formats that hold no others. `exact`: compare the scores that arcs have of
    LMs that read both sides with those of the whole sentence, on so many best paths.
    """

    lattice: bool = False
    n: int | None = None
    total: bool = False
    text: bool = False
    into: str | None = None
    keep: Sequence[str] = ("am",)
    exact: int | None = None


@dataclass(frozen=True)
class Harvest:
    """What a lattice gave: sizes before and after, the seconds of speech in it and of work on it, messages for the user, what is wanted."""

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


def harvest(lattices: Iterable[Lattice], settings: Settings, wanted: Wanted, nj: int = 1) -> Iterator[Harvest]:
    """What is wanted of each lattice, as soon as it is there, in the order of the lattices."""
    if nj == 1:
        rescorer = settings.load()
        yield from (reap(rescorer, lattice, wanted) for lattice in lattices)
        return
    threads, waiting = max(1, (os.cpu_count() or 1) // nj), deque()
    with multiprocessing.get_context("spawn").Pool(nj, start_worker, (settings, wanted, threads)) as pool:
        for lattice in lattices:
            waiting.append(pool.apply_async(work_on, (lattice,)))
            if len(waiting) > AHEAD * nj:
                yield waiting.popleft().get()
        while waiting:
            yield waiting.popleft().get()


WORKER: dict[str, object] = {}  # a worker process's own rescorer, loaded once, and what is wanted


def start_worker(settings: Settings, wanted: Wanted, threads: int) -> None:
    """Say in a new worker process what its work is; the models wait for the first lattice, as a pool hides errors before that."""
    torch.set_num_threads(threads)
    WORKER.update(settings=settings, wanted=wanted)


def work_on(lattice: Lattice) -> Harvest:
    """What a worker does with a lattice."""
    if "rescorer" not in WORKER:
        WORKER["rescorer"] = WORKER["settings"].load()
    return reap(WORKER["rescorer"], lattice, WORKER["wanted"])


def reap(rescorer: Rescorer, lattice: Lattice, wanted: Wanted) -> Harvest:
    """Rescore a lattice and take what is wanted."""
    begun = time.perf_counter()
    rescored, messages = rescorer.rescore(lattice)
    seconds = time.perf_counter() - begun
    weights = rescorer.settings.weights
    out = Harvest(lattice.utt, len(lattice.words), len(rescored.words), duration(lattice), seconds, messages)
    if wanted.n:
        out = replace(out, nbest=as_nbest(rescored, weights, wanted.n, total=wanted.total))
    if wanted.text:
        out = replace(out, text=" ".join(best(rescored, weights).words))
    if wanted.lattice:
        out = replace(out, lattice=fold(rescored, weights, wanted.into, wanted.keep) if wanted.into else rescored)
    if wanted.exact:
        near = {name: approximation(rescored, lm, weights, name, wanted.exact) for name, lm in rescorer.both_sides.items()}
        out = replace(out, approximation=near)
    return out
