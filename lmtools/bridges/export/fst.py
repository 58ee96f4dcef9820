"""OpenFst text: an n-gram model as the acceptor G, whose labels are token ids.

States are histories; a back-off arc reads #0 and writes nothing, as in the G of Kaldi and k2 and in
icefall's bigram for LODR.
"""

import math
from collections.abc import Iterator, Mapping

from lmtools.base.atomic import atomic_directory
from lmtools.base.errors import UserError
from lmtools.bridges.export.ngrams import (
    BOS,
    EOS,
    UNK,
    Order,
    keep_tokens,
    read_ngrams,
    read_vocabulary,
    say_left_out,
    token_ids,
    write_symbols,
)
from lmtools.ngram.sentences import LOWEST

GRAPH, SYMBOLS = "G.fst.txt", "symbols.txt"
EPSILON, BACKOFF = "<eps>", "#0"
LN10 = math.log(10)


def write_fst(directory: str, out: str) -> str:
    """Write the n-grams of `directory` as `out`/G.fst.txt and `out`/symbols.txt; what to say of it.

    A sentence costs -ln p with its end, where a back-off arc is taken only from states without an
    arc (or a final cost) for what comes. #0 has the highest label.
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
            f"{directory}: {min(clash)} is a token of the model, and a symbol of {SYMBOLS};"
            " estimate it of text without that word"
        )
    orders, left_out = keep_tokens(orders, labels)
    backoff = max(subword.size, *(i + 1 for i in labels.values()))
    with atomic_directory(out, GRAPH) as temporary:
        with open(temporary / GRAPH, "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(make_graph(orders, labels, backoff))
        write_symbols(temporary / SYMBOLS, {EPSILON: 0, **labels, BACKOFF: backoff})
        subword.save_to(temporary / "subword")
    return (
        f"{out}/{GRAPH}: {len(orders)}-gram, back-off label {backoff} ({BACKOFF})"
        f"{say_left_out(left_out)}"
    )


def make_graph(orders: list[Order], labels: Mapping[str, int], backoff: int) -> Iterator[str]:
    """Lines `from to input output cost` and `state cost`; the start's come first, and those of a
    state by input label.
    """
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
    """Return the states by history, from the start's 0: those that an n-gram continues or that have
    a back-off weight of their own, and the empty one.
    """
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
