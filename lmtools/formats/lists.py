"""References joined to N-best lists and lattices; what changes lists is in `edits`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from lmtools.base.errors import UserError
from lmtools.base.log import say
from lmtools.formats import plain
from lmtools.formats.texts import read_texts
from lmtools.types import NBest

Item = TypeVar("Item")  # with the utterance's id as `utt`


def attach_refs(
    nbests: Sequence[NBest], refs: Mapping[str, str], nbest_path, ref_path
) -> list[NBest]:
    """Return `nbests` with the references of `refs`, joined by utterance id. References of other
    utterances, as of a bigger set, are not used; UserError if a list has none.
    """
    if missing := [nbest.utt for nbest in nbests if nbest.utt not in refs]:
        unused = count_unused(nbests, refs)
        other = f", {unused} of {len(refs)} references have no list" if unused else ""
        lines = ", or give them with --ref-lines if each line is a whole reference"
        raise UserError(
            f"{ref_path}: {len(missing)} of {len(nbests)} utterances in {nbest_path} have no"
            f" reference (first {missing[0]!r}){other}; make the ids the same on both sides"
            f"{lines if len(refs) == len(nbests) else ''}"
        )
    return [replace(nbest, ref=refs[nbest.utt], more_refs=()) for nbest in nbests]


def match_ids(refs: Mapping[str, str], utts: Sequence[str], path) -> Mapping[str, str]:
    """Return references under the ids of the lists where one side has a speaker before each id, as
    ESPnet's trn has (SPK-UTT), and all of `utts` find one reference of their own in this way; say
    so. Return them as they are otherwise.
    """
    if not utts or any(utt in refs for utt in utts):
        return refs
    whole: dict[str, list[str]] = {}
    for utt in refs:
        for end in list_ends(utt):
            whole.setdefault(end, []).append(utt)
    found = [whole.get(utt) or [end for end in list_ends(utt) if end in refs] for utt in utts]
    keys = [candidates[0] for candidates in found if len(candidates) == 1]
    if len(keys) < len(utts) or len({*keys}) < len(utts):
        return refs
    say(f"{path}: ids joined without the speaker in front: {keys[0]!r} is {utts[0]!r}, and so on")
    joined = set(keys)
    rest = {utt: text for utt, text in refs.items() if utt not in joined}
    return {utt: refs[key] for utt, key in zip(utts, keys, strict=True)} | rest


def list_ends(utt: str) -> list[str]:
    """Return what stands after each `-` and `_` of an id."""
    return [utt[mark.end() :] for mark in re.finditer("[-_]", utt)]


def count_unused(nbests: Sequence[NBest], refs: Mapping[str, str]) -> int:
    """Return how many references have no list."""
    return len(refs.keys() - {nbest.utt for nbest in nbests})


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
