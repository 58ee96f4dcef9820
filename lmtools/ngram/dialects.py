"""Why KenLM refuses an ARPA file, and what mends it."""

import re

from lmtools.base.errors import UserError
from lmtools.ngram.arpa_lines import ArpaLines
from lmtools.ngram.parsing import WordTable
from lmtools.ngram.sentences import BOS, EOS, SYMBOLS

CAUSE = 200  # characters of KenLM's own words in a message
ORDER = re.compile(r"has order ([0-9]+) but KenLM was compiled to support up to ([0-9]+)")
DIGITS = rb"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
PROBABILITY = rb"\s*(?:-(?:inf|%b)|\+?0*\.?0*)\t" % DIGITS
BACKOFF = rb"\t[+-]?%b" % DIGITS
ZERO = rb"\t-?0+(?:\.0*)?"  # a back-off weight of the highest order


# what KenLM says of n-grams that others leave out, whose probability back-off gives
LEFT_OUT = {
    "The context of every": "has n-grams whose beginnings it leaves out",
    "Avoid pruning n-grams": "has n-grams whose endings it leaves out",
}
MENDED = "which KenLM does not read; write it as KenLM does: lmtools ngram convert {} NEW.arpa"


def explain_refusal(path, file, cause: str) -> UserError:
    """Return the error on the ARPA file `path`, plain in `file`, that KenLM refuses for `cause`:
    the first line that it does not read, and whether `lmtools ngram convert` mends it.
    """
    try:
        quirk = find_quirk(ArpaLines(file, path))
    except UserError as error:
        return error
    if quirk:
        number, what = quirk
        return UserError(f"{path}:{number}: {what}, {MENDED.format(path)}")
    for words, what in LEFT_OUT.items():
        if words in cause:
            return UserError(f"{path}: {what}, {MENDED.format(path)}")
    if order := ORDER.search(cause):
        return UserError(
            f"{path}: a model of order {order[1]}, but KenLM reads {order[2]} at most; estimate it"
            " with a lower --order"
        )
    return UserError(f"{path}: KenLM cannot read it ({cause:.{CAUSE}}); estimate or fetch it again")


def find_quirk(lines: ArpaLines) -> tuple[int, str] | None:
    """Find the first line of a file that our reader takes and KenLM does not, and why; None where
    no line is seen to be such. UserError where our reader does not take it either.
    """
    sizes = lines.read_header()
    ids: dict[str, int] = {}
    table = None
    for n in range(1, len(sizes) + 1):
        if lines.quirks:
            break
        lines.expect_section(n, sizes)
        table = WordTable(ids) if n == 2 else table
        read_section(lines, n, sizes, ids, table=table)
        if n == 1 and SYMBOLS[BOS] not in ids and SYMBOLS[BOS].upper() in ids:
            raise lines.refuse_capitals()
        if n == 1 and not lines.quirks:
            missing = (symbol for symbol in (SYMBOLS[BOS], SYMBOLS[EOS]) if symbol not in ids)
            lines.quirks += [(lines.following - 1, f"no unigram {each} stands") for each in missing]
    else:
        lines.expect_end(sizes)
        if len(sizes) == 1:
            lines.quirks.append((lines.following - 1, "no bigrams stand before the end"))
    return lines.quirks[0] if lines.quirks else None


def read_section(
    lines: ArpaLines, n: int, sizes: list[int], ids: dict[str, int], *, table: WordTable | None
) -> None:
    """Take the n-grams of an order up to the first that KenLM does not read, a quirk of `lines`."""
    size, at = sizes[n - 1], 0
    backoff = BACKOFF if n < len(sizes) else ZERO
    plain = re.compile(
        PROBABILITY + rb"[^ \t\r\n]+(?:[ \t][^ \t\r\n]+){%d}(?:%b)?\r?\n?" % (n - 1, backoff)
    )
    while at < size and (block := lines.take(size - at)):
        at += len(lines.parse(block, n, ids, table)[0])
        for number, raw in enumerate(lines.split(block), lines.number):
            if not plain.fullmatch(raw) and raw.strip():
                lines.quirks.append((number, describe_row(raw)))
                return
    if at < size:
        raise lines.cut_off(f"after {at} of `ngram {n}={size}`")


def describe_row(raw: bytes) -> str:
    """Return the unusual form of the line of an n-gram, in words."""
    if b"\t" not in raw.strip():
        return "blanks stand in place of tabs"
    if raw.rstrip(b"\r\n").endswith((b" ", b"\t")):
        return "white space ends the line"
    return "the line has another form"
