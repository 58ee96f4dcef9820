"""Recognisers that anybody can install turn recordings into N-best lists: what is decoded, by what,
and a run that can be killed at any moment and goes on.
"""

VERBS = {
    "decode": ("make N-best lists", "decode recordings with Whisper or Vosk", "lmtools.decode.verb")
}
