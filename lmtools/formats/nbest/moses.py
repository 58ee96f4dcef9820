"""Moses N-best lists: `0 ||| blue finch . ||| LM0= -41.3 TM0= -6.7 -1.2 ||| -14.6`, then any
further fields (word alignments).

Old files have `0||| ` and `lm: -41.3 -40.4`. Names of scores, and what becomes of sentences without
a line: see `moses_fields`. Scores are as the decoder writes them: natural logarithms where they are
logarithms, not yet multiplied by their weights, while the total is.

The segments of a text traced with -t or -tt, `the red |0-1| fox |2-2|`, are no words: the text is
`the red fox`, and the extra `segments` keeps the whole. cdec and Joshua write the same fields.
Sparse features are those that some hypotheses lack: an absent one is 0.
"""

import re
from functools import partial

from lmtools.formats.nbest import moses_fields
from lmtools.formats.nbest.moses_fields import OPTIONS as OPTIONS

SUMMARY = "Moses: `id ||| text ||| LM0= -41.3 TM0= -6.7 -1.2 ||| total`"
# F0, F1 .. are what Marian calls its models
SEGMENT = r"\|\d+-\d+(?:,[^|]*)?\|"  # the source words of a phrase; with -tt its scores, too
SEGMENTS = re.compile(rf"(?:^|\s+){SEGMENT}(?!\S)", re.ASCII)
SEGMENTED = re.compile(rf"(?:.*\s)?{SEGMENT}", re.ASCII)  # each phrase ends in one, so the last
FEATURES = re.compile(r"(?!(F\d+|WordScores)=)[^\s=]+(:|=) ?[-+.\d]", re.ASCII)


def parse_fields(fields: list[str], where: str) -> moses_fields.Row:
    """Parse the row of a line's fields; what follows the total is the extra `alignment`."""
    utt, text, *scores = fields[:4]
    rest = fields[4:]
    extra = {"alignment": f" {moses_fields.BAR} ".join(rest)} if any(rest) else {}
    if SEGMENTED.fullmatch(text):
        extra["segments"] = text
    return moses_fields.Row(utt, drop_segments(text), *scores, extra=extra)


def drop_segments(text: str) -> str:
    """Return the text of a traced one, which ends in a segment; any other as it is."""
    return SEGMENTS.sub("", text).strip() if SEGMENTED.fullmatch(text) else text


def list_fields(row: moses_fields.Row) -> list[str]:
    """Return the fields of a line."""
    alignment, traced = row.extra.get("alignment", ""), row.extra.get("segments", "")
    return [
        row.utt,
        traced if traced and drop_segments(traced) == row.text else row.text,
        row.features,
        row.total,
        *(alignment.split(moses_fields.BAR) if alignment else ()),
    ]


recognises = moses_fields.recognise(FEATURES, 2)
read = partial(moses_fields.read, arrange=parse_fields, sparse=True)
write = partial(moses_fields.write, fields=list_fields)
