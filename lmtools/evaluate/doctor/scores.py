"""Checks of the lists' scores: values that are none, sign, base, order, growth with length."""

from collections.abc import Iterator, Sequence

import numpy as np

from lmtools.evaluate.doctor.inputs import ERROR, HINT, DoctorInputs, Finding, share
from lmtools.evaluate.doctor.trials import FIRST, SAMPLE, Trial
from lmtools.evaluate.fit import are_costs, are_positive, is_indicator
from lmtools.evaluate.metrics import METRICS
from lmtools.types import NBest

ENOUGH = 20  # utterances from which a correlation means something
SCALES = np.geomspace(1e-3, 1e3, 121)  # of the second component against the first
FAR = 1000  # typical distances from the middle: no score is so far out
UNSORTED = 0.2  # of the lists whose first is not the highest
LARGE = 1e9  # nats that no hypothesis costs


def values_of(lists: Sequence[NBest]) -> dict[str, list[np.ndarray]]:
    """Return the values (hypotheses,) of each component a list, NaN where a hypothesis lacks it."""
    names = list(
        dict.fromkeys(name for nbest in lists for hyp in nbest.hyps[:1] for name in hyp.scores)
    )
    return {
        name: [np.array([hyp.scores.get(name, np.nan) for hyp in nbest.hyps]) for nbest in lists]
        for name in names
    }


def columns(inputs: DoctorInputs) -> dict[str, list[np.ndarray]]:
    """Return the scores (hypotheses,) of each component a list, of lists with several hypotheses;
    NaN for sentinels. Indicators of systems are left out.
    """
    scores = {}
    for name, lists in values_of([nbest for nbest in inputs.nbests if len(nbest.hyps) > 1]).items():
        values = np.concatenate(lists)
        if not is_indicator(values):
            far = np.split(find_outliers(values), np.cumsum([len(row) for row in lists])[:-1])
            scores[name] = [np.where(odd, np.nan, row) for row, odd in zip(lists, far, strict=True)]
    return scores


def find_outliers(values: np.ndarray) -> np.ndarray:
    """Return (N,) bool which values are far outside the others: what stands for `no score`."""
    with np.errstate(over="ignore"):
        distance = np.abs(values - np.nanmedian(values))
    typical = np.median(distance[distance > 0]) if (distance > 0).any() else 0.0
    far = distance > FAR * max(typical, 1.0)
    # where most values are equal, what differs is its own distribution
    large = np.abs(values) >= LARGE
    return far | large if large.mean() < 0.5 else far


