"""Recognisers that anybody can install turn recordings into N-best lists: what is decoded, by what,
and a run that can be killed at any moment and goes on.
"""

VERBS = {
    "decode": (
        "more",
        "write N-best lists of recordings, by Whisper or Vosk",
        "lmtools.decode.verb",
    )
}
