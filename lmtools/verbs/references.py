"""How references are joined with what the recogniser wrote."""

import argparse
from collections.abc import Iterable, Iterator
from typing import TypeVar

from lmtools.errors import UserError
from lmtools.formats import kaldi_text, plain

Item = TypeVar("Item")  # with the utterance's id as `utt`


def joined(args: argparse.Namespace, items: Iterable[Item]) -> Iterator[tuple[Item, str | None]]:
    """Each item with its reference, None for all without the options, one by one.

    UserError for an item that the references lack, and for lines that are more or fewer than the
    items.
    """
    if args.ref_lines:
        lines, count = plain.read(args.ref_lines), 0
        for count, item in enumerate(items, 1):
            if count > len(lines):
                raise other_number(args, len(lines), f"{count} utterances or more")
            yield item, lines[count - 1]
        if count < len(lines):
            raise other_number(args, len(lines), f"{count} utterances")
        return
    texts = kaldi_text.read(args.ref) if args.ref else {}
    for item in items:
        if args.ref and item.utt not in texts:
            raise UserError(
                f"{args.ref}: no reference for lattice {item.utt!r}; make the ids the same on both"
                " sides"
            )
        yield item, texts.get(item.utt)


def other_number(args: argparse.Namespace, lines: int, utterances: str) -> UserError:
    """The user's view of references that are not one an utterance."""
    return UserError(
        f"{args.ref_lines}: {lines} lines for {utterances} in {args.input}; give one line each, in"
        " their order"
    )
