"""N-gram models as ARPA files (pyctcdecode, flashlight, torchaudio, KenLM's own programs), and as
OpenFst text: the model as the acceptor G, whose labels are token ids. States are histories; a
back-off arc reads #0 and writes nothing, as in the G of Kaldi and k2 and in icefall's bigram for
LODR.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from lmtools.base.atomic import atomic_directory, atomic_text
from lmtools.base.errors import UserError
from lmtools.ngram import arpa
from lmtools.ngram.directory import ARPA, find_arpa, names_arpa, say_bare
from lmtools.ngram.model import CONFIG, SUBWORD, Description
from lmtools.ngram.sentences import LOWEST, SYMBOLS
from lmtools.text.subword import SPECIALS, Subword, load_subword
from lmtools.text.subword import UNK as UNKNOWN_ID
from lmtools.text.subword.sentences import SentencePiece, ordinary

UNK, BOS, EOS = SYMBOLS
# an order: words to (log10 probability, log10 back-off weight)
Order = dict[tuple[str, ...], tuple[float, float]]
GRAPH, LABELS = "G.fst.txt", "symbols.txt"
EPSILON, BACKOFF = "<eps>", "#0"
LN10 = math.log(10)


def write_arpa(directory: str, out: str) -> str:
    """Write the n-grams of `directory` as `out`, a file .arpa (.gz, .xz), or as `out`/lm.arpa with
    the vocabulary; what to say of it.
    """
    subword, orders = read_vocabulary(directory), read_ngrams(directory)
    counts = f"n-grams {' '.join(str(len(order)) for order in orders)}"
    if names_arpa(out):
        with atomic_text(out) as stream:
            write_arpa_text(stream, orders)
        say_bare(out, subword)
        return f"{out}: {counts}"
    with atomic_directory(out, ARPA) as temporary:
        with open(temporary / ARPA, "w", encoding="utf-8", newline="\n") as stream:
            write_arpa_text(stream, orders)
        subword.save_to(temporary / "subword")
    return f"{out}/{ARPA}: {counts}"


def write_fst(directory: str, out: str) -> str:
    """Write the n-grams of `directory` as `out`/G.fst.txt and symbols.txt; what to say of it. A
    sentence costs -ln p where back-off arcs are taken only from states without another. #0 has the
    highest label.
    """
    subword = read_vocabulary(directory)
    labels, orders = token_ids(subword), read_ngrams(directory)
    if (UNK,) not in orders[0] or orders[0][UNK,][0] <= LOWEST:
        del labels[UNK]
    if 0 in labels.values():
        token = next(token for token, i in labels.items() if i == 0)
        raise UserError(
            f"{directory}: the id of {token} is 0, which is OpenFst's label of nothing; use a"
            " vocabulary that keeps id 0 for padding or the blank"
        )
    if clash := labels.keys() & {EPSILON, BACKOFF}:
        raise UserError(
            f"{directory}: {min(clash)} is a token of the model, and a symbol of {LABELS};"
            " estimate it of text without that word"
        )
    orders, left_out = keep_tokens(orders, labels)
    backoff = max(subword.size, *(i + 1 for i in labels.values()))
    with atomic_directory(out, GRAPH) as temporary:
        with open(temporary / GRAPH, "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(make_graph(orders, labels, backoff))
        write_symbols(temporary / LABELS, {EPSILON: 0, **labels, BACKOFF: backoff})
        subword.save_to(temporary / "subword")
    return (
        f"{out}/{GRAPH}: {len(orders)}-gram, back-off label {backoff} ({BACKOFF})"
        f"{say_left_out(left_out)}"
    )


def make_graph(orders: list[Order], labels: Mapping[str, int], backoff: int) -> Iterator[str]:
    """Lines `from to input output cost` and `state cost`, the start's first, by input label."""
    numbers = number_histories(orders)
    arcs: list[list[tuple[int, int, float]]] = [[] for _ in numbers]
    final: dict[int, float] = {}
    for order in orders:
        for tokens, (prob, _) in order.items():
            # its history is a state, as something follows it
            source, token, cost = numbers[tokens[:-1]], tokens[-1], -prob * LN10 or 0.0
            if token == EOS:
                final[source] = cost
            elif token in labels and prob > LOWEST:
                arcs[source].append((labels[token], numbers[longest(tokens, numbers)], cost))
    for history, state in numbers.items():
        for label, to, cost in sorted(arcs[state]):
            yield f"{state}\t{to}\t{label}\t{label}\t{cost:.9g}\n"
        if history:
            cost = -orders[len(history) - 1].get(history, (0.0, 0.0))[1] * LN10 or 0.0
            yield f"{state}\t{numbers[longest(history[1:], numbers)]}\t{backoff}\t0\t{cost:.9g}\n"
        if state in final:
            yield f"{state}\t{final[state]:.9g}\n"


