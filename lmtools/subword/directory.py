"""Subword models by name, and their directories: learn into one, load from one."""

from collections.abc import Iterable
from pathlib import Path

from lmtools.config import load_yaml
from lmtools.errors import UserError
from lmtools.files import read_bytes
from lmtools.subword.base import DESCRIPTION, Subword, room
from lmtools.subword.lists import Char, Word
from lmtools.subword.sentences import Bpe, Unigram, scheme_of
from lmtools.subword.wordlists import adopted, is_word_list
from lmtools.text import Normaliser

SUBWORDS: dict[str, type[Subword]] = {kind.scheme: kind for kind in (Bpe, Unigram, Word, Char)}


def train(
    scheme: str, lines: Iterable[str], vocab_size: int | None, normaliser: Normaliser, out_dir, min_count=1, sentences=1_000_000
) -> Subword:
    """The subword model of `scheme` learnt from `lines` (normalised here, empty ones skipped) and saved in `out_dir`.

    `vocab_size` counts the five specials; a small text may give fewer ids. `min_count` drops rarer words or characters of a word
    or char list; `sentences` bounds the random sample (fixed seed) that bpe and unigram learn from.
    """
    kind = SUBWORDS[scheme]
    room(vocab_size, 0)
    clean = (text for line in lines if (text := normaliser(line)))
    content, left_out = kind.learn(clean, vocab_size, min_count, sentences)
    subword = kind(content, normaliser)
    subword.left_out = left_out
    subword.save_to(out_dir)
    return subword


def adopt(path, normaliser: Normaliser, out_dir, vocab_size: int | None = None) -> Subword:
    """What another toolkit has in the file `path`, saved in `out_dir` with our specials: a SentencePiece model or a word list.

    A model keeps its pieces, a list its order (lmtools.subword.wordlists); `vocab_size`, specials counted, cuts a list.
    """
    content = read_bytes(path)
    if is_word_list(content):
        content, left_out = adopted(content, path, normaliser, vocab_size)
        subword = Word(content, normaliser)
        subword.left_out = left_out
        subword.save_to(out_dir)
        return subword
    if vocab_size is not None:
        raise UserError(f"{path}: a SentencePiece model has the size it was trained with; leave --vocab-size out")
    try:
        subword = SUBWORDS[scheme_of(content)](content, normaliser)
    except (RuntimeError, ValueError) as error:
        raise UserError(f"{path}: cannot be a subword model here ({error}); give SentencePiece's .model file or a word list") from None
    subword.save_to(out_dir)
    return subword


def load_subword(directory) -> Subword:
    """The subword model in `directory`; UserError if there is none, it is damaged, or its files do not belong together."""
    path = Path(directory)
    description = load_yaml(path / DESCRIPTION)
    kind = SUBWORDS.get(description.get("scheme"))
    if kind is None:
        raise UserError(f"{path / DESCRIPTION}:1: scheme is {description.get('scheme')!r}; expected one of {', '.join(SUBWORDS)}")
    return assemble(kind, read_bytes(path / kind.file), Normaliser.load(path), description.get("hash"), path)


def assemble(kind: type[Subword], content: bytes, normaliser: Normaliser, expected: str | None, source) -> Subword:
    """The subword model of these parts; UserError about `source` unless its hash is the expected one."""
    try:
        subword = kind(content, normaliser)
    except (RuntimeError, ValueError, IndexError) as error:
        raise UserError(f"{source}: damaged subword model ({error}); write it again") from None
    if subword.hash != expected:
        raise UserError(f"{source}: the subword model or its normaliser was changed; write it again")
    return subword
