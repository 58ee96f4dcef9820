"""Marian N-best lists: `0 ||| blue finch ||| F0= -2.1 F1= -0.4 ||| -0.7`, before the features an
alignment and `WordScores= ...`, which older versions write among the features.

F0, F1 .. are the models' log-probabilities (natural), the total their weighted sum,
length-normalised if --normalize was given; it is read as it stands. Names of scores, and what
becomes of sentences without a line: see `moses_fields`.
"""

import re
from functools import partial

from lmtools.base.errors import UserError
from lmtools.formats.nbest import moses_fields
from lmtools.formats.nbest.moses_fields import OPTIONS as OPTIONS

SUMMARY = "Marian: `id ||| text ||| F0= -2.1 ||| total`, alignments and word scores between"
FEATURES = re.compile(r"(F\d+|WordScores)= ?[-+.\d]", re.ASCII)
WORDS = "WordScores="
WORDS_INSIDE = re.compile(r"(?<!\S)WordScores=((?:\s*[-+.\d][-+.\deE]*)*)(?!\S)", re.ASCII)


def parse_fields(fields: list[str], where: str) -> moses_fields.Row:
    """Parse the row of a line's fields, of which the last two are features and total."""
    extra = {}
    for part in fields[2:-2]:
        name, value = (
            ("WordScores", part.removeprefix(WORDS).strip())
            if part.startswith(WORDS)
            else ("alignment", part)
        )
        if name in extra:
            raise UserError(
                f"{where}: two of {len(fields)} fields are {name}; expected text, alignment,"
                " WordScores, features, total"
            )
        extra[name] = value
    features, total = fields[-2:] if len(fields) > 3 else (*fields[2:], "", "")[:2]
    if WORDS in features and "WordScores" not in extra:
        extra["WordScores"] = " ".join(" ".join(WORDS_INSIDE.findall(features)).split())
        features = " ".join(WORDS_INSIDE.sub(" ", features).split())
    extra = {name: value for name, value in extra.items() if value}
    return moses_fields.Row(*fields[:2], features=features, total=total, extra=extra)


def list_fields(row: moses_fields.Row) -> list[str]:
    """Return the fields of a line."""
    alignment, words = row.extra.get("alignment"), row.extra.get("WordScores")
    between = [*([alignment] if alignment else []), *([f"{WORDS} {words}"] if words else [])]
    return [row.utt, row.text, *between, row.features, row.total]


recognises = moses_fields.recognise(FEATURES, -2)
read = partial(moses_fields.read, arrange=parse_fields)
write = partial(moses_fields.write, fields=list_fields)
