"""Measurements of speed, one module a kind."""
