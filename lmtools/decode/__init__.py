"""Recognisers that anybody can install turn recordings into N-best lists: what is decoded, by what,
and a run that can be killed at any moment and goes on.
"""

from lmtools.decode.decode import FAILED, Decoded, DecodeOptions, decode_speech
from lmtools.decode.recognisers import RECOGNISERS

__all__ = ["FAILED", "RECOGNISERS", "DecodeOptions", "Decoded", "decode_speech"]
