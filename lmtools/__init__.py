"""Train language models and use them to rescore the N-best lists and lattices of recognisers and
translators.
"""

__version__ = "0.1.0"
