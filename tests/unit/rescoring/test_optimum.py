"""Tuning against brute force: every choice that one weight can make, and grids of several
weights.
"""

import itertools

import numpy as np
import pytest
import sacrebleu.metrics

from lmtools.evaluate.metrics import METRICS
from lmtools.rescoring.features import gather
from lmtools.rescoring.tuning import tune
from lmtools.rescoring.tuning_options import TuningOptions
from lmtools.types import NBest

SACRE = {name: getattr(sacrebleu.metrics, name.upper()) for name in ("bleu", "chrf", "ter")}
WORDS = ["The", "house", "of", "a", "Mr.", "Green,", "who", "left", "it", "in", "1913."]


def toy(seed, lms, lists=6, depth=5):
    """Lists whose scores know a little of how much of the reference is wrong."""
    rng = np.random.default_rng(seed)
    nbests, columns = [], {f"lm{i}": [] for i in range(lms)}
    for number in range(lists):
        ref = rng.choice(WORDS, rng.integers(5, 12)).tolist()
        wrong = rng.permutation(depth)
        texts = []
        for errors in wrong:
            drawn = (w if rng.random() > 0.1 * errors else str(rng.choice(WORDS)) for w in ref)
            texts.append(" ".join(drawn))
        texts = [text[: -len(text) // 4] if rng.random() < 0.3 else text for text in texts]
        am = rng.normal(size=depth) * 2 - wrong * 0.3
        nbests.append(NBest.of(f"u{number}", texts, " ".join(ref), am=am))
        for column in columns.values():
            column.append(rng.normal(size=depth) * 2 - wrong * 0.7)
    return nbests, columns


def sign(metric):
    return 1 if METRICS[metric].lower_is_better else -1


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("metric", SACRE)
@pytest.mark.parametrize("seed", range(4))
def test_one_weight_is_the_best_of_all_that_can_be_chosen(metric, seed, negative):
    """Between two neighbouring crossings of hypotheses nothing changes."""
    nbests, columns = toy(seed, lms=1)
    bound = ["all"] if negative else None
    options = TuningOptions(metric, lms=("lm0",), negative=bound, objective="exact")
    found = tune(nbests, gather(nbests, columns, "n", derived=()), "n", options)
    first = np.array([[hyp.scores["am"] for hyp in nbest.hyps] for nbest in nbests])
    lm = np.array(columns["lm0"])
    crossings = {
        -(a[i] - a[j]) / (b[i] - b[j])
        for a, b in zip(first, lm, strict=True)
        for i, j in itertools.combinations(range(len(a)), 2)
    }
    edges = sorted(edge for edge in {*crossings, 0.0} if negative or edge >= 0)
    scales = [*(np.array(edges[1:]) + edges[:-1]) / 2, edges[-1] + 1]
    scales += [edges[0] - 1] * negative
    refs, scores = [[nbest.ref for nbest in nbests]], set()
    for scale in scales:
        chosen = (first + scale * lm).argmax(1)
        texts = [nbest.hyps[place].text for nbest, place in zip(nbests, chosen, strict=True)]
        scores.add(SACRE[metric]().corpus_score(texts, refs).score)
    assert len(scores) > 2
    best = min(scores, key=lambda score: sign(metric) * score)
    assert found.dev.score == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("lms", [1, 2])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(2))
def test_several_weights_are_as_good_as_a_grid(metric, seed, lms):
    nbests, columns = toy(seed, lms)
    features = gather(nbests, columns, "n")
    options = TuningOptions(metric, lms=tuple(columns), negative=["all"], objective="exact")
    found = tune(nbests, features, "n", options)
    steps = np.tan(np.linspace(-1.5, 1.5, 41 if lms == 1 else 15))
    grid = np.array([(1.0, *weights) for weights in itertools.product(steps, repeat=lms + 1)])
    chosen = np.einsum("gf,fuk->guk", grid, features.values).argmax(-1)
    pairs = [(nbest.ref, [hyp.text for hyp in nbest.hyps]) for nbest in nbests]
    statistics = np.stack([METRICS[metric].statistics(*pair) for pair in pairs])
    scores = METRICS[metric].score(statistics[np.arange(len(nbests)), chosen].sum(1))
    assert len(set(scores.tolist())) > 10
    assert sign(metric) * found.dev.score <= (sign(metric) * scores).min() + 1e-9
