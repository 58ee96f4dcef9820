"""Views of sentence vectors: each system's language model and its way to pool states, by the
signature of its vectors.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from lmtools.report.names import Names
from lmtools.report.style import Look, Style

MASKED = "masked"  # a view, and the kind of a model that has it


class Way(NamedTuple):
    """Way of making vectors: `views` are keys of a Style's; `intact` says that the input is where
    others mask it.
    """

    lm: str
    views: tuple[str, ...] = ()
    intact: bool = False


def find_ways(signatures: Mapping[str, Mapping[str, str]]) -> dict[str, Way]:
    """Return each system's way of making vectors, by the signature of its vectors.

    Systems of one model belong together; it is called as the one of them that takes the plain mean
    is, else after its kind, else each by its own name.
    """
    models: dict[tuple, list[str]] = {}
    for system, signature in signatures.items():
        models.setdefault((signature.get("lm"), signature.get("model")), []).append(system)
    kinds, ways = [kind for kind, _ in models], {}
    for (kind, _), systems in models.items():
        views = {system: read_views(signatures[system]) for system in systems}
        plain = next((system for system in systems if not views[system]), None)
        masks = kind == MASKED or any(MASKED in names for names in views.values())
        for system in systems:
            lm = plain or (kind if kind and kinds.count(kind) == 1 else system)
            ways[system] = Way(lm, views[system], masks and not views[system])
    return ways


def read_views(signature: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of unusual choices; usual is the mean over the tokens of an intact input,
    without boundaries.
    """
    pool = signature.get("pool", "mean")
    choices = {MASKED: MASKED in signature, pool: pool != "mean"}
    choices["boundaries"] = "boundaries" in signature
    return tuple(name for name, holds in choices.items() if holds)


def label_way(way: Way, style: Style) -> str:
    """Return the printed name of a system."""
    views = [style.views[view].label if view in style.views else view for view in way.views]
    form = "intact" if way.intact else ", ".join(views)
    return " ".join(filter(None, (Names(style).short(way.lm), form)))


def order_systems(ways: Mapping[str, Way], style: Style) -> list[str]:
    """Return systems as the experiment's file lists them; others in the Style's order of language
    models, the view that masks each token before the plain one, other views after it.
    """
    listed = list(style.plan.vectors)
    views = [MASKED, "", *(view for view in style.views if view != MASKED)]

    def place(system):
        lm, chosen, _ = ways[system]
        first = chosen[0] if chosen else ""
        rank = views.index(first) if first in views else len(views)
        known = listed.index(system) if system in listed else len(listed)
        return known, style.place(lm), lm, rank, chosen, system

    return sorted(ways, key=place)


def find_looks(ways: Mapping[str, Way], style: Style) -> dict[str, Look]:
    """Find the look of each system: the colour of its language model, a view with marker and line
    of its own.
    """
    of_lms, looks = Names(style).looks({way.lm for way in ways.values()}), {}
    for system, way in ways.items():
        look = of_lms[way.lm]
        view = next((style.views[view] for view in way.views if view in style.views), look)
        looks[system] = replace(look, marker=view.marker, line=view.line, hollow=bool(way.views))
    return looks
