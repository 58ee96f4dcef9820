"""Artifacts that are whole but say what no verb writes: one line that names the file and the place,
before anything is drawn.
"""

import json

import numpy as np
import pytest
from unit.report.conftest import collect_rescoring

from lmtools.base.errors import UserError
from lmtools.base.seal import write_json
from lmtools.report.drawing import LIGHT
from lmtools.report.rescoring_figures import draw_learning, validation
from lmtools.report.style import Names

TUNED, PPL = "tune/tta/weights.json", "ppl/tta/test.json"
CURVE = "search curves tta"
CASES = [  # the file, the place in it, the value there (None: nothing), what is said of it
    (TUNED, f"{CURVE} flat", None, "search: key 'curves.tta.flat' is missing; write it"),
    (TUNED, f"{CURVE} points", [], r"'curves\.tta\.points' is \[\], expected a list of 1 or more"),
    (
        TUNED,
        f"{CURVE} points",
        [[1.0]],
        r"'curves\.tta\.points\[0\]' is \[1.0\], expected a list of 2",
    ),
    (TUNED, f"{CURVE} chosen", "x", r"'curves\.tta\.chosen' is 'x', expected a finite number"),
    (PPL, "word_ppl", float("nan"), "'word_ppl' is NaN, expected a finite number above 0"),
    (PPL, "oov", "3", "'oov' is '3', expected a whole number"),
    ("stages/3.json", "seconds", "long", "'seconds' is 'long', expected a finite number"),
]


@pytest.mark.parametrize(("path", "place", "value", "message"), CASES)
def test_what_an_artifact_cannot_say_is_refused(fresh, path, place, value, message):
    tree = json.loads((fresh / path).read_text())
    *above, last = (int(key) if key.isdecimal() else key for key in place.split())
    node = tree
    for name in above:
        node = node[name]
    if value is None and isinstance(last, str):
        del node[last]
    else:
        node[last] = value
    write_json(tree, fresh / path)
    with pytest.raises(UserError, match=message) as refused:
        collect_rescoring(fresh)
    assert str(fresh / path) in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "line", ['{"step": 5, "valid_loss": NaN}', '{"step": "x"}', '{"valid_loss": 3.0}', "[]", "{}"]
)
def test_a_line_of_metrics_that_says_nothing_is_refused(fresh, line):
    path = fresh / "lm/tta/metrics.jsonl"
    path.write_text(
        f'{{"step": 3, "tokens": 9, "train_loss": 2.5}}\n{line}\n{{"step": 6, "valid_loss": 3.0}}\n'
    )
    with pytest.raises(UserError, match=r"metrics\.jsonl:2: .*; take the line out"):
        collect_rescoring(fresh)


@pytest.mark.parametrize(
    "lines",
    [
        [{"step": 5, "valid_loss": 3.0}],
        [{"step": 5, "tokens": 100}],
        [{"step": 1, "train_loss": 2.0}],
        [],
    ],
)
def test_a_training_of_one_point_is_drawn(lines):
    """One validation and no line of training, and the reverse."""
    assert len(validation(lines)) == sum("valid_loss" in line for line in lines)
    assert np.isfinite(draw_learning(Names(), {"tta": lines}, LIGHT).axes[0].get_xlim()).all()
