"""Figures of semantic textual similarity: what they show, labels that do not overlap, choice of
panels.
"""

import matplotlib
import numpy as np
import pytest
from unit.report.conftest import check_layout, collect_sts
from unit.report.sts.toys import STYLE, sts_experiment

from lmtools.report.drawing import DARK
from lmtools.report.write import make_pictures

NAMES = ("bars", "scatter-test")
PANELLED = [
    "uniLM",
    "biLM mask-and-predict",
    "biLM intact",
    "BERT",
    "T-TA",
    "word vectors",
    "tf-idf",
]


@pytest.fixture(scope="module", params=["stsb", "mini"])
def report(request, tmp_path_factory):
    home = tmp_path_factory.mktemp("egs") / request.param
    return collect_sts(sts_experiment(home, corpus=request.param), style=STYLE)


@pytest.fixture(scope="module")
def drawn(report):
    return {picture.name: picture for picture in make_pictures(report)}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_overlaps_or_leaves_the_paper(drawn, name):
    check_layout(drawn[name])


def test_panels_hold_every_pair_or_its_grade(report, drawn):
    with matplotlib.rc_context({"backend": "agg"}):
        panels = drawn["scatter-test"].draw(DARK).axes
    judged = report.pairs.on("test")
    names = {report.pairs.labels[system]: one for system, one in judged.items()}
    assert [axes.get_title(loc="left") or axes.get_title() for axes in panels] == [
        f"{name}  r = {np.corrcoef(names[name].gold, names[name].best.cosines)[0, 1]:.2f}"
        for name in PANELLED
    ]
    for axes, name in zip(panels, PANELLED, strict=True):
        one = names[name]
        if report.corpus == "mini":
            means = axes.get_lines()[-1].get_ydata()
            assert means == pytest.approx(
                [np.mean(one.best.cosines[one.gold == grade]) for grade in range(5)]
            )
        else:
            assert np.array_equal(
                np.stack(axes.get_lines()[0].get_data()), [one.gold, one.best.cosines]
            )
