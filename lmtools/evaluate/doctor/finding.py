"""Findings of the doctor."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

ERROR, HINT = "error", "hint"


@dataclass(frozen=True)
class Finding:
    """One line: an `error` spoils results or stops a later verb, a `hint` may be as it should;
    `place` is `path` or `path:line`.
    """

    level: str
    place: str
    cause: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.level}: {self.place}: {self.cause}; {self.remedy}"


def share(part: float, whole: float) -> str:
    """Return a share in words: `3 of 200 (1.5%)`."""
    return f"{part:,} of {whole:,} ({100 * part / max(whole, 1):.1f}%)"


def some(names: Iterable[str], limit: int = 5) -> str:
    """Quote the first few names."""
    names = list(names)
    return ", ".join(repr(name) for name in names[:limit]) + (" ..." if len(names) > limit else "")


def grade_rate(rate: float, hint: float, error: float) -> str | None:
    """Return the level of a rate, None below both bounds."""
    return ERROR if rate >= error else HINT if rate >= hint else None


def plural(items: Collection | int, noun: str) -> str:
    """Return a count of nouns: `1 list`, `2 lists`, `3 hypotheses`."""
    count = items if isinstance(items, int) else len(items)
    many = noun.removesuffix("is") + "es" if noun.endswith("is") else noun + "s"
    return f"{count:,} {noun if count == 1 else many}"
