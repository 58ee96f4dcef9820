"""Reports as they are written, with what scripts of recipes add, against golden/KIND.md. A file
that is deleted is written again.
"""

import importlib
from pathlib import Path

import pytest
from unit.report.conftest import criteria, experiment
from unit.report.lm.toys import lm_experiment
from unit.report.sts.toys import sts_experiment

from lmtools.report import write_report
from lmtools.report.style import load_style
from lmtools.version import __version__

GOLDEN, EGS = Path(__file__).with_name("golden"), Path(__file__).parents[3] / "egs"
KINDS = {  # the recipe, what makes an experiment of it, scripts that add to its report
    "rescoring": ("librispeech", experiment, ("paper_tables",)),
    "criteria": ("librispeech", criteria, ("paper_tables", "criteria_tables")),
    "lm": ("gbw", lm_experiment, ("paper_tables", "grid_tables")),
    "sts": ("stsb", sts_experiment, ("paper_tables",)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_is_the_golden_one(kind, tmp_path, undrawn):
    recipe, make, scripts = KINDS[kind]
    exp, conf = make(tmp_path / recipe), EGS / recipe / "conf/report.yaml"
    write_report(exp, style=load_style(conf))
    for name in scripts:
        main = importlib.import_module(name).main
        main(exp, conf, *[conf.with_name("papers.yaml")] * (name != "criteria_tables"))
    found = (exp / "report/RESULTS.md").read_text().replace(__version__, "VERSION")
    page, golden = (exp / "report/index.html").read_text(), GOLDEN / f"{kind}.md"
    assert page.count("<table") == found.count("\n## ") - 1  # a heading is that of figures
    assert page.count("<img") == found.count("\n![")
    if not golden.exists():
        golden.write_text(found)
    assert found == golden.read_text()
