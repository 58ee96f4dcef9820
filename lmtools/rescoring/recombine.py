"""New hypotheses that a list lacks and its words can build: the most probable paths of its network.

The first pass gave them no scores. Its scores of the list's hypotheses are fitted as sums over
words in slots, by ridge regression with the penalty that predicts left-out hypotheses best, and
the sums of new paths stand for theirs; language models score the new texts as any other.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from lmtools.lattice.networks import as_lattice
from lmtools.lattice.paths import nbest as best_paths
from lmtools.rescoring.features import words as spaced
from lmtools.rescoring.networks import NetworkPlan, align_list
from lmtools.rescoring.risk import posterior
from lmtools.types import NO_WORD, Hypothesis, NBest

MARK = "recombined"  # the extra of new hypotheses
PENALTIES = (0.01, 0.1, 1.0, 10.0)
Place = tuple[int, str]  # a slot and its word


def recombine_lists(
    lists: Iterable[NBest], ranked: Iterable[tuple[NBest, np.ndarray]], plan: NetworkPlan, most: int
) -> Iterator[NBest]:
    """Yield the lists with up to `most` new hypotheses each behind their own, most probable first,
    marked by the extra MARK; `ranked` are the same lists as `rank_lists` gives them.
    """
    for nbest, (by_total, totals) in zip(lists, ranked, strict=True):
        if len(nbest.hyps) < 2:
            yield nbest
            continue
        shares = posterior(totals[: plan.depth], plan.scale)
        yield add_paths(nbest, by_total, shares, most)


def add_paths(nbest: NBest, ranked: NBest, shares: Sequence[float], most: int) -> NBest:
    """Return a list with the new paths of the network of `ranked`, which is the list in order."""
    builder, placed = align_list(ranked, shares)
    slots = {column: slot for slot, column in enumerate(builder.order)}
    own: dict[str, Hypothesis] = {}
    for hyp in nbest.hyps:
        own.setdefault(spaced(hyp), hyp)
    lattice = as_lattice(builder.finish(nbest.utt))
    paths = best_paths(lattice, {"am": 1.0}, most + len(own))
    paths = [path for path in paths if " ".join(path.words) not in own][:most]
    if not paths:
        return nbest
    names = list(nbest.hyps[0].scores)
    known = [
        fill_slots(text, [slots[column] for column in columns], len(slots))
        for text, columns in placed.items()
    ]
    new = [list(enumerate(lattice.words[arc] or NO_WORD for arc in path.arcs)) for path in paths]
    values = np.array([[own[text].scores[name] for name in names] for text in placed])
    rows = predict_scores(known, values, new).tolist()
    hyps = [
        Hypothesis(" ".join(path.words), dict(zip(names, row, strict=True)), {MARK: "yes"})
        for path, row in zip(paths, rows, strict=True)
    ]
    return replace(nbest, hyps=(*nbest.hyps, *hyps))


def fill_slots(text: str, columns: Sequence[int], slots: int) -> list[Place]:
    """Return the word or NO_WORD that a text has in each slot, given the slots of its words."""
    words = dict(zip(columns, text.split(), strict=True))
    return [(slot, words.get(slot, NO_WORD)) for slot in range(slots)]


def predict_scores(
    known: Sequence[Sequence[Place]], values: np.ndarray, new: Sequence[Sequence[Place]]
) -> np.ndarray:
    """Predict the scores (new, names) of paths from those (known, names) of others, as a constant
    plus a sum over words in slots.
    """
    numbers: dict[Place, int] = {}
    rows = [[numbers.setdefault(place, len(numbers)) for place in path] for path in known]
    design = np.zeros((len(known), len(numbers)))
    for row, places in zip(design, rows, strict=True):
        row[places] = 1
    wanted = np.zeros((len(new), len(numbers)))
    for row, path in zip(wanted, new, strict=True):
        row[[numbers[place] for place in path if place in numbers]] = 1
    mean, means = design.mean(0), values.mean(0)
    return (wanted - mean) @ fit_ridge(design - mean, values - means) + means


def fit_ridge(design: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Fit weights (features, names) of centred rows (rows, features) to centred targets (rows,
    names), each name with that of PENALTIES whose squared errors on rows left out, one at a time,
    are least.
    """
    eigenvalues, vectors = np.linalg.eigh(design @ design.T)
    eigenvalues, rotated = np.maximum(eigenvalues, 0), vectors.T @ targets
    errors, fits = [], []
    for penalty in PENALTIES:
        inverse = 1 / (eigenvalues + penalty)
        residuals = targets - vectors @ ((eigenvalues * inverse)[:, None] * rotated)
        leverage = (vectors**2) @ (eigenvalues * inverse)
        errors.append(((residuals / (1 - leverage)[:, None]) ** 2).sum(0))
        fits.append(design.T @ (vectors @ (inverse[:, None] * rotated)))
    chosen = np.argmin(errors, axis=0)
    return np.stack(fits)[chosen, :, np.arange(targets.shape[1])].T
