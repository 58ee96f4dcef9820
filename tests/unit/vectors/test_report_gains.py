"""Similarity against reranking: a language model's figures are those of its vectors and of its
system on the lists.
"""

import pytest
from unit.report.conftest import collect_sts, experiment
from unit.report.sts.toys import STYLE, sts_experiment

from lmtools.base.errors import UserError
from lmtools.report.experiment import recognise
from lmtools.report.style import FIRST, LmPart, SystemParts
from lmtools.report.write import write_report
from lmtools.vectors.report import gain_tables, is_alone, measure_gains


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("egs") / "stsb"
    sts_experiment(home)
    return experiment(home)


@pytest.fixture(scope="module")
def report(home):
    return collect_sts(home, style=STYLE)


def test_a_row_has_both_figures_of_a_language_model(report):
    (measured,) = report.lists.judged
    first = measured.results[FIRST].score
    gains = {one.lm: one for one in measure_gains(report, measured)}
    assert list(gains) == ["causal", "masked", "tta"]  # ngram has no vectors, bert no scores
    for lm, one in gains.items():
        score = measured.results[lm].score
        assert (one.score, one.gain) == (score, first - score)
        assert one.context == report.pairs.results[lm, "test"].hundredfold("context") <= one.best
        assert one.embed == report.pairs.results[lm, "test"].hundredfold("embed") <= one.best
        assert one.p == measured.results[lm].beyond is not None
    best = {
        name: one.layers for (name, part), one in report.pairs.results.items() if part == "test"
    }
    layers = [
        (100 * layer.correlations["pearson"][0], name, layer.number)
        for name in ("masked", "masked-masked", "masked-cls", "masked-boundaries")
        for layer in best[name]
    ]
    assert (gains["masked"].best, gains["masked"].vectors, gains["masked"].layer) == max(layers)


@pytest.mark.parametrize(
    "makeup, alone",
    [
        (SystemParts((LmPart("tta"),)), True),
        (SystemParts((LmPart("tta", "token"),)), False),
        (SystemParts((LmPart("tta", normalised=False),)), False),
        (SystemParts((LmPart("tta"), LmPart("ngram"))), False),
        (SystemParts((LmPart("tta"),), lattices=True), False),
        (SystemParts((LmPart("tta"),), interpolated=True), False),
        (SystemParts(), False),
    ],
)
def test_what_stands_for_a_language_model(makeup, alone):
    assert is_alone(makeup) == alone


def test_a_report_has_both_or_similarity_alone(home, tmp_path):
    assert recognise(home, ()) == "sts"
    text, _ = write_report(home)
    assert "Similarity against reranking" in text
    other = sts_experiment(tmp_path)
    assert not [*gain_tables(collect_sts(other))]
    with pytest.raises(UserError, match="has no N-best lists; leave out --nbest"):
        collect_sts(other, ["dev.jsonl"])
