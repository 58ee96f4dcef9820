"""Language models of `lmtools train` in ESPnet's own beam search; `python -m lmtools.espnet --help`
tells how.
"""
