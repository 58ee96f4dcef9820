"""ARPA files whose tokens are called as another toolkit calls them when it asks KenLM.

as they are      words or pieces: pyctcdecode, flashlight, torchaudio, KenLM's own programs
ids              the number of the piece: decoders that know ids alone
NeMo's           the character with the number of the piece + 100
"""

from collections.abc import Callable, Mapping

from lmtools.base.atomic import atomic_directory
from lmtools.base.errors import UserError
from lmtools.bridges.export.ngrams import (
    UNK,
    keep_tokens,
    read_ngrams,
    read_vocabulary,
    rename_tokens,
    say_left_out,
    token_ids,
    write_arpa_text,
    write_symbols,
)
from lmtools.ngram.directory import ARPA
from lmtools.text.subword import Subword
from lmtools.text.subword.sentences import SentencePiece

OFFSET = 100  # DEFAULT_TOKEN_OFFSET of NeMo's n-gram scripts
SURROGATES = 0xD800  # the first code point that UTF-8 cannot write


def write_arpa(directory: str, out: str) -> str:
    """Write the n-grams of `directory` as `out`/lm.arpa with their own tokens; what to say of
    it.
    """
    return write_named(directory, out, lambda subword: None)


def write_arpa_ids(directory: str, out: str) -> str:
    """Write the same with the ids of the tokens in their place, and `out`/tokens.txt with both."""
    return write_named(directory, out, name_by_id)


def write_arpa_nemo(directory: str, out: str) -> str:
    """Write the same with the characters in which NeMo writes the ids of its BPE tokenizer's
    pieces.

    UserError unless pieces of a SentencePiece model are modelled.
    """
    return write_named(directory, out, name_by_character)


def write_named(
    directory: str, out: str, choose: Callable[[Subword], Mapping[str, str] | None]
) -> str:
    """Write the n-grams with the names that `choose` gives the tokens of a subword model, None for
    their own.
    """
    subword = read_vocabulary(directory)
    names, left_out = choose(subword), 0
    orders = read_ngrams(directory)
    if names is not None:
        orders, left_out = keep_tokens(orders, names)
        orders = [rename_tokens(order, names) for order in orders]
    with atomic_directory(out, ARPA) as temporary:
        with open(temporary / ARPA, "w", encoding="utf-8", newline="\n") as stream:
            write_arpa_text(stream, orders)
        if names is not None:
            write_symbols(temporary / "tokens.txt", token_ids(subword))
        subword.save_to(temporary / "subword")
    return f"{out}/{ARPA}: n-grams {' '.join(str(len(o)) for o in orders)}{say_left_out(left_out)}"


def name_by_id(subword: Subword) -> dict[str, str]:
    """Return decimal ids of the tokens; <unk> keeps its name."""
    return {token: str(i) for token, i in token_ids(subword).items() if token != UNK}


def name_by_character(subword: Subword) -> dict[str, str]:
    """Return the characters with the numbers id + OFFSET; <unk> keeps its name."""
    if not isinstance(subword, SentencePiece):
        raise UserError(
            f"--to arpa-nemo: the model is of a {subword.scheme} vocabulary, but NeMo's characters"
            " stand for pieces of its SentencePiece model; adopt that with lmtools subword, or use"
            " --to arpa"
        )
    ids = {token: i for token, i in token_ids(subword).items() if token != UNK}
    if max(ids.values()) + OFFSET >= SURROGATES:
        raise UserError(
            f"--to arpa-nemo: {max(ids.values()) + 1} pieces are more than there are characters;"
            f" use a vocabulary of at most {SURROGATES - OFFSET}"
        )
    return {token: chr(i + OFFSET) for token, i in ids.items()}
