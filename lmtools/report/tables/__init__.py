"""Tables of reports: rows, columns and notes."""
