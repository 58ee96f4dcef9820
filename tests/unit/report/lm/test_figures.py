"""Learning curves of language models by themselves."""

import numpy as np
from unit.report.conftest import check_layout, collect_lms
from unit.report.lm.toys import STYLE, lm_experiment

from lmtools.report.lms import progress
from lmtools.report.write import make_pictures


def test_progress_takes_time_from_the_training_and_labels_keep_apart(tmp_path):
    report = collect_lms(lm_experiment(tmp_path / "gbw", grids=()), style=STYLE)
    model = report.models["gcnn"]
    points = progress(model)
    assert points.shape == (10, 3)
    seconds = {line["step"]: line["seconds"] for line in model.lines if "seconds" in line}
    assert np.allclose(points[:, 1], [seconds[step] for step in points[:, 0]])
    one, two = make_pictures(report)
    assert (one.name, two.name) == ("learning-ppl", "learning-two-way-ppl")
    check_layout(one)
    check_layout(two)
