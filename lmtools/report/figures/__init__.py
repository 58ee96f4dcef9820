"""Figures of reports: what each shows, and how."""
