"""The n-grams of a model of `lmtools ngram`, for forms that hold them with other names."""

from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from lmtools.base.errors import UserError
from lmtools.ngram import arpa
from lmtools.ngram.directory import find_arpa
from lmtools.ngram.model import CONFIG, SUBWORD, Description
from lmtools.ngram.sentences import SYMBOLS
from lmtools.text.subword import SPECIALS, Subword, load_subword
from lmtools.text.subword import UNK as UNKNOWN_ID
from lmtools.text.subword.sentences import SentencePiece, ordinary

UNK, BOS, EOS = SYMBOLS
# an order: words to (log10 probability, log10 back-off weight)
Order = dict[tuple[str, ...], tuple[float, float]]


def read_vocabulary(directory) -> Subword:
    """Load the subword model of the n-gram model in `directory`; UserError if it holds none."""
    Description.load(directory)
    return load_subword(Path(directory) / SUBWORD)


def read_ngrams(directory) -> list[Order]:
    """Return the n-grams of every order.

    The token that stands for all that a closed vocabulary lacks is <unk> here, as other programs
    call it. UserError where only KenLM's binary file is there, which lists no n-grams.
    """
    description, path = Description.load(directory), find_arpa(directory)
    if description.file == path.name:
        description.verify(directory)
    orders: list[Order] = arpa.read(path)[: description.order]
    if [len(order) for order in orders] != description.counts:
        raise UserError(
            f"{path}: is not the file that {Path(directory) / CONFIG} describes (damaged or"
            " changed); estimate it again"
        )
    if description.unknown:
        orders[0].pop((UNK,), None)
        orders = [rename_tokens(order, {description.unknown: UNK}) for order in orders]
    return orders


def rename_tokens(order: Order, names: Mapping[str, str]) -> Order:
    """Return the n-grams with the tokens of `names` called so."""
    return {
        tuple(names.get(token, token) for token in tokens): values
        for tokens, values in order.items()
    }


def keep_tokens(orders: list[Order], kept) -> tuple[list[Order], int]:
    """Return the n-grams all of whose tokens are in `kept` or are <s>, </s>, <unk>; how many are
    not.

    Every other token's probability stays as it is; the others' is nobody's then.
    """
    kept = {*kept, *SYMBOLS}
    known = [
        {tokens: values for tokens, values in order.items() if kept.issuperset(tokens)}
        for order in orders
    ]
    return known, sum(map(len, orders)) - sum(map(len, known))


def say_left_out(number: int) -> str:
    """Return the message on n-grams that were left out; empty for none."""
    return f"; left out {number} n-grams of tokens that the vocabulary lacks" if number else ""


def token_ids(subword: Subword) -> dict[str, int]:
    """Return the id of each token and of <unk>: those of the SentencePiece model, which every
    toolkit with that model has; of a word or character list, those of `lmtools subword`.
    """
    if isinstance(subword, SentencePiece):
        processor = subword.processor
        ids = {processor.id_to_piece(i): i for i in ordinary(processor)}
        return {**ids, UNK: processor.unk_id()}
    listed = enumerate(subword.vocabulary[len(SPECIALS) :], len(SPECIALS))
    return {**{token: i for i, token in listed}, UNK: UNKNOWN_ID}


def write_symbols(path: Path, ids: Mapping[str, int]) -> None:
    """Write lines `token id`, as k2, icefall and OpenFst read them, by id."""
    rows = sorted(ids.items(), key=lambda row: row[1])
    path.write_text("".join(f"{token} {i}\n" for token, i in rows), encoding="utf-8")


def write_arpa_text(stream: TextIO, orders: list[Order]) -> None:
    """Write n-grams as an ARPA file; a model of order 1 gets an empty section of bigrams, without
    which KenLM would not load it.
    """
    sections = orders if len(orders) > 1 else [*orders, {}]
    sizes = [f"ngram {n}={len(order)}\n" for n, order in enumerate(sections, 1)]
    stream.write("\\data\\\n" + "".join(sizes))
    for n, order in enumerate(sections, 1):
        stream.write(f"\n\\{n}-grams:\n")
        for tokens, (prob, backoff) in order.items():
            end = f"\t{backoff}" if n < len(sections) else ""
            stream.write(f"{prob}\t{' '.join(tokens)}{end}\n")
    stream.write("\n\\end\\\n")
