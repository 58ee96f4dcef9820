"""Weights of first-pass and language-model scores, tuned on a development set, and hypotheses
chosen with them.
"""
