"""The report of an experiment with semantic textual similarity."""
