import pytest

from lmtools.base.errors import UserError
from lmtools.evaluate.corpus import evaluate
from lmtools.evaluate.metrics import METRICS

REFS = {"a": "one two three four", "b": "", "c": "five six seven eight nine ten"}


def test_rates_are_of_the_corpus_not_means_of_sentences():
    result = evaluate(REFS, {"c": "five six seven eight nine ten", "b": "oh", "a": "one two"})
    assert result.score == pytest.approx(100 * 3 / 10)
    assert result.total.tolist() == [0, 2, 1, 10]
    assert result.statistics.tolist() == [[0, 2, 0, 4], [0, 0, 1, 0], [0, 0, 0, 6]]
    assert result.missing == ()


def test_missing_hypotheses_are_deleted_and_listed():
    result = evaluate(REFS, {"a": REFS["a"]})
    assert result.missing == ("b", "c")
    assert result.total.tolist() == [0, 6, 0, 10]


@pytest.mark.parametrize("metric", METRICS)
def test_a_missing_hypothesis_is_an_empty_one(metric):
    assert (
        evaluate(REFS, {"a": "one two three"}, metric).score
        == evaluate(REFS, {"a": "one two three", "b": "", "c": ""}, metric).score
    )


def test_refuses_hypotheses_without_reference_and_nothing_to_do():
    with pytest.raises(UserError, match="f: 2 of 3 hypotheses have no reference \\(first 'x'\\); "):
        evaluate(REFS, {"a": "", "x": "", "y": ""}, source="f")
    with pytest.raises(UserError, match="f: no references"):
        evaluate({}, {}, source="f")
