"""Marks: what recognisers write where no word was said - noise, silence, unknown words, music.

[noise] <unk> </s> (laughter) ++breath++ !SIL       of Kaldi, HTK, Sphinx
[Music playing] (applause) *sighs* ♪ <|endoftext|>  of Whisper
the red</s> |0-1| fox |2-2|                         of Marian's pieces, Moses's segments
"""

import re

MARK = re.compile(
    r"<\|[^|\s]*\|>|</?s>|(?<!\S)\|\d+-\d+(?:,[^|\s]*)?\|(?!\S)|[♩♪♫♬🎵🎶]+"
    r"|(?<!\w)(?:</?[a-z]+>|\[[^\[\]]+\]|\((?=[^()]*[a-z])[^()]+\)"
    r"|\*(?=[a-z])[^*]*[a-z]\*|\+\+[^\s+]+\+\+|!sil|!null)(?!\w)",
    re.IGNORECASE,
)


def find_marks(text: str) -> list[str]:
    return MARK.findall(text)


def drop_marks(text: str) -> str:
    return " ".join(MARK.sub(" ", text).split())
