"""Algorithms on Lattice: validity, order, paths, posteriors, pruning, determinisation, oracle."""