def missing(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find lists without any scores, whose order alone says what the recogniser found."""
    hyps = [hyp for nbest in inputs.nbests for hyp in nbest.hyps]
    if len(hyps) > len(inputs.nbests) and not any(hyp.scores for hyp in hyps):
        remedy = (
            "write the recogniser's scores into the lists, too, if it has any; else only ranks are"
            " weighed"
        )
        yield Finding(HINT, inputs.nbest, "no scores in the lists", remedy)


def sentinels(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find values that stand for `no score`, as -1e30, which make a column or list useless."""
    for name, lists in values_of([nbest for nbest in inputs.nbests if nbest.hyps]).items():
        values = np.concatenate(lists)
        odd = find_outliers(values)
        if odd.any():
            utts = np.repeat(np.arange(len(lists)), [len(row) for row in lists])
            place = inputs.places[
                [nbest.utt for nbest in inputs.nbests if nbest.hyps][utts[odd.argmax()]]
            ]
            shown = ", ".join(f"{value:g}" for value in np.unique(values[odd])[:3])
            cause = (
                f"{share(int(odd.sum()), len(values))} values of {name!r} are {shown}, far outside"
                " the others"
            )
            within = f" ({values[~odd].min():g} to {values[~odd].max():g})"
            remedy = (
                "give scores, at least as bad as the list's worst, or leave the column out:"
                f" lmtools tune --fix {name}=0"
            )
            yield Finding(ERROR, place, f"{cause}{within}: no scores?", remedy)


def is_lm(name: str) -> bool:
    """Return whether a component's name says that it is a language model's log-probability."""
    return "lm" in name.lower() and "lmwt" not in name.lower()


def signs(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find costs for log-probabilities: positive, growing down the lists; not in features."""
    parts = columns(inputs)
    first = next((name for name in FIRST if name in parts), next(iter(parts), None))
    for name, lists in parts.items():
        values = np.concatenate(lists)
        if not are_positive(values) or not (is_lm(name) or name in (first, *FIRST)):
            continue
        rising = np.mean([row[-1] > row[0] for row in lists])
        lower_is_better = choose_by(inputs, name)
        if lower_is_better or (lower_is_better is None and (is_lm(name) or rising > 0.6)):
            cause = f"all values of {name!r} are positive"
            cause += ", and they grow down the lists" if rising > 0.6 else ""
            cause += ", and the lowest choose better than the highest" if lower_is_better else ""
            remedy = "give their negative: higher must be better"
            if not is_lm(name):
                remedy += f" (lmtools tune --fix {name}=-1 turns the sign of a first pass)"
            yield Finding(ERROR, inputs.nbest, f"{cause}: costs, not log-probabilities?", remedy)
        else:
            remedy = "fine for densities and similarities; give the negative of costs"
            yield Finding(HINT, inputs.nbest, f"all values of {name!r} are positive", remedy)


def choose_by(inputs: DoctorInputs, name: str) -> bool | None:
    """Return whether a component's lowest scores choose better, None in doubt."""
    lists = [
        nbest
        for nbest in inputs.nbests
        if inputs.refs.get(nbest.utt)
        and all(name in hyp.scores for hyp in nbest.hyps)
        and nbest.hyps
    ]
    lists = lists[:: -(-len(lists) // SAMPLE) or 1]
    gain, texts = METRICS["wer"].gain, ([hyp.text for hyp in nbest.hyps] for nbest in lists)
    sizes = np.array([len(nbest.hyps) for nbest in lists], dtype=int)
    valid = np.arange(sizes.max(initial=0)) < sizes[:, None]
    values, gains = np.zeros(valid.shape), np.zeros(valid.shape)
    values[valid] = [hyp.scores[name] for nbest in lists for hyp in nbest.hyps]
    for row, nbest, hyps in zip(gains, lists, texts, strict=True):
        row[: len(hyps)] = gain(METRICS["wer"].statistics(inputs.refs[nbest.utt], hyps))
    return are_costs(values, valid, gains)


def base(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find LM scores too small for natural logarithms, and totals that do not grow with length."""
    sizes = [
        np.array([len(hyp.text.split()) + 1 for hyp in nbest.hyps])
        for nbest in inputs.nbests
        if len(nbest.hyps) > 1
    ]
    for name, lists in columns(inputs).items():
        values, lengths = np.concatenate(lists), np.concatenate(sizes)
        a_word = np.nansum(np.abs(values)) / lengths[~np.isnan(values)].sum()
        if is_lm(name) and 0 < a_word < 2:
            cause = (
                f"{name!r} is {a_word:.2f} a word, the natural log of a perplexity of"
                f" {np.exp(a_word):.1f}"
            )
            remedy = (
                "fine for log10 or another scale, which lmtools tune finds; in place of a mean a"
                " token let lmtools score make the sum"
            )
            yield Finding(HINT, inputs.nbest, cause, remedy)
        if (is_lm(name) or name in ("am", "score", "total")) and not grows(lists, sizes):
            cause = f"{name!r} does not grow with the number of words, as a mean a token would not"
            remedy = (
                f"lmtools tune --fix {name}=0 leaves it out, lmtools score makes the sum"
                if is_lm(name)
                else "take the language model's mean, too: --scores NAME/token=FILE of lmtools tune"
                " and rescore; for Whisper's default weights give lists of lmtools decode"
            )
            yield Finding(HINT, inputs.nbest, cause, remedy)


def grows(lists: Sequence[np.ndarray], sizes: Sequence[np.ndarray]) -> bool:
    """Return whether scores (hypotheses,) grow with `sizes` in words, as far as lists tell."""
    # of whole lists: Whisper's best hypothesis may be a short one where it gave up
    scores = np.abs([np.median(row) for row in lists])
    words = np.array([np.median(row) for row in sizes])[~np.isnan(scores)]
    scores = scores[~np.isnan(scores)]
    if len(words) < ENOUGH or words.std() <= 0.3 * words.mean() or not scores.std() > 0:
        return True
    return not np.corrcoef(words, scores)[0, 1] < 0.1


def order(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find lists whose first hypothesis is not that of the highest score: the single or total one,
    `am`, or any positive combination of the first two; unless the first ones are better. Whisper's
    first is the best by its mean a token, and in 15% of lists not the best by its sum.
    """
    parts = columns(inputs)
    total = next((name for name in ("total", "score") if name in parts), None)
    if not parts:
        return
    chosen = [parts[total]] if total else list(parts.values())[:2]
    ways = [chosen[0]]
    if len(chosen) > 1:
        ways = [[a + scale * b for a, b in zip(*chosen, strict=True)] for scale in SCALES]
    if "am" in list(parts)[2:]:  # a translator's total, after its features
        ways.append(parts["am"])
    highest = min((find_highest(lists) for lists in ways), key=np.count_nonzero)
    wrong = np.count_nonzero(highest)
    rates = compare_first(inputs, highest)
    if wrong <= UNSORTED * len(highest) or (rates and rates[0] <= rates[1]):
        return
    what = f"{total!r}" if total else " and ".join(map(repr, list(parts)[:2]))
    title = inputs.trial.metric.title
    cause = (
        f"lists are not sorted by {what}: in {share(wrong, len(highest))} lists the first has not"
        " the highest"
    )
    if rates:
        cause += f" ({title} of the first {rates[0]:.1f}, of the highest {rates[1]:.1f})"
    remedy = (
        "fine if the first is the recogniser's answer; else lmtools tune --set lengths= and rescore"
        " --nbest-out sort them"
    )
    yield Finding(HINT, inputs.nbest, cause, remedy)


def find_highest(lists: Sequence[np.ndarray]) -> np.ndarray:
    """Return the place of each list's highest score, the first of near ties."""
    slack = 1e-6 * max(
        np.nanmax(row, initial=-np.inf) - np.nanmin(row, initial=np.inf) for row in lists
    )
    rows = (np.where(np.isnan(row), -np.inf, row) for row in lists)
    return np.array([int(np.argmax(row >= row.max() - slack)) for row in rows])


def compare_first(inputs: DoctorInputs, places: np.ndarray) -> list[float]:
    """Return error rates of first hypotheses and of those at `places`, [] without references."""
    lists = [nbest for nbest in inputs.nbests if len(nbest.hyps) > 1]
    rows = [(n, place) for n, place in zip(lists, places, strict=True) if n.utt in inputs.refs]
    pairs = [
        [(nbest.hyps[place * chosen].text, inputs.refs[nbest.utt]) for nbest, place in rows]
        for chosen in (False, True)
    ]
    return [Trial(side).rate() for side in pairs] if rows else []
