"""Figures of semantic textual similarity: what they show, labels that do not overlap, choice of
panels.
"""

from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.report.conftest import check_layout, collect_sts
from unit.report.sts.toys import STATIC, STYLE, VIEWS, sign, sts_experiment

from lmtools.report.drawing import DARK
from lmtools.report.write import make_pictures
from lmtools.vectors.judged import find_ways
from lmtools.vectors.report import PANELS, choose_panels

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


class Stub:
    """A result of which only is asked whether it is of static vectors."""

    def __init__(self, system):
        self.context = None if system in STATIC else self


ENDS = st.sampled_from(["", *(f"-{view}" for view in VIEWS)])
LMS = st.sampled_from(["causal", "masked", "tta", "bert", "a", "b", "c", "d", "e", "f", *STATIC])


@given(st.lists(st.tuples(LMS, ENDS).map("".join), unique=True, max_size=30))
def test_panels_are_few_and_plain_ones_come_first(systems):
    ways = find_ways({system: sign(system) for system in systems})
    shown = choose_panels(SimpleNamespace(ways=ways), {system: Stub(system) for system in systems})
    assert shown == [system for system in systems if system in shown]
    assert len(shown) <= PANELS
    if len(systems) <= PANELS:
        assert shown == systems
    else:
        assert all(ways[system].views in ((), ("masked",)) for system in shown)
        dropped = [
            system
            for system in systems
            if system not in shown and ways[system].views in ((), ("masked",))
        ]
        assert not dropped or len(shown) == PANELS
        assert all(one in STATIC for one in dropped) or not any(one in STATIC for one in shown)