def number_histories(orders: list[Order]) -> dict[tuple[str, ...], int]:
    """Return the states by history, from the start's 0."""
    start = (BOS,)
    histories = dict.fromkeys(tokens[:-1] for order in orders for tokens in order)
    for order in orders[:-1]:
        histories.update(dict.fromkeys(tokens for tokens, values in order.items() if values[1]))
    first = start if start in histories else ()
    return {history: i for i, history in enumerate(dict.fromkeys([first, (), *histories]))}


def longest(tokens: tuple[str, ...], numbers: Mapping[tuple[str, ...], int]) -> tuple[str, ...]:
    """Return the longest end of `tokens` that is a state's history."""
    while tokens not in numbers:
        tokens = tokens[1:]
    return tokens


def read_vocabulary(directory) -> Subword:
    Description.load(directory)
    return load_subword(Path(directory) / SUBWORD)


def read_ngrams(directory) -> list[Order]:
    """Return the n-grams of every order, with <unk> for the token of a closed vocabulary. UserError
    where only KenLM's binary file is there.
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
    return {
        tuple(names.get(token, token) for token in tokens): values
        for tokens, values in order.items()
    }


def keep_tokens(orders: list[Order], kept) -> tuple[list[Order], int]:
    """Return the n-grams of tokens in `kept` or of <s>, </s>, <unk> alone; how many are not."""
    kept = {*kept, *SYMBOLS}
    known = [
        {tokens: values for tokens, values in order.items() if kept.issuperset(tokens)}
        for order in orders
    ]
    return known, sum(map(len, orders)) - sum(map(len, known))


def say_left_out(number: int) -> str:
    return f"; left out {number} n-grams of tokens that the vocabulary lacks" if number else ""


def token_ids(subword: Subword) -> dict[str, int]:
    """Return the id of each token and of <unk>: of the SentencePiece model, or the list."""
    if isinstance(subword, SentencePiece):
        processor = subword.processor
        ids = {processor.id_to_piece(i): i for i in ordinary(processor)}
        return {**ids, UNK: processor.unk_id()}
    listed = enumerate(subword.vocabulary[len(SPECIALS) :], len(SPECIALS))
    return {**{token: i for i, token in listed}, UNK: UNKNOWN_ID}


def write_symbols(path: Path, ids: Mapping[str, int]) -> None:
    rows = sorted(ids.items(), key=lambda row: row[1])
    path.write_text("".join(f"{token} {i}\n" for token, i in rows), encoding="utf-8")


def write_arpa_text(stream: TextIO, orders: list[Order]) -> None:
    """Write an ARPA file; order 1 gets an empty section of bigrams, without which KenLM fails."""
    sections = orders if len(orders) > 1 else [*orders, {}]
    sizes = [f"ngram {n}={len(order)}\n" for n, order in enumerate(sections, 1)]
    stream.write("\\data\\\n" + "".join(sizes))
    for n, order in enumerate(sections, 1):
        stream.write(f"\n\\{n}-grams:\n")
        for tokens, (prob, backoff) in order.items():
            end = f"\t{backoff}" if n < len(sections) else ""
            stream.write(f"{prob}\t{' '.join(tokens)}{end}\n")
    stream.write("\n\\end\\\n")
