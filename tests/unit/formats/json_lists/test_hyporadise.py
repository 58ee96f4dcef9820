import json

import pytest

from lmtools.base.errors import UserError
from lmtools.formats import FORMATS
from lmtools.types import TOTAL, Hypothesis, NBest

HYPORADISE = FORMATS["hyporadise"]
TREES = [
    {
        "id": "a1",
        "input": ["blue fins", "blue finch"],
        "output": "b",
        "am_score": [-0.5, -0.75],
        "score": [1, 2],
        "note": {"x": [1]},
    },
    {"instruction": "find it", "input": ["x"], "output": "", "am_score": [-1e300]},
    {"input": [], "am_score": []},
]


def test_a_file_as_published_comes_back(tmp_path):
    path, again = tmp_path / "h.json", tmp_path / "again.json"
    path.write_text(json.dumps(TREES, indent=1))
    lists = list(HYPORADISE.read(path))
    hyps = (
        Hypothesis("blue fins", {"am": -0.5}, {"score": "1"}),
        Hypothesis("blue finch", {"am": -0.75}, {"score": "2"}),
    )
    assert lists == [
        NBest("a1", hyps, "b", {"note": '{"x": [1]}'}),
        NBest("2", (Hypothesis("x", {"am": -1e300}),), "", {"instruction": '"find it"'}),
        NBest("3", ()),
    ]
    HYPORADISE.write(lists, again)
    assert json.loads(again.read_text()) == [
        TREES[0],
        {**TREES[1], "id": "2"},
        {"id": "3", "input": []},
    ]
    assert HYPORADISE.recognises(path, path.read_text().split("\n")[0]) and HYPORADISE.recognises(
        again, "["
    )


def test_which_score(tmp_path):
    path = tmp_path / "h.json"
    path.write_text(json.dumps(TREES[:1]))
    read = {
        name: [hyp.scores.get("am") for hyp in next(HYPORADISE.read(path, score=name)).hyps]
        for name in (None, "score", "-score", "none")
    }
    assert read == {None: [-0.5, -0.75], "score": [1, 2], "-score": [-1, -2], "none": [None, None]}
    rescored = NBest("a", (Hypothesis("x", {"am": -1.0, "lm": -2.0, TOTAL: -3.0}),))
    HYPORADISE.write([rescored], path)
    assert json.loads(path.read_text())[0]["am_score"] == [-3.0]
    with pytest.raises(UserError, match="'a': has the scores am, lm, and this format holds one"):
        HYPORADISE.write([NBest("a", (Hypothesis("x", {"am": -1.0, "lm": -2.0}),))], path)
