"""The report of an experiment that rescores lists or lattices."""
