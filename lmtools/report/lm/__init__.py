"""The report of an experiment with language models by themselves."""
