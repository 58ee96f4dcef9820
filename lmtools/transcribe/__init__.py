"""From recordings of any length to text, subtitles and times of words: the recogniser's lists, a
second pass by a language model, and files, in one process.
"""

VERBS = {
    "transcribe": (
        "transcribe recordings",
        "write better text, subtitles and times of words of recordings",
        "lmtools.transcribe.verb",
    )
}
