"""Subword models by name, and their directories: learn into one, load from one."""

from collections.abc import Iterable
from pathlib import Path

from lmtools.base.config import load_yaml
from lmtools.base.errors import UserError
from lmtools.base.files import read_bytes, refuse_pipe
from lmtools.base.seal import check_seal
from lmtools.text import Normaliser
from lmtools.text.subword.base import DESCRIPTION, Subword, room
from lmtools.text.subword.lists import Char, Word
from lmtools.text.subword.sentences import BpePieces, UnigramPieces, scheme_of
from lmtools.text.subword.spelled import Spelled
from lmtools.text.subword.wordlists import adopt_word_list, is_word_list

SUBWORDS: dict[str, type[Subword]] = {
    kind.scheme: kind for kind in (BpePieces, UnigramPieces, Word, Char)
}
VOCABULARIES = {**SUBWORDS, Spelled.scheme: Spelled}  # a spelled one is not learnt but made of two


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
    """Save the vocabulary of another toolkit, in the file `path`, in `out_dir` with our specials: a
    SentencePiece model or a word list.

    A model keeps its pieces, a list its order (lmtools.text.subword.wordlists); `vocab_size`,
    specials counted, cuts a list. `words` is as in `train`.
    """
    content = read_bytes(path)
    if is_word_list(content):
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
