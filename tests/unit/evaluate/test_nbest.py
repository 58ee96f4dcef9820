import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.base.errors import UserError
from lmtools.evaluate.edits import align
from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.nbest import nbest_errors, nbest_statistics, oracle, running_argmax
from lmtools.types import Hypothesis, NBest

sentences = st.lists(st.sampled_from(["a", "b", "cc"]), max_size=5).map(" ".join)
lists = st.lists(st.tuples(sentences, st.lists(sentences, max_size=4)), min_size=1, max_size=5)


def nbests(raw):
    return [NBest(f"u{i}", tuple(map(Hypothesis, hyps)), ref) for i, (ref, hyps) in enumerate(raw)]


@settings(max_examples=60, deadline=None)
@given(lists, st.sampled_from(["wer", "cer"]))
def test_errors_of_every_hypothesis(raw, metric):
    split = str.split if metric == "wer" else str
    counts, lengths = nbest_errors(nbests(raw), metric)
    assert [column.tolist() for column in counts] == [
        [align(split(ref), split(hyp)).counts.errors for hyp in hyps] for ref, hyps in raw
    ]
    assert lengths.tolist() == [len(split(ref)) for ref, _ in raw]


@settings(max_examples=60, deadline=None)
@given(lists, st.sampled_from(["wer", "cer"]))
def test_oracle_is_the_fewest_errors_within_each_depth(raw, metric):
    split = str.split if metric == "wer" else str
    curve = oracle(nbests(raw), metric)
    assert len(curve) == max(1, *(len(hyps) for _, hyps in raw))
    length = max(1, sum(len(split(ref)) for ref, _ in raw))
    for depth, score in enumerate(curve, 1):
        fewest = sum(
            min(align(split(ref), split(hyp)).counts.errors for hyp in hyps[:depth] or [""])
            for ref, hyps in raw
        )
        assert score == pytest.approx(100 * fewest / length)


@pytest.mark.parametrize("metric", METRICS)
def test_oracle_finds_the_reference_where_it_ranks(metric):
    raw = [
        ("a cat sat on a mat", ["a mat", "a cat sat on", "a cat sat on a mat", "a cat"]),
        ("the dog ran far away", ["the dog ran far away"]),
    ]
    curve = oracle(nbests(raw), metric)
    best = 0 if METRICS[metric].lower_is_better else 100
    gains = np.diff(curve) * (-1 if METRICS[metric].lower_is_better else 1)
    assert curve[2:] == pytest.approx([best, best])
    assert gains[0] > 0 and gains[1] > 0


def test_running_argmax_keeps_the_first_of_equals():
    assert running_argmax(np.array([1, 3, 2, 3, 4])).tolist() == [0, 1, 1, 1, 4]
    assert running_argmax(np.array([5])).tolist() == [0]


def test_a_list_without_reference_is_named():
    with pytest.raises(UserError, match="'u' has no reference"):
        nbest_statistics([NBest("u", (Hypothesis("x"),))], "wer")
