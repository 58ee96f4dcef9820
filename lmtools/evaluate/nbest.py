"""Statistics of whole N-best lists: what tuning sums, and the oracle.

Recordings whose segments have lists of their own: what is said of all is joined before it is
counted, as `evaluate --session` does, so that no word is counted twice where a segment ends.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from lmtools.base.errors import UserError
from lmtools.evaluate.edits import align
from lmtools.evaluate.metrics import METRICS, ErrorRate
from lmtools.formats.lists import find_sessions
from lmtools.types import SESSION, Hypothesis, NBest


def reference(nbest: NBest) -> str | tuple[str, ...]:
    """Return the reference of a list, or all where it has several; UserError if it has none."""
    if nbest.ref is None:
        raise UserError(
            f"utterance {nbest.utt!r} has no reference; attach them with lmtools convert --ref"
        )
    return (nbest.ref, *nbest.more_refs) if nbest.more_refs else nbest.ref


def nbest_statistics(nbests: Sequence[NBest], metric: str) -> list[np.ndarray]:
    """Return statistics of every hypothesis, an array (hypotheses, width) a list."""
    compute = METRICS[metric].statistics
    return [compute(reference(nbest), [hyp.text for hyp in nbest.hyps]) for nbest in nbests]


def nbest_errors(
    nbests: Sequence[NBest], metric: str = "wer"
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return errors of every hypothesis, an int array a list, and reference lengths (utterances,);
    an empty list has all its words deleted. `metric` is "wer" or "cer".
    """
    rate = METRICS[metric]
    assert isinstance(rate, ErrorRate), metric
    counts = [statistics[:, :3].sum(-1) for statistics in nbest_statistics(nbests, metric)]
    return counts, np.array([len(rate.split(reference(nbest))) for nbest in nbests], dtype=np.int64)


def fill_empty(nbest: NBest) -> NBest:
    """Return the list; an empty one counts as one empty hypothesis."""
    return nbest if nbest.hyps else replace(nbest, hyps=(Hypothesis(""),))


def oracle(nbests: Sequence[NBest], metric: str = "wer") -> np.ndarray:
    """Return the corpus-level metric (depth,) when the best of the first 1, 2, ... hypotheses of
    each list is chosen, up to the depth of the longest.

    WER and CER are exact; for BLEU, chrF and TER the best is by sentence-level score, which need
    not be best for the corpus. An empty list counts as an empty hypothesis.
    """
    return oracle_curve(nbest_statistics(list(map(fill_empty, nbests)), metric), metric)


def oracle_curve(statistics: Sequence[np.ndarray], metric: str) -> np.ndarray:
    """Return the curve of `oracle` from statistics (hypotheses, width) of filled lists."""
    measure = METRICS[metric]
    depth = max([1, *map(len, statistics)])
    totals = np.zeros((depth, measure.width))
    for rows in statistics:
        best = running_argmax(measure.gain(rows))
        totals += rows[np.pad(best, (0, depth - len(best)), mode="edge")]
    return measure.score(totals)


def shown_depths(longest: int) -> list[int]:
    """Return the depths to show: round ones shorter than the longest list, and its length."""
    return [depth for depth in (1, 2, 5, 10, 20, 50, 100) if depth < longest] + [longest]


def oracle_texts(
    nbests: Sequence[NBest], statistics: Sequence[np.ndarray], metric: str
) -> dict[str, str]:
    """Return the oracle's choice by utterance: the first of the best hypotheses."""
    gain = METRICS[metric].gain
    return {
        nbest.utt: fill_empty(nbest).hyps[int(gain(rows).argmax())].text
        for nbest, rows in zip(nbests, statistics, strict=True)
    }


def running_argmax(gains: np.ndarray) -> np.ndarray:
    """Return the index of the first greatest value of each prefix of `gains`: integers (n,)."""
    record = np.concatenate([[True], gains[1:] > np.maximum.accumulate(gains)[:-1]])
    return np.maximum.accumulate(np.where(record, np.arange(len(gains)), 0))


# of several systems where nothing tells which is right
UNTRIED = "hint: no references: {} of unlike systems can be worse than the best system alone; {}"


def describe_new(nbests: Sequence[NBest], longer: Sequence[NBest], out: str) -> Iterator[str]:
    """Yield how many hypotheses of `longer` are new, and what they could reach."""
    new = [len(more.hyps) - len(nbest.hyps) for nbest, more in zip(nbests, longer, strict=True)]
    yield f"{out}: {sum(new)} new hypotheses in {sum(map(bool, new))} of {len(new)} lists"
    if all(nbest.ref is not None for nbest in nbests):
        before, after = (oracle(lists)[-1] for lists in (nbests, longer))
        yield f"oracle WER {before:.2f} -> {after:.2f}"
    else:
        yield UNTRIED.format("joined lists", "tune on lists with references")


def join_lists(segments: Sequence[NBest], refs: Mapping[str, str]) -> list[NBest]:
    """Return a list a session of `segments`, with its reference of `refs`.

    Its first hypothesis joins the first ones of its segments; hypothesis k joins those with the
    fewest errors among the first k of each, against the words of the reference that stand beside
    the segment's first one. So the best of k hypotheses is what lists of k can reach, or hardly
    less: a word at a segment's end may stand beside the next.
    """
    return [
        join_session([fill_empty(segments[place]) for place in places], refs)
        for places in find_sessions(segments)
    ]


def join_session(segments: Sequence[NBest], refs: Mapping[str, str]) -> NBest:
    session = segments[0].extra[SESSION]
    texts = [[hyp.text.split() for hyp in one.hyps] for one in segments]
    parts = split_reference(refs[session].split(), [first for first, *_ in texts])
    depth, chosen = max(map(len, texts)), []
    for part, some in zip(parts, texts, strict=True):
        errors = np.array([align(part, words).counts.errors for words in some])
        chosen.append(np.pad(running_argmax(-errors), (0, depth - len(some)), mode="edge"))
    hyps = [
        " ".join(word for some, best in zip(texts, chosen, strict=True) for word in some[best[k]])
        for k in range(depth)
    ]
    return NBest.of(session, hyps, ref=refs[session])


def share_references(nbests: Sequence[NBest], refs: Mapping[str, str]) -> dict[str, str]:
    """Return references by utterance: of one of a session each of its segments has the words that
    stand beside its first hypothesis, whatever their case and punctuation.
    """
    shared, parts = dict(refs), [one for one in nbests if one.extra.get(SESSION) in refs]
    for places in find_sessions(parts):
        words = shared.pop(parts[places[0]].extra[SESSION]).split()
        texts = [fill_empty(parts[place]).hyps[0].text.split() for place in places]
        for place, said in zip(places, split_reference(words, texts, bare_word), strict=True):
            shared[parts[place].utt] = " ".join(said)
    return shared


def bare_word(word: str) -> str:
    return re.sub(r"\W", "", word.casefold())


def split_reference(
    ref: Sequence[str], texts: Sequence[Sequence[str]], key: Callable[[str], str] = str
) -> list[list[str]]:
    """Return the words of `ref` that stand beside each of `texts`, which follow each other, where
    words are compared by `key`; those that none has stand beside the text that the word before
    them is in.
    """
    owners = [place for place, words in enumerate(texts) for _ in words]
    parts: list[list[str]] = [[] for _ in texts]
    said, owner = 0, owners[0] if owners else 0
    words = iter(ref)
    flat = [key(word) for some in texts for word in some]
    for step in align([*map(key, ref)], flat).steps:
        if step != "D":
            owner = owners[said]
            said += 1
        if step != "I":
            parts[owner].append(next(words))
    return parts
