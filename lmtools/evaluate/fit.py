"""Whether references can belong to hypotheses at all (lengths, the error of the best hypotheses
beside that against other utterances' references), and whether a score is better higher or lower.
Texts without blanks between words, as Chinese, Japanese and Thai are written: what the metrics of
words count there, and which metric to take.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lmtools.evaluate.edits import align
from lmtools.evaluate.metrics import METRICS, find_metric
from lmtools.text.marks import drop_marks
from lmtools.text.normaliser import NORMALISERS
from lmtools.text.scripts import CHINESE, JAPANESE, find_spacing, split_units
from lmtools.text.unify import UNIFIERS, unifier
from lmtools.text.unknown import doubt_pieces

SAMPLE, DEPTH = 200, 10  # utterances, evenly from all, and hypotheses of each
ENOUGH, SOME = 5, 20  # utterances, and words of all references, from which anything is said
# What no recogniser does. Of 14 real sets (telephone speech of 41% WER, non-native speech of 32%)
# and of translations (58%), references are 0.95 to 1.13 times as long, the best hypotheses have up
# to half the errors that they have against other references, 1% of utterances no common word.
LONGER = 2.5  # or shorter by as much
NEAR, HIGH = 0.8, 50.0  # of the error rate against other references, if it is so high, percent
HOPELESS = 95.0  # whatever it is against others
APART = 0.5  # of the utterances of LONG reference words and more
LONG = 3
BARE = unifier(UNIFIERS)
UNIFY = "add --unify pieces to evaluate, or lmtools convert --unify pieces LISTS NEW"
REMEDY = "compare a few by eye: other ids, set, order or language?"
DECIDED = 10  # lists that say something
RISING = 0.6  # of the lists, in which costs grow from the first hypothesis to the last
SURE = 3.0  # standard errors of the mean difference


@dataclass(frozen=True)
class Fit:
    """Agreement of references with hypotheses of the same utterances: `longer`: letters of
    references a letter of the hypotheses nearest in length; `best`: WER of the best hypotheses,
    percent, and `strange` against other references (None: too few of them); `apart`: the share of
    utterances whose words are all others.
    """

    longer: float
    best: float
    strange: float | None
    apart: float

    @property
    def possible(self) -> bool:
        """Return whether a recogniser can have made these hypotheses of such speech."""
        strange = HOPELESS if self.strange is None else min(HOPELESS, NEAR * self.strange)
        near = self.best > max(HIGH, strange)
        return 1 / LONGER < self.longer < LONGER and not near and self.apart <= APART

    def __str__(self) -> str:
        others = "" if self.strange is None else f" ({self.strange:.0f} against others')"
        return (
            f"hardly the references of these hypotheses: {self.longer:.1f} times as long, WER of"
            f" the best hypotheses {self.best:.0f}{others}, no common word in {self.apart:.0%} of"
            " utterances"
        )


def measure_fit(pairs: Iterable[tuple[str, Sequence[str]]]) -> Fit | None:
    """Measure the fit on a sample, regardless of case, punctuation and form; None if too few."""
    pairs = [(ref, hyps) for ref, hyps in pairs if ref.split() and any(map(str.split, hyps))]
    pairs = pairs[:: -(-len(pairs) // SAMPLE) or 1]
    refs = [split_words(ref) for ref, _ in pairs]
    lists = [list(map(split_words, hyps[:DEPTH])) for _, hyps in pairs]
    if len(pairs) < ENOUGH or sum(map(len, refs)) < SOME:
        return None
    sizes = [len("".join(ref)) for ref in refs]
    letters = sum(
        min((len("".join(hyp)) for hyp in hyps), key=lambda count, size=size: abs(size - count))
        for size, hyps in zip(sizes, lists, strict=True)
    )
    long = [(ref, hyps) for ref, hyps in zip(refs, lists, strict=True) if len(ref) >= LONG]
    apart = sum(all(set(ref).isdisjoint(hyp) for hyp in hyps) for ref, hyps in long)
    shifted = [refs[(row + 1 + len(refs) // 2) % len(refs)] for row in range(len(refs))]
    different = sum(ref != other for ref, other in zip(refs, shifted, strict=True))
    return Fit(
        sum(sizes) / max(1, letters),
        oracle_rate(refs, lists),
        oracle_rate(shifted, lists) if different > 0.9 * len(refs) else None,
        apart / max(1, len(long)) if len(long) >= ENOUGH else 0.0,
    )


def split_words(text: str) -> list[str]:
    """Return lower-case words without marks; characters where scripts have no blanks."""
    text = NORMALISERS["librispeech"](BARE(drop_marks(text)))
    return split_units(text)


def oracle_rate(refs: Sequence[Sequence[str]], lists: Sequence[Sequence[Sequence[str]]]) -> float:
    counts = [
        min((align(ref, hyp).counts.errors for hyp in hyps), default=len(ref))
        for ref, hyps in zip(refs, lists, strict=True)
    ]
    return 100 * sum(counts) / max(1, sum(map(len, refs)))


def doubt_references(pairs: Iterable[tuple[str, Sequence[str]]], place) -> list[str]:
    """Return a warning about `place` where references cannot be of these hypotheses."""
    fit = measure_fit(pairs)
    return [] if fit is None or fit.possible else [f"warning: {place}: {fit}; {REMEDY}"]


def are_costs(values: np.ndarray, valid: np.ndarray, gains: np.ndarray) -> bool | None:
    """Return whether the lowest of `values` (U, K) choose better, by `gains`; None in doubt."""
    if not valid.size:
        return None
    rows = np.arange(len(values))
    lowest = np.where(valid, values, np.inf).argmin(1)
    highest = np.where(valid, values, -np.inf).argmax(1)
    better = (gains[rows, lowest] - gains[rows, highest])[lowest != highest]
    if len(better) < DECIDED or not better.any():
        return None
    doubt = better.std() / np.sqrt(len(better))
    return None if abs(better.mean()) <= SURE * doubt else bool(better.mean() > 0)


def grow_down(values: np.ndarray, valid: np.ndarray) -> bool:
    """Return whether in most lists the last of `values` (U, K) is greater than the first."""
    rows = valid.sum(1) > 1
    last = values[np.arange(len(values)), valid.sum(1) - 1]
    return bool(np.mean((last > values[:, 0])[rows]) > RISING) if rows.any() else False


def are_positive(values: np.ndarray) -> bool:
    """Return whether nearly all values but 0 are positive; 0 and 1 alone are no scores."""
    many = (values > 0).sum() > 0.99 * (values != 0).sum() > 0
    return bool(many and not is_indicator(values))


def is_indicator(values: np.ndarray) -> bool:
    """Return whether there are both 0 and 1 and nothing else."""
    return bool(np.isin(values, (0, 1)).all() and np.ptp(values))


# Metrics that take what stands between blanks for a word, and language (None: of the others) -> the
# one to take, None where it is right.
OF_WORDS: dict[tuple[str, ...], dict[str | None, str | None]] = {
    ("wer",): {None: "cer:blanks=no"},
    ("mer",): {CHINESE: None, None: "cer:blanks=no"},
    ("bleu", "bleu:tokenize=intl", "bleu:tokenize=none"): {
        CHINESE: "bleu:tokenize=zh",
        JAPANESE: "bleu:tokenize=ja-mecab",
        None: "bleu:tokenize=char",
    },
    ("ter", "ter:normalized=yes"): {CHINESE: "ter:normalized=yes,asian=yes", None: "chrf"},
}
REMEDIES = {name: remedies for names, remedies in OF_WORDS.items() for name in names}
OF_CHARACTERS = "cer", "cer:blanks=no"  # the metric that blanks matter to, and the one without


def advise_metric(refs: Iterable[str], hyps: Iterable[str], metric: str, source) -> Iterator[str]:
    """Yield a warning about a metric that does not fit how texts of `source` are written, and about
    pieces in the place of words.
    """
    refs, hyps = list(refs), list(hyps)
    yield from doubt_pieces(source, [*refs[:SAMPLE], *hyps[:SAMPLE]], UNIFY)
    sides = [side for side in (find_spacing(refs), find_spacing(hyps)) if side.language]
    bare = next((side.language for side in sides if side.bare), None)
    name, title = find_metric(metric)[0], METRICS[metric].title
    remedy = remedy_of(name, bare) if bare and name in REMEDIES else None
    if remedy:
        cause = f"{bare} without blanks between words, so that {title} takes a phrase for a word"
    elif name == OF_CHARACTERS[0] and any(side.blanks for side in sides):
        remedy = OF_CHARACTERS[1]
        cause = f"{sides[0].language} with blanks, which CER counts as characters"
    else:
        return
    yield f"warning: {source}: {cause}; take --metric {remedy}"


def remedy_of(metric: str, language: str) -> str | None:
    """Return the metric to take in place of one of words between blanks."""
    remedies = REMEDIES[metric]
    return remedies.get(language, remedies[None])
