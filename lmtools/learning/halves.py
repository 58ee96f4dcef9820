"""What the earlier half of corrected lists teaches, tested on the later half, in the order of time.

Taught are confusions, which make hypotheses, a language model of what was said, and the weights of
both beside the lists' own scores. In the earlier half each part has the hypotheses and the language
model of the other parts, so that the weights see them as good as they are elsewhere.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.evaluate.significance import paired_bootstrap
from lmtools.formats.confusions import Confusion
from lmtools.learning.confusions import PARTS, estimate, pair_lists, undo_confusions
from lmtools.ngram import build
from lmtools.rescoring.features import gather
from lmtools.rescoring.lists import rescore
from lmtools.rescoring.tuning import padded_statistics, tune
from lmtools.rescoring.tuning_options import TuningOptions
from lmtools.score import load, score_texts
from lmtools.text.normaliser import parse_normaliser
from lmtools.types import NBest

DOUBT = 0.05
FEWEST = 100  # corrected lists; fewer cannot be tested
LM = "corrected"  # the column of the language model of what was said
ORDER, NEW = 3, 5  # of that model; new hypotheses a list
REPEATED = 3  # times that a phrase was said and not heard, to be proposed


class Report(NamedTuple):
    """Statistics (lists, width) of the later half by what was chosen: the recogniser's `first`, by
    weights of the lists' `own` scores, and with what was `learnt` of so many `earlier` lists.
    """

    earlier: int
    first: np.ndarray
    own: np.ndarray
    learnt: np.ndarray

    def describe(self) -> Iterator[str]:
        """Yield the errors of the later half before and after, and whether that is chance."""
        before, own, after = (
            int(part[:, :3].sum()) for part in (self.first, self.own, self.learnt)
        )
        change = 100 * (after - before) / max(before, 1)
        test = paired_bootstrap(self.learnt, self.first, "wer", seed=0)
        p = test.sign_p if test.p is None else test.p
        yield (
            f"learnt from {self.earlier} answers, tested on the {len(self.first)} after them:"
            f" errors {before} -> {after} ({change:+.1f}%, p {p:.2g}); by weights of their own"
            f" scores {own}"
        )
        if after >= before or p > DOUBT:
            yield "warning: that is not surely better; what was learnt is not of use yet"
        half = len(self.first) // 2
        for name, rows in (("first", slice(half)), ("second", slice(half, None))):
            counts = [int(part[rows, :3].sum()) for part in (self.first, self.learnt)]
            yield f"of these the {name} half: errors {counts[0]} -> {counts[1]}"


def check_enough(nbests: Sequence[NBest], source) -> None:
    """Raise UserError for lists that are too few to learn from and to test on."""
    if len(nbests) < FEWEST:
        raise UserError(
            f"{source}: {len(nbests)} corrected answers are too few to test what they teach; give"
            f" at least {FEWEST}"
        )


def judge_halves(nbests: Sequence[NBest], source) -> Report:
    """Return what the earlier half of lists in the order of time brings to the later half."""
    check_enough(nbests, source)
    half = len(nbests) // 2
    earlier, later = nbests[:half], nbests[half:]
    options = TuningOptions(lms=(LM,))
    plain = tune(earlier, gather(earlier, {}, source), source, options)
    own = rescore(later, gather(later, {}, source), plain, source)
    taught = [
        part
        for begin, end in list_parts(half)
        for part in teach([*earlier[:begin], *earlier[end:]], earlier[begin:end], source)
    ]
    known = score_lists(taught, source)
    weights = tune(known[0], gather(known[0], known[1], source), source, options)
    told, columns = score_lists([*teach(earlier, later, source)], source)
    learnt = rescore(told, gather(told, columns, source), weights, source)
    rows = [padded_statistics(lists, "wer", source)[:, 0] for lists in (later, own, learnt)]
    return Report(half, *rows)


def list_parts(count: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of PARTS parts."""
    for part in range(PARTS):
        yield count * part // PARTS, count * (part + 1) // PARTS


def teach(
    known: Sequence[NBest], lists: Sequence[NBest], source
) -> Iterator[tuple[NBest, list[float]]]:
    """Yield lists with hypotheses that the `known` lists teach, and the log-probabilities of all by
    a language model of what was said there.
    """
    confusions = estimate(pair_lists(known, source))
    longer = list(undo_confusions(lists, confusions, NEW))
    texts = [hyp.text for nbest in longer for hyp in nbest.hyps]
    with tempfile.TemporaryDirectory() as home:
        text = Path(home, "said.txt")
        text.write_text("".join(f"{nbest.ref}\n" for nbest in known), encoding="utf-8")
        build([str(text)], ORDER, str(Path(home, "lm")), parse_normaliser("none"))
        scorer = load(LMSpec.parse(str(Path(home, "lm"))), Computing(cache="none"))
        values = iter(score_texts(texts, scorer, Computing(cache="none")).log_prob.tolist())
        yield from [(nbest, [next(values) for _ in nbest.hyps]) for nbest in longer]


def score_lists(taught: Sequence[tuple[NBest, list[float]]], source):
    """Return the lists of `teach`, and the columns of their scores by name."""
    return [nbest for nbest, _ in taught], {LM: [values for _, values in taught]}


def propose_phrases(nbests: Sequence[NBest], confusions: Sequence[Confusion]) -> list[str]:
    """Return words that were said at least REPEATED times and more often misheard than heard."""
    missed: Counter[str] = Counter()
    for one in confusions:
        heard = one.heard.split()
        missed.update({w: one.count for w in one.said.split() if w not in heard})
    heard = Counter(word for nbest in nbests for hyp in nbest.hyps[:1] for word in hyp.text.split())
    phrases = [word for word, count in missed.items() if count >= max(REPEATED, heard[word] + 1)]
    return sorted(phrases, key=lambda word: (-missed[word], word))
