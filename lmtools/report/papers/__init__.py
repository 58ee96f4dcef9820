"""Comparison of reports with papers: papers' tables, readings of their figures, run times."""
