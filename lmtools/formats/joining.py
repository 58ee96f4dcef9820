"""Ids of utterances that two files write in other ways: `u1.wav`, `/d/u1`, `U1`, `SPK-u1` for
`u1`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from lmtools.base.errors import UserError
from lmtools.base.log import say

SUFFIX = re.compile(r"\.(wav|flac|mp3|ogg|opus|m4a|sph|txt|json)$", re.IGNORECASE)
RULES = {
    "without directory and suffix": lambda utt: SUFFIX.sub("", utt.rpartition("/")[2]),
    "in lower case": str.lower,
    "in one form of Unicode (NFC)": lambda utt: unicodedata.normalize("NFC", utt),
}
BEHIND = "without what stands before - or _"
CSV = "looks like CSV without names of columns; let its first line be utt,text"
TABLE = "looks like a table with | between its columns; take two: cut -d'|' -f1,3 F | tr '|' ' '"


class Side(NamedTuple):
    """Ids of one of two files that are joined, and what messages call it."""

    ids: Collection[str]
    path: str


def join_ids(wanted: Side, given: Side, what: str) -> dict[str, str]:
    """Return which of the ids `given` stands for each one `wanted`: the same one, or if that is not
    so of all, the one alike by the first of RULES by which all differ and are found, which is said.

    UserError, which shows the first two, where there is none; `what` is missing.
    """
    missing = [utt for utt in wanted.ids if utt not in given.ids]
    if not missing:
        return {utt: utt for utt in wanted.ids}
    for rule, pairs in alike(wanted.ids, given.ids):
        if pairs.keys() == set(wanted.ids) and len(set(pairs.values())) == len(pairs):
            say(f"{wanted.path}: ids are joined {rule} ({missing[0]} = {pairs[missing[0]]})")
            return pairs
    for side in (given, wanted):
        for mark, cause in ((",", CSV), ("|", TABLE)):
            if all(mark in utt for utt in side.ids):
                raise UserError(f"{side.path}: {cause}")
    other = next((utt for utt in given.ids if utt not in wanted.ids), None)
    raise UserError(
        f"{wanted.path}: {len(missing)} of {len(wanted.ids)} {what} in {given.path} (first"
        f" {missing[0]!r}{'' if other is None else f', there {other!r}'}); make the ids the same on"
        " both sides"
    )


def alike(wanted: Collection[str], given: Collection[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each rule with the ids that are alike by it, one each."""
    for rule, change in RULES.items():
        forms = {utt: [change(utt)] for utt in wanted}
        yield rule, match(forms, {utt: change(utt) for utt in given})
    yield BEHIND, match({utt: tails(utt) for utt in wanted}, {utt: utt for utt in given})
    turned = match({utt: tails(utt) for utt in given}, {utt: utt for utt in wanted})
    alone = Counter(turned.values())  # no other id of these stands for it too
    yield BEHIND, {utt: other for other, utt in turned.items() if alone[utt] == 1}


def match(forms: Mapping[str, list[str]], given: Mapping[str, str]) -> dict[str, str]:
    """Return for each id the one given that has one of its forms, if no other has that too."""
    places: dict[str, list[str]] = {}
    for utt, form in given.items():
        places.setdefault(form, []).append(utt)
    found = {utt: next((places[f] for f in some if f in places), []) for utt, some in forms.items()}
    return {utt: one[0] for utt, one in found.items() if len(one) == 1}


def tails(utt: str) -> list[str]:
    """Return what follows each - and _ of an id, the longest first."""
    return [utt[mark.end() :] for mark in re.finditer("[-_]", utt)]
