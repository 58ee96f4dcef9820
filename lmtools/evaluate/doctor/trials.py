"""Remedies tried on the data: what the error rate of the first hypotheses is once both sides are
rewritten, and the least combination of rewritings that brings it down.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from lmtools.evaluate.doctor.profile import APOSTROPHES, Profile
from lmtools.evaluate.metrics import METRICS
from lmtools.text.marks import drop_marks
from lmtools.text.normaliser import CASES, NORMALISERS, Normaliser, choose_case
from lmtools.text.scripts import CHARACTER
from lmtools.text.unify import UNIFIERS, unifier
from lmtools.text.unknown import conversion, describe_case

SAMPLE = 500  # utterances, evenly from all
MEANT = 0.7  # of the errors are left at most where two ways of writing make them
RARE = 0.001  # marks a word that are an accident
SLACK = 0.01  # of the errors: what a rewriting has to take away to be worth its place
# Rewritings beside those of UNIFIERS, by the options of lmtools convert, in the order of that verb;
# each in the words of `0.0 in lower case`
MARKS, PUNCTUATION = "--drop-marks", "--punctuation strip"
BARE = "--apostrophe strip"


OPTIONS: dict[str, tuple[str, Callable[[str], str]]] = {
    MARKS: ("without marks", drop_marks),
    **{name: (describe_case(case), case) for name, case in CASES.items()},
    PUNCTUATION: ("without punctuation", Normaliser(punctuation="strip")),
    BARE: ("without apostrophes", Normaliser(apostrophe="strip")),
}


def describe(names: Iterable[str]) -> str:
    """Return the form of texts after some rewritings, in words."""
    return " and ".join(OPTIONS[n][0] if n in OPTIONS else UNIFIERS[n].about for n in names)


def rewriting(names: Iterable[str]) -> Callable[[str], str]:
    """Return the function that applies rewritings in the order in which lmtools convert does."""
    names = set(names)
    changes = [change for name, (_, change) in OPTIONS.items() if name in names]
    changes.insert(0, unifier(names.intersection(UNIFIERS)))

    def rewrite(text: str) -> str:
        for change in changes:
            text = change(text)
        return text

    return rewrite


def name_both(casing: str) -> str:
    """Return the normaliser that strips punctuation and changes case as one of CASES."""
    case = CASES[casing]
    return replace(NORMALISERS["librispeech"], case=case.case, language=case.language).spec


def name_settings(names: Iterable[str]) -> str:
    """Return those of OPTIONS as settings of a normaliser."""
    settings = []
    for name in OPTIONS:
        if name in names:
            _, _, setting = name.rpartition("--")
            language = CASES[name].language if name in CASES else "none"
            settings.append(setting.replace(" ", "="))
            settings += [f"language={language}"] * (language != "none")
    return ",".join(settings)


def convert_options(names: Iterable[str]) -> str:
    """Return the command that applies rewritings to hypotheses and references."""
    names = set(names)
    command = conversion(" ".join(name for name in OPTIONS if name in names and name != MARKS))
    if forms := [name for name in UNIFIERS if name in names]:
        command += f" --unify {','.join(forms)}"
    return " ".join([*command.split(), *[MARKS] * (MARKS in names)])


@dataclass
class Trial:
    """A sample of hypotheses beside references; errors are of words, or of characters."""

    pairs: Sequence[tuple[str, str]]
    sums: dict[frozenset[str], tuple[int, int]] = field(default_factory=dict)
    others: Sequence[Iterable[str]] = ()  # texts that will be compared with both sides
    chosen: str | None = None

    def __post_init__(self):
        self.pairs = self.pairs[:: -(-len(self.pairs) // SAMPLE) or 1]
        letters = "".join(ref for _, ref in self.pairs)
        few = 2 * len(CHARACTER.findall(letters)) <= len(letters)
        self.metric = METRICS["wer" if few else "cer"]

    @property
    def casing(self) -> str:
        """Return that of CASES which brings both sides, and `others`, nearest."""
        if self.chosen is None:
            self.chosen = choose_case([*zip(*self.pairs, strict=True), *self.others])
        return self.chosen

    def measure(
        self, hyps: Callable[[str], str], refs: Callable[[str], str] | None = None
    ) -> tuple[int, int]:
        """Return errors and length of the references, both sides rewritten."""
        errors = length = 0
        for hyp, ref in self.pairs:
            hyp, ref = hyps(hyp), (refs or hyps)(ref)
            length += len(self.metric.split(ref))
            if hyp != ref:
                errors += int(self.metric.statistics(ref, [hyp])[0, :3].sum())
        return errors, length

    def errors(self, names: Collection[str] = ()) -> int:
        """Count the errors after some rewritings."""
        names = frozenset(names)
        if names not in self.sums:
            self.sums[names] = self.measure(rewriting(names))
        return self.sums[names][0]

    def rate(self, names: Collection[str] = ()) -> float:
        """Return the error rate after them, in percent."""
        return 100 * self.errors(names) / max(1, self.sums[frozenset(names)][1])

    def rate_of(self, *changes: Callable[[str], str]) -> float:
        """Return the error rate after changes as of `measure`, in percent."""
        errors, length = self.measure(*changes)
        return 100 * errors / max(1, length)


def least_combination(errors: Callable[[Collection[str]], int], names: Sequence[str]) -> list[str]:
    """Return those of `names`, the least changes first, without which there would be more errors:
    each in turn is left out, the greatest change first, where nothing is lost.
    """
    before, left, least = errors(()), list(names), errors(names)
    for name in reversed(names):
        others = [other for other in left if other != name]
        without = errors(others)
        if without <= least + SLACK * before:
            left, least = others, without
    return left if before - least > SLACK * before else []


def choose_remedies(trial: Trial, hyps: Profile, references: Profile) -> list[str]:
    """Return the least combination of rewritings that brings hypotheses and references together;
    what changes meaning only where it is meant.
    """
    if not trial.pairs or not trial.errors():
        return []
    lower = [trial.casing] * (hyps.case != references.case)
    folds = [name for name in UNIFIERS if UNIFIERS[name].folds and is_meant(trial, name)]
    safe = [name for name in UNIFIERS if not UNIFIERS[name].folds]
    helpful: set[str] = set()
    # quotation marks show where punctuation stays, an apostrophe beside a full stop where it goes
    for others in (lower, [*lower, PUNCTUATION]):
        helpful.update(least_beside(trial, others, safe))
    forms = [name for name in safe if name in helpful]
    sides = [side.unify(forms) for side in (hyps, references)]
    odd = max(
        side.foreign_punctuation(other).total() / side.spaces
        for side, other in (sides, reversed(sides))
    )
    odd *= not all(a.punctuates(b) for a, b in (sides, reversed(sides)))  # which is of the words
    bare = any(not side.letters(APOSTROPHES.__contains__) for side in sides)
    doubts = [MARKS, *lower, *[PUNCTUATION] * (odd >= RARE), *[BARE] * bare, *folds]
    return [*forms, *least_beside(trial, forms, doubts)]


def least_beside(
    trial: Trial, others: Sequence[str], names: Sequence[str], errors: Callable | None = None
) -> list[str]:
    """Return the least combination of `names` beside other rewritings, by errors of the trial or
    by those that a function counts.
    """
    texts = [text for pair in trial.pairs for text in pair]
    plain, errors = rewriting(()), errors or trial.errors
    changed = [
        name for name in names if any(rewriting([name])(text) != plain(text) for text in texts)
    ]
    return least_combination(lambda chosen: errors([*others, *chosen]), changed)


def is_meant(trial: Trial, form: str) -> bool:
    """Return whether a form of Unicode that also merges other words takes most errors away, or one
    of two sides hardly has words that it changes: recognisers make some errors of accents.
    """
    change = unifier([form])
    shares = []
    for side in zip(*trial.pairs, strict=True):
        words = [word for text in side for word in text.split()]
        shares.append(sum(change(word) != word for word in words) / max(1, len(words)))
    if form == "diacritics":  # tones and vowels are words where both sides have them
        return min(shares) < 0.1 * max(shares)
    return min(shares) < 0.1 * max(shares) or trial.errors([form]) < MEANT * trial.errors()


def choose_forms(words: Counter, text: Collection[str]) -> list[str]:
    """Return the fewest forms of Unicode by which most of `words` are among those of `text`."""

    def unknown(names: Collection[str]) -> int:
        change = unifier(names)
        known = {part for word in text for part in change(word).split()}
        return sum(
            count for word, count in words.items() if not known.issuperset(change(word).split())
        )

    whole = ("pieces", "blanks")  # of lines, which are not kept
    names = [name for name in UNIFIERS if not UNIFIERS[name].folds and name not in whole]
    return least_combination(unknown, names) if words and text else []
