"""What reports have because papers do: their tables, readings of their figures, run times."""
