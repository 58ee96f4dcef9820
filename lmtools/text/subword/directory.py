"""Subword models by name, and their directories: learn into one, load from one; word lists that
other toolkits wrote, and the tokenizer of a Hugging Face directory, so that its text becomes a
corpus as any other does.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from lmtools.base.config import load_yaml
from lmtools.base.errors import UserError
from lmtools.base.files import ENCODING, longest_line, not_utf8, read_bytes, refuse_pipe, too_long
from lmtools.base.seal import check_seal
from lmtools.text import Normaliser
from lmtools.text.subword.base import DESCRIPTION, SPECIALS, LeftOut, Subword, room
from lmtools.text.subword.lists import Char, Word
from lmtools.text.subword.sentences import BpePieces, UnigramPieces, scheme_of
from lmtools.text.subword.spelled import Spelled
from lmtools.text.unknown import is_piece

# No words: sentence marks, the empty word, the unknown word, silence and back-off of other
# toolkits. All else, <SPOKEN_NOISE> too, is one.
PIECES = 0.05  # of a list: more are not of words
MARKS = frozenset((*SPECIALS, "<eps>", "<sb>", "<UNK>", "!SIL", "!SENT_START", "!SENT_END", "#0"))
SUBWORDS: dict[str, type[Subword]] = {
    kind.scheme: kind for kind in (BpePieces, UnigramPieces, Word, Char)
}
VOCABULARIES = {**SUBWORDS, Spelled.scheme: Spelled}  # a spelled one is made of two


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
    rows = list(pair_counts(read_rows(content, path)))
    if len(pieces := [word for word, _ in rows if is_piece(word)]) > PIECES * len(rows):
        raise UserError(
            f"{path}: a list of pieces ({pieces[0]!r}), which are no words; give the SentencePiece"
            " .model that has them, or learn pieces: lmtools subword --text TEXT --type bpe"
        )
    for word, count in rows:
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


def train(
    scheme: str,
    lines: Iterable[str],
    vocab_size: int | None,
    normaliser: Normaliser,
    out_dir,
    words=None,
    **limits: int,
) -> Subword:
    """Learn the subword model of `scheme` from `lines` (normalised here) and save it in `out_dir`.

    `vocab_size` counts the five specials; a small text may give fewer ids. Of `limits` `min_count`
    drops rarer words or characters of a word or char list; `sentences` bounds the random sample
    (fixed seed) that bpe and unigram learn from. With `words`, the directory of a word list, the
    model spells words and predicts those of the list (lmtools.text.subword.spelled).
    """
    kind = SUBWORDS[scheme]
    room(vocab_size, 0)
    clean = (text for line in lines if (text := normaliser(line)))
    content, left_out = kind.learn(clean, vocab_size, **limits)
    subword = kind(content, normaliser)
    subword.left_out = left_out
    return save_subword(subword, out_dir, words)


def save_subword(subword: Subword, out_dir, words=None) -> Subword:
    """Save the subword model, or with `words` the vocabulary that spells by it, in `out_dir`."""
    subword = spell_words(subword, words) if words else subword
    subword.save_to(out_dir)
    return subword


def spell_words(pieces: Subword, words_dir) -> Spelled:
    """Return the words of the list in `words_dir`, spelled by `pieces` of its normaliser."""
    words = load_subword(words_dir)
    if not isinstance(words, Word):
        raise UserError(
            f"{words_dir}: a {words.scheme} vocabulary; --words takes a directory that lmtools"
            " subword --type word made"
        )
    if words.normaliser != pieces.normaliser:
        raise UserError(
            f"{words_dir}: its text was normalised in another way; give the same options of the"
            " normaliser"
        )
    share = (read_description(words_dir).get("left_out") or {}).get("share") or 0.0
    unknown = round(int(words.counts.sum()) * share / (1 - share)) if share < 1 else 0
    return Spelled(Spelled.join(pieces, words, unknown), pieces.normaliser)


def adopt(
    path, normaliser: Normaliser, out_dir, vocab_size: int | None = None, words=None
) -> Subword:
    """Save the vocabulary of another toolkit's `path`, a SentencePiece model or a word list in its
    order, in `out_dir` with our specials; `vocab_size` cuts a list, `words` as in `train`.
    """
    content = read_bytes(path)
    if content and content[:1] != b"\n":  # a word list: SentencePiece models begin with a field
        content, left_out = adopt_word_list(content, path, normaliser, vocab_size)
        subword = Word(content, normaliser)
        subword.left_out = left_out
        return save_subword(subword, out_dir, words)
    if vocab_size is not None:
        raise UserError(
            f"{path}: a SentencePiece model has the size it was trained with; leave"
            " --vocab-size out"
        )
    try:
        scheme = scheme_of(content)
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"{path}: cannot be a subword model here ({error}); give SentencePiece's .model file or"
            " a word list"
        ) from None
    try:
        subword = SUBWORDS[scheme](content, normaliser)
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"{path}: a SentencePiece model that cannot be used here ({error}); learn another one"
            " with lmtools subword"
        ) from None
    return save_subword(subword, out_dir, words)


def load_subword(directory) -> Subword:
    """Load the subword model in `directory`; UserError if none, damaged, or of mixed files."""
    path, description = Path(directory), read_description(directory)
    kind = VOCABULARIES.get(description.get("scheme"))
    if kind is None:
        raise UserError(
            f"{path / DESCRIPTION}:1: scheme is {description.get('scheme')!r}; expected one of"
            f" {', '.join(VOCABULARIES)}"
        )
    refuse_pipe(path / kind.file)
    content, normaliser = read_bytes(path / kind.file), Normaliser.load(path)
    return assemble(kind, content, normaliser, expected=description.get("hash"), source=path)


def read_description(directory) -> dict:
    """Read the description in a subword model's directory; UserError where it was damaged."""
    path = Path(directory) / DESCRIPTION
    return check_seal(
        load_yaml(path),
        path,
        "copy the directory again, or write it again with lmtools subword",
        warn=False,
    )


def assemble(
    kind: type[Subword], content: bytes, normaliser: Normaliser, *, expected: str | None, source
) -> Subword:
    """Return the subword model of these parts; UserError about `source` for another hash."""
    try:
        subword = kind(content, normaliser)
    except (RuntimeError, ValueError, IndexError) as error:
        raise UserError(f"{source}: damaged subword model ({error}); write it again") from None
    if subword.hash != expected:
        raise UserError(
            f"{source}: the subword model or its normaliser was changed; write it again"
        )
    return subword
