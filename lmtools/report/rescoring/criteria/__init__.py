"""Language models that differ by their training criterion, as in the sampling paper."""
