"""Algorithms on Lattice: validity, order, paths, posteriors, pruning, oracle.

The names in `__all__` are part of the Python interface, as `lmtools.lattice`.
"""

from lmtools.lattice.check import LatticeProblem, problems, repair
from lmtools.lattice.density import Oracle, Statistics, oracle, statistics
from lmtools.lattice.forward import add_posteriors, posteriors, prune
from lmtools.lattice.order import trim
from lmtools.lattice.paths import Path, as_nbest, best, nbest

__all__ = [
    "LatticeProblem",
    "Oracle",
    "Path",
    "Statistics",
    "add_posteriors",
    "as_nbest",
    "best",
    "nbest",
    "oracle",
    "posteriors",
    "problems",
    "prune",
    "repair",
    "statistics",
    "trim",
]
