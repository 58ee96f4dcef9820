import json
from dataclasses import replace

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.formats import scores
from lmtools.rescoring.features import read_columns
from lmtools.rescoring.weights import Dev, SystemFacts, SystemLM, Weights, describe_system, mark
from lmtools.types import Hypothesis, NBest, ScoreTable

DEV = Dev("dev.jsonl", "ab", 3, 20.5, 21.5)
SEARCH = {"form": "linear", "curves": {}}
SIGNED = {"tta": {"lm": "tta"}}
SYSTEM = SystemFacts((SystemLM("tta", "tta", signature=SIGNED["tta"]),))
WEIGHTS = Weights("bleu", {"am": 1.0, "tta": 0.25}, "am", DEV, SEARCH, "1", SIGNED, SYSTEM)


def test_what_is_saved_is_loaded(tmp_path):
    WEIGHTS.save(tmp_path / "w.json")
    assert Weights.load(tmp_path / "w.json") == WEIGHTS
    tree = json.loads((tmp_path / "w.json").read_text())
    assert tree["dev"] == {
        "path": "dev.jsonl",
        "sha256": "ab",
        "utterances": 3,
        "first_pass": 20.5,
        "bleu": 21.5,
    }
    assert list(tree["features"]) == ["am", "tta"]


def test_weights_of_older_versions_have_no_signatures_and_no_system(tmp_path):
    WEIGHTS.save(tmp_path / "w.json")
    tree = json.loads((tmp_path / "w.json").read_text())
    del tree["signatures"], tree["system"]
    (tmp_path / "w.json").write_text(json.dumps(tree))
    assert Weights.load(tmp_path / "w.json") == replace(WEIGHTS, signatures={}, system=None)


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
        ("metric", None, "key 'metric' is missing"),
        ("more", 1, "unknown key 'more'"),
        ("metric", "wer", "'dev': unknown key 'bleu'"),
        ("dev/bleu", None, "'dev': key 'bleu' is missing"),
        ("dev/utterances", "3", "'dev': 'utterances' is '3', expected a whole number"),
        ("dev", [], "'dev' is \\[\\], expected an object"),
        ("features/tta", True, "'features.tta' is true, expected a finite number"),
        ("features/tta", float("nan"), "'features.tta' is NaN, expected a finite number"),
        ("signatures", [], "'signatures' is \\[\\], expected an object"),
        ("signatures/tta", "x", "'signatures.tta' is 'x', expected an object"),
        ("system/lists", "text", "'system.lists' is 'text', expected one of first pass, lattices"),
        ("system/more", 1, "unknown key 'more'"),
        ("features/am", None, "the reference 'am' is not among the features"),
    ],
)
def test_loading_is_strict(tmp_path, path, value, message):
    file = tmp_path / "w.json"
    WEIGHTS.save(file)
    tree = json.loads(file.read_text())
    change(tree, path, value)
    file.write_text(json.dumps(tree))
    with pytest.raises(UserError, match=f"w.json: {message}.*; write it again with lmtools tune"):
        Weights.load(file)


@pytest.mark.parametrize("content", ["", "[]", "{", "3"])
def test_other_content_is_refused(tmp_path, content):
    (tmp_path / "w.json").write_text(content)
    with pytest.raises(UserError, match=r"w\.json: "):
        Weights.load(tmp_path / "w.json")


@pytest.mark.parametrize(
    "tree, message",
    [
        ({}, "key 'system.lms\\[0\\].feature' is missing"),
        ({"feature": "a", "score": "mean"}, "score' is 'mean', expected one of sum, token, word"),
        ({"feature": "a", "source": "?"}, "source' is '.', expected one of lists, scores"),
        ({"feature": "a", "normalised": "x"}, "normalised' is 'x', expected true or false"),
        ({"feature": "a", "size": 3}, "unknown key 'size'"),
    ],
)
def test_what_is_said_of_a_language_model_is_checked(tmp_path, tree, message):
    file = tmp_path / "w.json"
    WEIGHTS.save(file)
    whole = json.loads(file.read_text())
    whole["system"]["lms"] = [{"name": "a", **tree}]
    file.write_text(json.dumps(whole))
    with pytest.raises(UserError, match=f"w.json: .*{message}"):
        Weights.load(file)


def columns(folder, nbests, **signatures):
    """Score columns NAME=FILE of `nbests`; `__` in a name stands for a slash."""
    specs = []
    for name, signature in signatures.items():
        values = {nbest.utt: np.zeros(len(nbest.hyps)) for nbest in nbests}
        counts = {nbest.utt: np.ones(len(nbest.hyps), dtype=int) for nbest in nbests}
        scores.write(ScoreTable(values, counts, signature), nbests, folder / name)
        specs.append(f"{name.replace('__', '/')}={folder / name}")
    return read_columns(specs, nbests, "dev.jsonl")


def test_a_system_says_how_each_language_model_enters(tmp_path):
    raw = {"lm": "lstm", "normalise": "none"}
    nbests = [NBest("u", (Hypothesis("a", {"am": -1.0, "lm": -2.0}),))]
    own = columns(tmp_path, nbests, **{"foo-mean": {"lm": "tta"}, "b__token": {}, "c__word": raw})
    assert describe_system(nbests, own, "dev.jsonl") == SystemFacts(
        (
            SystemLM("foo-mean", "foo-mean", signature={"lm": "tta"}),
            SystemLM("b", "b/token", "token"),
            SystemLM("c", "c/word", "word", normalised=False, signature=raw),
            SystemLM("lm", "lm", source="lists"),
        )
    )


def test_lists_of_rescored_lattices_say_whose_their_scores_are(tmp_path):
    signatures = {"lattice-x": {"lm": "ngram"}, "raw": {"lm": "lstm", "normalise": "none"}}
    plain = NBest("u", (Hypothesis("a", {"am": -1.0, "lattice-x": -2.0, "raw": -3.0}),))
    nbests = [mark(plain, signatures), NBest("v", ())]
    found = describe_system(nbests, columns(tmp_path, nbests), "dev.jsonl")
    assert found.lists == "lattices"
    assert [(lm.name, lm.source, lm.normalised) for lm in found.lms] == [
        ("lattice-x", "lists", True),
        ("raw", "lists", False),
    ]
    assert found.lms[0].signature == {"lm": "ngram"}
    nothing = columns(tmp_path, nbests)
    assert describe_system([plain], nothing, "dev.jsonl") == SystemFacts()
    for text in ("{", "[]", '{"x": 1}'):
        with pytest.raises(UserError, match=r"dev.jsonl: extra 'rescored' of utterance 'u' is not"):
            describe_system([replace(plain, extra={"rescored": text})], nothing, "dev.jsonl")
