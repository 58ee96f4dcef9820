"""Algorithms on Lattice: validity, order, best paths, posteriors, pruning, epsilons,
determinisation, oracle, density.
"""
