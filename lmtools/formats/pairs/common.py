"""Parts that formats of sentence pairs share: fields between tabs, columns by name, refusals."""

from collections.abc import Iterable, Iterator, Sequence

from lmtools.errors import UserError
from lmtools.files import read_lines
from lmtools.formats.checks import encodable, number
from lmtools.types import SentencePair


def rows(path) -> Iterator[tuple[str, list[str]]]:
    """(`path:line`, fields) of each line; fields stand between tabs and quotation marks are
    letters, as in all these sets.
    """
    for line_number, line in read_lines(path):
        yield f"{path}:{line_number}", line.split("\t")


def read_headed(
    path, left: str, right: str, score: str
) -> Iterator[tuple[str, dict[str, str], SentencePair]]:
    """(`path:line`, fields by name, pair) of each line below a header that names the columns;
    `score` may be missing from it.
    """
    lines = rows(path)
    where, header = next(lines, (f"{path}:1", []))
    for name, missing in ((left, False), (right, False), (score, True)):
        if header.count(name) != 1 and not (missing and name not in header):
            raise UserError(
                f"{where}: the header names {header.count(name)} columns {name!r}; add the file's"
                " header or name its format"
            )
    for where, fields in lines:
        if len(fields) != len(header):
            raise UserError(
                f"{where}: {len(fields)} fields below a header of {len(header)}; give one a column,"
                " with tabs between"
            )
        row = dict(zip(header, fields, strict=True))
        yield where, row, pair(row[left], row[right], row.get(score), where)


def pair(left: str, right: str, score: str | None, where: str) -> SentencePair:
    """Return the pair of two sentences and the text of their similarity; UserError for an empty
    sentence and for what is no finite number.
    """
    for side, sentence in (("first", left), ("second", right)):
        if not sentence.strip():
            raise UserError(
                f"{where}: the {side} sentence is empty; add its words or drop the pair"
            )
    return SentencePair(
        left, right, None if score is None else number(score, where, "the similarity")
    )


def agreeing(pairs: Iterable[tuple[str, SentencePair]], path) -> Iterator[SentencePair]:
    """Yield the pairs of (where, pair); UserError for none, and for similarities in some only."""
    first = None
    for where, item in pairs:
        has = item.similarity is not None
        if first is not None and has != first:
            raise UserError(
                f"{where}: has {'a' if has else 'no'} similarity, unlike those before; give every"
                " pair one or none"
            )
        first = has
        yield item
    if first is None:
        raise UserError(f"{path}: holds no sentence pair; give a file that does")


def check_pairs(pairs: Iterable[SentencePair], path) -> Iterator[SentencePair]:
    """Yield `pairs` on their way into `path`; UserError for one that would be read otherwise."""
    numbered = ((f"{path}: pair {rank}", item) for rank, item in enumerate(pairs, 1))
    return agreeing(((where, writable(item, where)) for where, item in numbered), path)


def writable(item: SentencePair, where: str) -> SentencePair:
    """Return `item` if a line can hold it."""
    for sentence in (item.left, item.right):
        # a CR is dropped at a line's end only, a byte-order mark at a file's start only; neither
        # belongs in a sentence
        if (
            "\t" in sentence
            or "\n" in sentence
            or sentence.endswith("\r")
            or sentence.startswith("\ufeff")
        ):
            raise UserError(
                f"{where}: {sentence[:40]!a} holds a tab, a line's end or a byte-order mark; put a"
                " space there"
            )
        encodable(sentence, where)
    return pair(item.left, item.right, spell_similarity(item) or None, where)


def spell_similarity(item: SentencePair) -> str:
    """Return the shortest text of its similarity that reads back the same; '' if it has none."""
    return "" if item.similarity is None else repr(float(item.similarity))


def line(fields: Sequence[str]) -> str:
    """Return the line of `fields`, ended."""
    return "\t".join(fields) + "\n"
