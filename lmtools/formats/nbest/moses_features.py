"""The features field of Moses and Marian N-best lists, `NAME= 1 2 NAME2= 3`: scores by name, the
layout that writes them back (`TM0=2`: name, sign, number of values), and sparse features.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from lmtools.base.errors import UserError
from lmtools.formats.checks import component, number
from lmtools.formats.units import spell_in_unit
from lmtools.types import TOTAL, Hypothesis

INDEXED = re.compile(r"(.+)_(0|[1-9][0-9]{0,5})", re.DOTALL)
LAYOUT = re.compile(r"(.+)([=:])([1-9][0-9]{0,5})")
MOST_SPARSE = 200  # features; no search finds the weights of more


def parse_features(text: str, where: str) -> tuple[dict[str, float], str]:
    """Parse the scores by name of a features field, and its layout: `TM0=2`, name, sign, number of
    values.
    """
    groups: list[tuple[str, str, list[float]]] = []
    for token in text.split():
        name, sign, value = (
            token.rpartition("=")
            if "=" in token
            else (token[:-1], ":", "")
            if token.endswith(":")
            else ("", "", token)
        )
        if sign:
            groups.append((component(name, where), sign, []))
        elif not groups:
            raise UserError(
                f"{where}: feature value {token!r} has no name before it; expected `NAME= value"
                " ...`"
            )
        if value:
            groups[-1][2].append(number(value, where, f"feature {groups[-1][0]!r}"))
    scores: dict[str, float] = {}
    for name, sign, values in groups:
        if not values:
            raise UserError(
                f"{where}: feature {name!r} has no value; write one after it or drop the name"
            )
        for key, value in zip(name_values(name, sign, len(values)), values, strict=True):
            if key in scores:
                raise UserError(
                    f"{where}: two feature values would be called {key!r}; rename the feature"
                    f" {name!r}"
                )
            scores[key] = value
    return scores, " ".join(f"{name}{sign}{len(values)}" for name, sign, values in groups)


def name_values(name: str, sign: str, count: int) -> list[str]:
    """Name a feature's values; an old-style name without digit takes the index (lm0)."""
    if count == 1:
        return [name]
    joint = "" if sign == ":" and not name[-1].isdigit() else "_"
    return [f"{name}{joint}{index}" for index in range(count)]


def default_layout(names: Iterable[str]) -> str:
    """Return the layout of scores whose source is unknown: names X_0, X_1 .. are the values of one
    feature X, others have one value each.
    """
    names = list(names)
    counts: dict[str, int] = {}
    for name in names:
        if match := INDEXED.fullmatch(name):
            counts[match[1]] = counts.get(match[1], 0) + 1
    whole = {
        stem: count
        for stem, count in counts.items()
        if count > 1
        and stem not in names
        and all(f"{stem}_{index}" in names for index in range(count))
    }
    stems = [
        match[1] if (match := INDEXED.fullmatch(name)) and match[1] in whole else name
        for name in names
    ]
    return " ".join(f"{stem}={whole.get(stem, 1)}" for stem in dict.fromkeys(stems))


def field_of(scores: Mapping[str, float], layout: str | None) -> str:
    """Return the features field for all scores but the one of the total: in `layout` where that
    names exactly these, else in the default one.
    """
    named = {name: value for name, value in scores.items() if name != total_name(scores)}
    groups = group_features(layout or "")
    if sorted(key for _, _, group in groups for key in group) != sorted(named):
        groups = group_features(default_layout(named))
    return " ".join(
        f"{name}{sign} {' '.join(spell_in_unit(named[key]) for key in group)}"
        for name, sign, group in groups
    )


def group_features(layout: str) -> list[tuple[str, str, list[str]]]:
    """Return (name, sign, names of the scores) of every feature in a layout."""
    matches = [LAYOUT.fullmatch(part) for part in layout.split()]
    return [
        (match[1], match[2], name_values(match[1], match[2], int(match[3])))
        for match in matches
        if match
    ]


def total_name(scores: Mapping[str, float]) -> str:
    """Return the name of the score that the field of the total holds."""
    return TOTAL if TOTAL in scores else "am"


def fill_absent(
    lines: Iterable[tuple[int, str, Hypothesis]], path
) -> Iterator[tuple[int, str, Hypothesis]]:
    """Give each hypothesis the sparse features of all others, with the value 0. Lines that have no
    feature in common, and features of several values, stay so that `components` refuses them.
    """
    lines = list(lines)
    layouts = [layout_of(hyp).split() for _, _, hyp in lines]
    known = Counter(part for layout in layouts for part in layout)
    names = Counter(LAYOUT.fullmatch(part)[1] for part in known)
    sparse = [
        part
        for part, count in known.items()
        if count < len(lines) and part.endswith("=1") and names[part[:-2]] == 1
        if part[:-2] not in ("am", TOTAL)
    ]
    if len(lines) not in known.values():
        sparse = []
    if len(sparse) > MOST_SPARSE:
        raise UserError(
            f"{path}: {len(sparse)} sparse features, more than {MOST_SPARSE}, whose weights nothing"
            " finds; keep few of them, or the total alone"
        )
    for (line, utt, hyp), layout in zip(lines, layouts, strict=True):
        present = set(layout)
        absent = [part for part in sparse if part not in present]
        yield line, utt, add_zeros(hyp, layout, absent) if absent else hyp


def add_zeros(hyp: Hypothesis, layout: list[str], absent: list[str]) -> Hypothesis:
    """Return the hypothesis with the features of the parts `absent` of a layout, which are 0."""
    total = total_name(hyp.scores)
    scores = {name: value for name, value in hyp.scores.items() if name != total}
    scores |= {part[:-2]: 0.0 for part in absent}
    whole = " ".join([*layout, *absent])
    extra = {name: value for name, value in hyp.extra.items() if name != "layout"}
    if whole != default_layout(scores):
        extra["layout"] = whole
    if total in hyp.scores:
        scores[total] = hyp.scores[total]
    return replace(hyp, scores=scores, extra=extra)


def layout_of(hyp: Hypothesis) -> str:
    """Return the layout of the features that a hypothesis was read with."""
    features = (name for name in hyp.scores if name != total_name(hyp.scores))
    return hyp.extra.get("layout") or default_layout(features)
