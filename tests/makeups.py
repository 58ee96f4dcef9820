"""Names of systems for tests, which spell what a system is made of in its name."""

from lmtools.report.style import LmPart, Names, SystemParts


def makeup(name: str) -> SystemParts:
    """What a system is made of that tests call `lattice-a-mean+b-unnormalised`."""
    lists, parts = name.removeprefix("lattice-"), []
    for part in lists.split("+"):
        lm = part.removesuffix("-mean")
        score = "sum" if lm == part else "token"
        parts.append(LmPart(lm.removesuffix("-unnormalised"), score, "-unnormalised" not in lm))
    return SystemParts(tuple(parts), lists != name)


def names_of(*systems: str) -> Names:
    """The names of systems that are made of what tests call them."""
    return Names(systems={name: makeup(name) for name in systems})
