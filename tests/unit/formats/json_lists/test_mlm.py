import json

import pytest

from lmtools.base.errors import UserError
from lmtools.formats import FORMATS
from lmtools.types import TOTAL, Hypothesis, NBest

MLM = FORMATS["mlm"]
TREE = {
    "zed1": {"hyp_10": {"score": -9, "text": "z"}, "hyp_2": {"score": -8.5, "text": " y", "len": 1},
             "hyp_1": {"score": -7.4, "text": "x"}, "ref": "r"},
    "zed2": {"ref": "", "speaker": "s"},
}  # fmt: skip


def test_numbers_order_the_hypotheses(tmp_path):
    path = tmp_path / "am.json"
    path.write_text(json.dumps(TREE, indent=2))
    lists = list(MLM.read(path))
    hyps = (
        Hypothesis("x", {"am": -7.4}),
        Hypothesis(" y", {"am": -8.5}, {"len": "1"}),
        Hypothesis("z", {"am": -9.0}),
    )
    assert lists == [NBest("zed1", hyps, "r"), NBest("zed2", (), "", {"speaker": '"s"'})]
    assert MLM.recognises(path, "{")
    MLM.write(lists, path)
    tree = json.loads(path.read_text())
    assert (
        tree["zed2"] == TREE["zed2"]
        and tree["zed1"]["hyp_3"] == TREE["zed1"]["hyp_10"]
        and len(tree["zed1"]) == 4
    )


def test_an_lm_file_and_a_total(tmp_path):
    path = tmp_path / "lm.json"
    path.write_text('{"a": {"hyp_1": {"score": -3, "text": "x"}}}')
    lists = list(MLM.read(path, name="lm"))
    assert lists == [NBest("a", (Hypothesis("x", {"lm": -3.0}),))]
    with pytest.raises(UserError, match="has the scores lm"):
        MLM.write(lists, path)
    MLM.write(lists, path, name="lm")
    assert list(MLM.read(path, name="lm")) == lists
    MLM.write([NBest("a", (Hypothesis("x", {"am": -1.0, "lm": -2.0, TOTAL: -3.5}),))], path)
    assert json.loads(path.read_text())["a"]["hyp_1"]["score"] == -3.5
