"""Checks of the lists' scores: values that are none, sign, base, order, growth with length."""

from collections.abc import Iterator, Sequence

import numpy as np

from lmtools.evaluate import METRICS
from lmtools.evaluate.doctor.finding import ERROR, HINT, Finding, share
from lmtools.evaluate.doctor.inputs import DoctorInputs
from lmtools.evaluate.doctor.trials import SAMPLE
from lmtools.evaluate.signs import are_costs, are_positive
from lmtools.types import NBest

ENOUGH = 20  # utterances from which a correlation means something
SCALES = np.geomspace(1e-3, 1e3, 121)  # of the second component against the first
FAR = 1000  # typical distances from the middle: no score is so far out
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
    """Return the scores (hypotheses,) of each component a list, of lists with two or more
    hypotheses; NaN in the place of sentinels.

    Components that only indicate something, as which system of a pool a hypothesis is from, are no
    scores and left out.
    """
    scores = {}
    for name, lists in values_of([nbest for nbest in inputs.nbests if len(nbest.hyps) > 1]).items():
        values = np.concatenate(lists)
        if not (np.isin(values, (0, 1)).all() and np.ptp(values)):
            far = np.split(find_outliers(values), np.cumsum([len(row) for row in lists])[:-1])
            scores[name] = [np.where(odd, np.nan, row) for row, odd in zip(lists, far, strict=True)]
    return scores


def find_outliers(values: np.ndarray) -> np.ndarray:
    """Return which of the values (N,) are far outside the distribution of the others, bool (N,):
    what programs write for `no score`.
    """
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
    """Find values that stand for `no score`, such as -1e30: one of them makes a column useless, or
    a list.
    """
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
    """Find costs in the place of logarithms of probabilities: positive, and growing down the
    lists.
    """
    for name, lists in columns(inputs).items():
        values = np.concatenate(lists)
        if not are_positive(values):
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
    """Return whether the lowest scores of a component choose better than the highest, None in
    doubt, by the references of a sample.
    """
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
    """Find language-model scores too small a word for natural logarithms, and total scores that do
    not grow with length.
    """
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
            remedy = "if it is in log10, scaled, or divided by length, undo that"
            yield Finding(HINT, inputs.nbest, cause, remedy)
        if (is_lm(name) or name in ("am", "score", "total")) and not grows(lists, sizes):
            cause = f"{name!r} does not grow with the number of words: divided by length?"
            remedy = (
                "if so, multiply by the length again; sums of log-probabilities are what weights"
                " combine"
            )
            yield Finding(HINT, inputs.nbest, cause, remedy)


def grows(lists: Sequence[np.ndarray], sizes: Sequence[np.ndarray]) -> bool:
    """Return whether the scores (hypotheses,) of lists grow with their `sizes` in words, as far as
    lists of many sizes tell.
    """
    # of whole lists: Whisper's best hypothesis may be a short one where it gave up
    scores = np.abs([np.median(row) for row in lists])
    words = np.array([np.median(row) for row in sizes])[~np.isnan(scores)]
    scores = scores[~np.isnan(scores)]
    if len(words) < ENOUGH or words.std() <= 0.3 * words.mean() or not scores.std() > 0:
        return True
    return not np.corrcoef(words, scores)[0, 1] < 0.1


def sorting_harms(inputs: DoctorInputs, name: str) -> bool:
    """Return whether the best of lists by a component have more errors than their first, by the
    references of a sample: the recogniser's own order is better then.
    """
    pairs = []
    for nbest in inputs.nbests:
        if inputs.refs.get(nbest.utt) and nbest.hyps:
            best = max(nbest.hyps, key=lambda hyp: hyp.scores.get(name, -np.inf))
            pairs.append((inputs.refs[nbest.utt], [nbest.hyps[0].text, best.text]))
    errors = np.zeros(2)
    for ref, texts in pairs[:: -(-len(pairs) // SAMPLE) or 1]:
        errors += METRICS["wer"].statistics(ref, texts)[:, :3].sum(1)
    return errors[1] > errors[0]


def order(inputs: DoctorInputs) -> Iterator[Finding]:
    """Find lists not sorted by the first pass: by its single or total score, by `am`, or by any
    positive combination of its first two.
    """
    parts = columns(inputs)
    total = next((name for name in ("total", "score") if name in parts), None)
    if not parts:
        return
    chosen = [parts[total]] if total else list(parts.values())[:2]
    steps = [np.concatenate([np.diff(row) for row in lists]) for lists in chosen]
    slack = 1e-6 * max(np.nanmax(np.abs(step), initial=0) for step in steps)
    combined = [steps[0]] if len(steps) == 1 else [steps[0] + scale * steps[1] for scale in SCALES]
    # a translator's total comes after its features, and Whisper's mean of tokens after their sum
    others = [np.concatenate([np.diff(row) for row in lists]) for lists in parts.values()]
    wrong = min(
        min((step > slack).sum() for step in combined),
        min((step > 1e-6 * np.nanmax(np.abs(step), initial=0)).sum() for step in others),
    )
    if wrong > 0.05 * len(steps[0]) and not sorting_harms(inputs, total or next(iter(parts))):
        what = f"{total!r}" if total else " and ".join(map(repr, list(parts)[:2]))
        cause = (
            f"lists are not sorted by {what}: {share(int(wrong), len(steps[0]))} hypotheses score"
            " above the one before"
        )
        yield Finding(
            HINT,
            inputs.nbest,
            cause,
            "the first of each list counts as the first pass: sort the lists best first",
        )
