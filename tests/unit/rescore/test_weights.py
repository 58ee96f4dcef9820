import json
from dataclasses import replace

import pytest

from lmtools.errors import UserError
from lmtools.rescore import Dev, Weights, load, save

DEV = Dev("dev.jsonl", "ab", 3, 20.5, 21.5)
SEARCH = {"form": "linear", "curves": {}}
WEIGHTS = Weights(
    "bleu", {"am": 1.0, "tta": 0.25}, "am", DEV, SEARCH, signatures={"tta": {"lm": "tta"}}
)


def test_what_is_saved_is_loaded(tmp_path):
    save(WEIGHTS, tmp_path / "w.json")
    assert load(tmp_path / "w.json") == WEIGHTS
    tree = json.loads((tmp_path / "w.json").read_text())
    assert tree["dev"] == {
        "path": "dev.jsonl",
        "sha256": "ab",
        "utterances": 3,
        "first_pass": 20.5,
        "bleu": 21.5,
    }
    assert list(tree["features"]) == ["am", "tta"]


def test_weights_of_older_versions_have_no_signatures(tmp_path):
    save(WEIGHTS, tmp_path / "w.json")
    tree = json.loads((tmp_path / "w.json").read_text())
    del tree["signatures"], tree["seal"]
    (tmp_path / "w.json").write_text(json.dumps(tree))
    assert load(tmp_path / "w.json") == replace(WEIGHTS, signatures={})


def change(tree, path, value):
    *above, leaf = path.split("/")
    for name in above:
        tree = tree[name]
    if value is None:
        del tree[leaf]
    else:
        tree[leaf] = value


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("metric", None, "key 'metric' of the file is missing"),
        ("more", 1, "key 'more' of the file is unknown"),
        ("metric", "wer", "key 'bleu' of 'dev' is unknown"),
        ("dev/bleu", None, "key 'bleu' of 'dev' is missing"),
        ("dev/utterances", "3", "'utterances' of 'dev' is '3'"),
        ("dev", [], "'dev' of the file is \\[\\]"),
        ("features/tta", True, "weight of 'tta' is True, not a finite number"),
        ("features/tta", float("nan"), "weight of 'tta' is nan"),
        ("signatures", [], "'signatures' is \\[\\]"),
        ("signatures/tta", "x", "'signatures' is {'tta': 'x'}"),
        ("features/am", None, "the reference 'am' is not among the features"),
    ],
)
def test_loading_is_strict(tmp_path, path, value, message):
    file = tmp_path / "w.json"
    save(WEIGHTS, file)
    tree = json.loads(file.read_text())
    change(tree, path, value)
    file.write_text(json.dumps(tree))
    with pytest.raises(
        UserError,
        match=r"w.json: damaged, or edited .*; .* lmtools tune, or take the line of the seal out",
    ):
        load(file)
    del tree["seal"]
    file.write_text(json.dumps(tree))
    with pytest.raises(UserError, match=f"w.json: {message}.*; write it again with lmtools tune"):
        load(file)


@pytest.mark.parametrize("content", ["", "[]", "{", "3"])
def test_other_content_is_refused(tmp_path, content):
    (tmp_path / "w.json").write_text(content)
    with pytest.raises(UserError, match=r"w\.json: "):
        load(tmp_path / "w.json")
