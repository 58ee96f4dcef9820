import json

import pytest

from lmtools import UserError
from lmtools.base import seal

TREE = {
    "b": [1, 0.1, float("inf"), None, True],
    "a": {"ü": "\ud800", "2": (3, "x\n")},
    "sha256": "of something else",
}


def test_what_is_written_is_read(tmp_path):
    for indent in (1, None):
        seal.write_json(TREE, tmp_path / "a.json", indent)
        tree = seal.read_json(tmp_path / "a.json")
        assert tree == {**TREE, "a": {"ü": "?", "2": [3, "x\n"]}} and list(tree) == list(TREE)
    (tmp_path / "a.json").write_text(json.dumps({"seal": "of an older version", **tree}, indent=7))
    assert seal.read_json(tmp_path / "a.json") == tree


@pytest.mark.parametrize("content", ["", "[]", "{", "3", "\xff", "[" * 100_000])
def test_what_is_no_object_is_refused(tmp_path, content):
    (tmp_path / "a.json").write_text(content, encoding="latin-1")
    with pytest.raises(UserError, match=r"a\.json: .*; write it again"):
        seal.read_json(tmp_path / "a.json")


def test_yaml(tmp_path):
    import yaml

    text = "a: 1e-6\nb: [1, 2]\nc: {d: 2020-01-01}\n"
    tree = yaml.safe_load(seal.add_yaml_seal(text))
    assert seal.check_seal(tree, "a.yaml", warn=False) == yaml.safe_load(text)
    tree["c"]["d"] = 3
    with pytest.raises(seal.Damaged, match=r"a\.yaml: damaged"):
        seal.check_seal(tree, "a.yaml")
