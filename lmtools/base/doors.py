"""The doors: features that a copy of lmtools may lack, a folder of `lmtools/` each.

A door's `__init__.py` imports nothing. It declares, in dicts of the names below, what the door
brings, so that the core finds it without importing it; what a value names is imported when it is
used. A value is a MODULE, or MODULE:NAME of what is in one.

    VERBS = {verb: (title of its group in `lmtools --help`, purpose, MODULE)}
    LATTICES = {name of a format: MODULE}
    HOOKS = {name by which the core asks: MODULE:NAME}
    LMS = {beginning of a specification of a language model: (MODULE:NAME loads it, MODULE:NAME of
        the dataclass of its options, package that it needs)}
    NETWORK_ACTIONS = {action of `lmtools network`: (MODULE:NAME declares its options, does it)}

`rm -r` of a door's folder removes the feature, and nothing else. What asks for one that is not
there gets one line that says so.
"""

import functools
import importlib
from pathlib import Path
from types import ModuleType

from lmtools.base.errors import UserError

# door -> what it is for, and the verbs that are away with it
DOORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "bridges": ("our models in other programs", ("export",)),
    "decode": ("N-best lists of recordings, by Whisper or Vosk", ("decode",)),
    "ears": ("texts scored by their sound, lists of several recognisers", ("pool",)),
    "llms": ("large language models behind servers and in GGUF files", ()),
    "networks": ("confusion networks, confidences of words, systems combined", ("network",)),
    "phrases": ("glossaries: names and words that lists should have", ("harm",)),
    "serve": ("answers to programs, over HTTP or line by line", ("serve",)),
    "transcribe": ("text, subtitles and times of recordings", ("transcribe",)),
    "translate": ("N-best lists of translations, by a translation model", ("translate",)),
    "vectors": ("vectors of sentences and words, and similarity", ("embed", "sts")),
}
HOME = Path(__file__).parents[1]


@functools.cache
def find_doors() -> dict[str, ModuleType]:
    return {
        name: importlib.import_module(f"lmtools.{name}")
        for name in DOORS
        if (HOME / name / "__init__.py").exists()
    }


def collect(kind: str) -> dict:
    """Return what all doors bring of a kind (VERBS, ...), as one dict."""
    return {
        name: value
        for door in find_doors().values()
        for name, value in getattr(door, kind, {}).items()
    }


def load(place: str):
    """Import and return what MODULE or MODULE:NAME means."""
    module, _, name = place.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


def hook(name: str):
    """Return what a door brings under this name among its HOOKS; None without the door."""
    place = collect("HOOKS").get(name)
    return load(place) if place else None


def open_door(door: str, place: str, what: str):
    """Return what is at MODULE[:NAME] in a door; UserError without it: `what` needs the door."""
    if door not in find_doors():
        raise lacks(door, what)
    return load(f"lmtools.{door}.{place}")


def lacks(door: str, what: str) -> UserError:
    """Return the error of `what` needs a door that is not there."""
    return UserError(
        f"{what}: this lmtools has no {door}/ ({DOORS[door][0]}); install one that has it"
    )


def door_of_verb(verb: str | None) -> str | None:
    """Return the name of the door that brings a verb, there or not; None if none does."""
    return next((door for door, (_, verbs) in DOORS.items() if verb in verbs), None)
