"""icefall's recogs files: `ID:<TAB>ref=['BLUE', 'FINCH']` and `ID:<TAB>hyp=['BLUE', 'FINS']`, words
as Python lists (or bare text).

Several `hyp` lines of one ID are its list, best first; `ref` may stand once or be repeated before
each, the same every time. The ID is kept as it is, with the number that lhotse's cuts end in
(`zed1-0`). Lines `timestamp_...=` are kept as extras: of the hypothesis before them,
`timestamp_ref` of the utterance. The files hold no scores. The format is read, not written.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.checks import by_utterance, encodable, identifier, refuse_write
from lmtools.types import Hypothesis, NBest

SUMMARY = "icefall recogs: `id:TAB ref=[...]`, `id:TAB hyp=[...]`"
LINE = re.compile(r"(.*?):\t(ref|hyp|timestamp_\w+)=(.*)", re.DOTALL)
BARE = re.compile(r"\[[^\s\[\],'\"]+(?:, [^\s\[\],'\"]+)*\]")  # what str.join wrote

write = refuse_write


def recognises(path: Path, first: str) -> bool:
    return LINE.fullmatch(first) is not None


def read(path) -> Iterator[NBest]:
    """Read lists, each once the next one starts; UserError with the line of all else."""
    for utt, lines in by_utterance(read_rows(path)):
        yield gather_list(utt, lines)


def read_rows(path) -> Iterator[tuple[str, str, str, str]]:
    """Yield (where, ID, what, value) of every line."""
    for number, line in read_lines(path):
        if line.strip():
            where = f"{path}:{number}"
            match = LINE.fullmatch(line)
            if not match:
                raise UserError(
                    f"{where}: expected `ID:<TAB>ref=[...]` or `ID:<TAB>hyp=[...]`; correct the"
                    " line"
                )
            yield where, identifier(match[1], where), match[2], match[3]


def gather_list(utt: str, lines: list[tuple[str, str, str, str]]) -> NBest:
    ref, hyps, extra = None, [], {}
    for where, _, what, value in lines:
        if what == "hyp":
            hyps.append((parse_words(value, where), {}))
        elif what == "ref":
            if ref not in (None, parse_words(value, where)):
                raise UserError(f"{where}: {utt!r} has two different references; keep one of them")
            ref = parse_words(value, where)
        else:
            (hyps[-1][1] if hyps and not what.endswith("_ref") else extra)[what] = value
    return NBest(utt, tuple(Hypothesis(text, {}, more) for text, more in hyps), ref, extra)


def parse_words(value: str, where: str) -> str:
    """Return the text of a Python list of words, or of bare text."""
    if not value.startswith("["):
        return " ".join(value.split())
    if BARE.fullmatch(value):
        return encodable(" ".join(value[1:-1].replace(", ", " ").split()), where)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's remarks on the value as a program
            row = ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        row = None
    if not isinstance(row, list) or not all(isinstance(word, str) for word in row):
        raise UserError(
            f"{where}: {value[:40]!a} is not a list of words; write ['BLUE', 'FINCH'] (one speaker"
            " a file)"
        )
    return encodable(" ".join(" ".join(row).split()), where)
