"""References joined to N-best lists and lattices; what changes lists is in `edits`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from lmtools.base.errors import UserError
from lmtools.formats import plain
from lmtools.formats.joining import Side, join_ids
from lmtools.formats.texts import read_texts
from lmtools.types import NBest

Item = TypeVar("Item")  # with the utterance's id as `utt`


def attach_refs(
    nbests: Sequence[NBest], refs: Mapping[str, str], nbest_path, ref_path
) -> list[NBest]:
    """Return `nbests` with the references of `refs`, joined by utterance id as `join_ids` does.
    References of other utterances, as of a bigger set, are not used; UserError if a list has none.
    """
    utts = Side([nbest.utt for nbest in nbests], str(nbest_path))
    try:
        ids = join_ids(utts, Side(refs, str(ref_path)), "utterances have no reference")
    except UserError as error:
        lines = ", or give them with --ref-lines if each line is a whole reference"
        raise UserError(f"{error}{lines if len(refs) == len(nbests) else ''}") from None
    return [replace(nbest, ref=refs[ids[nbest.utt]], more_refs=()) for nbest in nbests]


def attach_lines(
    nbests: Sequence[NBest], texts: Mapping[str, Sequence[str]], nbest_path
) -> list[NBest]:
    """Attach the references of `texts`, by path, to `nbests` in their order: several to each list
    where there are several files.

    UserError unless each has as many as there are lists.
    """
    for path, refs in texts.items():
        if len(nbests) != len(refs):
            raise UserError(
                f"{path}: {len(refs)} lines for {len(nbests)} lists in {nbest_path}; give one line"
                " a list, in their order"
            )
    return [
        replace(nbest, ref=ref, more_refs=tuple(more))
        for nbest, ref, *more in zip(nbests, *texts.values(), strict=True)
    ]


def join_refs(items: Iterable[Item], ref, ref_lines, source) -> Iterator[tuple[Item, str | None]]:
    """Yield each item from `source` with its reference, one by one: by its `utt` from the texts
    `ref`, in their order from the plain text `ref_lines`, or None without either.

    UserError for an item that the references lack, and for lines that are more or fewer than the
    items.
    """
    if ref_lines:
        lines, count = plain.read(ref_lines), 0
        for count, item in enumerate(items, 1):
            if count > len(lines):
                raise other_number(ref_lines, len(lines), f"{count} utterances or more", source)
            yield item, lines[count - 1]
        if count < len(lines):
            raise other_number(ref_lines, len(lines), f"{count} utterances", source)
        return
    texts = read_texts(ref) if ref else {}
    for item in items:
        if ref and item.utt not in texts:
            raise UserError(
                f"{ref}: no reference for lattice {item.utt!r}; make the ids the same on both sides"
            )
        yield item, texts.get(item.utt)


def other_number(path, lines: int, utterances: str, source) -> UserError:
    """Return the error on references that are not one an utterance."""
    return UserError(
        f"{path}: {lines} lines for {utterances} in {source}; give one line each, in their order"
    )
