"""Language models of `lmtools train` in ESPnet's own beam search; `python -m lmtools.bridges.espnet
--help` tells how.
"""
