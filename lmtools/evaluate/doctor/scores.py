"""Checks of the lists' scores: values that are none, sign, base, order, growth with length."""

from collections.abc import Iterator, Sequence

import numpy as np

from lmtools.evaluate.doctor.inputs import ERROR, HINT, DoctorInputs, Finding, share
from lmtools.evaluate.doctor.trials import SAMPLE, Trial
from lmtools.evaluate.fit import are_costs, are_positive, is_indicator
from lmtools.evaluate.metrics import METRICS
from lmtools.types import NBest

FIRST = ("total", "score", "am")  # scores that lists are chosen by
ENOUGH = 20  # utterances from which a correlation means something
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
    """Return each component's scores, of lists with several hypotheses; NaN for sentinels."""
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


def find_positive(inputs: DoctorInputs) -> Iterator[tuple[str, bool, str]]:
    """Yield components whose values are all positive, features apart, whether they are costs, and
    what tells so: the lowest choose better, as references show, or they grow down the lists.
    """
    parts = columns(inputs)
    first = next((name for name in FIRST if name in parts), next(iter(parts), None))
    for name, lists in parts.items():
        if are_positive(np.concatenate(lists)) and (is_lm(name) or name in (first, *FIRST)):
            rising = bool(np.mean([row[-1] > row[0] for row in lists]) > 0.6)
            lower_is_better = choose_by(inputs, name)
            costs = lower_is_better or (lower_is_better is None and (is_lm(name) or rising))
            why = ", and they grow down the lists" * rising
            why += ", and the lowest choose better than the highest" * bool(lower_is_better)
            yield name, bool(costs), why


def find_costs(inputs: DoctorInputs) -> list[str]:
    return [name for name, costs, _ in find_positive(inputs) if costs]


def signs(inputs: DoctorInputs) -> Iterator[Finding]:
    for name, costs, why in find_positive(inputs):
        cause = f"all values of {name!r} are positive"
        remedy = "fine for densities and similarities; give the negative of costs"
        if costs:
            cause += f"{why}: costs, not log-probabilities?"
            remedy = "give their negative: higher must be better"
            if not is_lm(name):
                remedy += f" (lmtools tune --fix {name}=-1 turns the sign of a first pass)"
        yield Finding(ERROR if costs else HINT, inputs.nbest, cause, remedy)


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
    """Find totals that do not grow with length."""
    sizes = [
        np.array([len(hyp.text.split()) + 1 for hyp in nbest.hyps])
        for nbest in inputs.nbests
        if len(nbest.hyps) > 1
    ]
    for name, lists in columns(inputs).items():
        if (is_lm(name) or name in FIRST) and not grows(lists, sizes):
            cause = f"{name!r} looks like a mean per token"
            remedy = (
                f"lmtools score makes the sum, or leave it out: lmtools tune --fix {name}=0"
                if is_lm(name)
                else "multiply it by the number of tokens, or take an LM's mean, too: --scores"
                " NAME/token=FILE of lmtools tune and rescore"
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
    """Find lists whose first is not of the highest score, which references find better."""
    parts = columns(inputs)
    name = next((name for name in FIRST if name in parts), None)
    lists = [nbest for nbest in inputs.nbests if len(nbest.hyps) > 1]
    best = {n.utt: int(np.argmax(row)) for n, row in zip(lists, parts.get(name, ()), strict=False)}
    wrong = sum(place > 0 for place in best.values())
    lists = [nbest for nbest in lists if nbest.utt in inputs.refs]
    if not lists or wrong <= UNSORTED * len(best):
        return
    pairs = (
        [(n.hyps[best[n.utt] * highest].text, inputs.refs[n.utt]) for n in lists]
        for highest in (False, True)
    )
    first, highest = (Trial(side).rate() for side in pairs)
    if highest < first:
        title = inputs.trial.metric.title
        cause = (
            f"in {share(wrong, len(best))} lists the first has not the highest {name!r} ({title} of"
            f" the first {first:.1f}, of the highest {highest:.1f})"
        )
        remedy = "lmtools tune --set lengths= and lmtools rescore --nbest-out sort them"
        yield Finding(HINT, inputs.nbest, cause, remedy)
