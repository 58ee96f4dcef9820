"""Word lists that other toolkits wrote, as a word vocabulary in the list's own order."""

from collections.abc import Iterator
from itertools import pairwise

from lmtools.base.errors import UserError
from lmtools.base.files import ENCODING, longest_line, not_utf8, too_long
from lmtools.text import Normaliser
from lmtools.text.subword.base import SPECIALS, LeftOut, room
from lmtools.text.subword.lists import Word

# No words: sentence marks, the empty word, the unknown word, silence and back-off of other
# toolkits. All else, <SPOKEN_NOISE> too, is one.
MARKS = frozenset((*SPECIALS, "<eps>", "<sb>", "<UNK>", "!SIL", "!SENT_START", "!SENT_END", "#0"))


def is_word_list(content: bytes) -> bool:
    """Return whether a file's content is text rather than a SentencePiece model, which begins with
    a field that a list's first word cannot be.
    """
    return bool(content) and content[:1] != b"\n"


def adopt_word_list(
    content: bytes, path, normaliser: Normaliser, vocab_size: int | None
) -> tuple[bytes, LeftOut]:
    """Return the content of a `Word` vocabulary of the list in `content`, read from `path`, and
    what `vocab_size` (specials counted) cuts off.

    A line is a word, a word and its id (Kaldi's words.txt: numbers that ascend), or a word and its
    count (our vocab.txt: any others; without counts they are 0). The order stays. Words are
    normalised; of those that become equal the first has the place and all the counts, and what the
    normaliser empties or splits is no word of a text and left out, as are MARKS. UserError names
    the line.
    """
    words: dict[str, int] = {}
    for word, count in pair_counts(read_rows(content, path)):
        form = normaliser(word) if word not in MARKS else ""
        if form and " " not in form and form not in SPECIALS:
            words[form] = words.get(form, 0) + count
    if not words:
        raise UserError(
            f"{path}: no words in it; give a list of one a line, such as Kaldi's words.txt, or"
            " SentencePiece's .model file"
        )
    kept = list(words)[: room(vocab_size, len(words))]
    total = sum(words.values())
    return Word.write_list(kept, words), LeftOut.of(
        len(words) - len(kept), total - sum(words[word] for word in kept), total
    )


def read_rows(content: bytes, path) -> Iterator[tuple[str, ...]]:
    """Read the fields of each line that has any, alike one or two, the second a whole number."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        remedy = f"{ENCODING}, or give SentencePiece's .model file"
        raise not_utf8(path, f"{path}:{line}", remedy) from None
    columns, most = 0, longest_line()
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > most:
            raise too_long(f"{path}:{number}", most)
        fields = line.split()
        if not fields:
            continue
        columns = columns or len(fields)
        if (
            len(fields) != columns
            or columns > 2
            or "\0" in line
            or (columns == 2 and not (fields[1].isascii() and fields[1].isdigit()))
        ):
            expected = "a word" if columns == 1 else "a word and its id or count"
            raise UserError(
                f"{path}:{number}: expected {expected}, found {line[:60]!r}; give a word list, or"
                " --text to learn from text"
            )
        yield tuple(fields)


def pair_counts(lines: Iterator[tuple[str, ...]]) -> Iterator[tuple[str, int]]:
    """Return words with their counts, 0 where a list has none."""
    columns = list(zip(*lines, strict=True))
    numbers = [int(text) for text in columns[1]] if len(columns) == 2 else []
    ids = len(numbers) > 1 and all(a < b for a, b in pairwise(numbers))
    words = columns[0] if columns else ()
    return zip(words, numbers if numbers and not ids else [0] * len(words), strict=True)
