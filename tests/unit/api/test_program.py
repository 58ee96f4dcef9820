"""A program and the commands of the same names do the same."""

import pickle

import numpy as np
import pytest
from toys import sentences

import lmtools
from lmtools.cli import main
from lmtools.formats import kaldi_text

PROGRAM = """
import lmtools
lm = lmtools.load({lm!r})
dev, test = lmtools.read("dev.jsonl"), lmtools.read("test.jsonl")
weights = lmtools.tune(dev, {{"new": lm.score_lists(dev)}})
lmtools.write((lmtools.NBest(n.utt, n.hyps[:1]) for n in lm.rescore(test, weights)), "p.txt",
              "kaldi-text")
"""


@pytest.fixture
def lists(tmp_path, monkeypatch):
    """dev.jsonl and test.jsonl: right and wrong sentences with random first-pass scores."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for seed, name in enumerate(("dev", "test")):
        made = []
        for number, text in enumerate(sentences(40, 10 + seed, 8)):
            words = text.split()
            wrong = (" ".join(rng.permutation(words)), " ".join(words[1:]), text + " stone")
            texts = dict.fromkeys((*wrong, text))
            made.append(
                lmtools.NBest.of(f"u-{number:02}", texts, text, am=rng.normal(size=len(texts)))
            )
        lmtools.write(made, f"{name}.jsonl")
    return tmp_path


@pytest.mark.parametrize("model", ["causal", "masked"])
def test_program_and_commands_choose_the_same_bytes(model, lists, trained):
    lm = str(trained[model])
    for name in ("dev", "test"):
        scored = ["--nbest", f"{name}.jsonl", "--out", f"{name}.scores", "--cache", "none"]
        assert main(["score", "--lm", lm, *scored]) == 0
    given = ["--nbest", "dev.jsonl", "--scores", "new=dev.scores"]
    assert main(["tune", *given, "--out", "w.json"]) == 0
    given = ["--nbest", "test.jsonl", "--scores", "new=test.scores", "--weights", "w.json"]
    assert main(["rescore", *given, "--out", "c.txt"]) == 0
    exec(PROGRAM.format(lm=lm), {})
    assert (lists / "p.txt").read_bytes() == (lists / "c.txt").read_bytes()
    first = {nbest.utt: nbest.hyps[0].text for nbest in lmtools.read("test.jsonl")}
    assert kaldi_text.read("c.txt") != first


def test_columns_of_files_and_of_models_are_the_same(lists, trained):
    lm, dev = lmtools.load(trained["causal"]), lmtools.read("dev.jsonl")
    score = ["score", "--lm", str(trained["causal"]), "--cache", "none"]
    assert main([*score, "--nbest", "dev.jsonl", "--out", "dev.scores"]) == 0
    table = lm.score_lists(dev)
    ways = ({"a": table, "a/token": table}, {"a": "dev.scores", "a/token": "dev.scores"})
    by_table, by_file = (lmtools.tune(dev, way, source="dev.jsonl") for way in ways)
    assert by_table == by_file
    by_table.save("w.json")
    assert lmtools.Weights.load("w.json") == by_table
    numbers = [table.log_prob[nbest.utt].tolist() for nbest in dev]
    assert lmtools.tune(dev, {"a": numbers}).features == lmtools.tune(dev, {"a": table}).features


def test_columns_of_other_lists_and_models_are_refused(lists, trained):
    lm, dev, test = lmtools.load(trained["causal"]), *map(lmtools.read, ("dev.jsonl", "test.jsonl"))
    with pytest.raises(lmtools.UserError, match="column 'a': "):
        lmtools.tune(dev, {"a": lm.score_lists(test)})
    with pytest.raises(lmtools.UserError, match="not one number for each"):
        lmtools.tune(dev, {"a": [[1.0]]})
    weights = lmtools.tune(dev, {"a": lm.score_lists(dev)})
    with pytest.raises(lmtools.UserError, match="not of what"):
        lmtools.load(trained["masked"]).rescore(test, weights)
    with pytest.raises(lmtools.UserError, match=r"use lmtools\.rescore"):
        lm.rescore(test, lmtools.tune(dev))


@pytest.mark.parametrize("wrong", ["metric", "objective", "form", "lengths", "folds"])
def test_unknown_options_are_refused(wrong):
    """With one line, as the command line refuses them."""
    lists = [lmtools.NBest.of("u-1", ["a b", "a"], "a b"), lmtools.NBest.of("u-2", ["a"], "a b")]
    with pytest.raises(lmtools.UserError, match=f"{wrong}.*'x"):
        lmtools.tune(lists, **{wrong: ["xy"] if wrong == "lengths" else "xy"})
    with pytest.raises(lmtools.UserError, match="metric"):
        lmtools.measure(lists, metric="xy")


def test_one_list_alone_is_rescored_as_among_others(lists, trained):
    lm, dev, test = lmtools.load(trained["tta"]), *map(lmtools.read, ("dev.jsonl", "test.jsonl"))
    weights = lmtools.tune(dev, {"a": lm.score_lists(dev)}, folds=3)
    assert [lm.rescore(nbest, weights) for nbest in test] == lm.rescore(test, weights)
    with pytest.warns(UserWarning, match="lists are empty"):
        lmtools.tune([*dev, lmtools.NBest("u-99", (), "a king")], {})


@pytest.mark.parametrize("model", ["causal", "masked", "lstm"])
def test_token_scores_add_up_to_scores(model, trained):
    lm = lmtools.load(trained[model], threads=1)
    texts = ["the king came", "", "a zebra said", "the king came"]
    found = lm.token_scores(texts)
    assert np.allclose([one.log_probs.sum() for one in found], lm.score(texts), atol=1e-4)
    assert found[0].tokens == ("the", "king", "came", "</s>") and found[1].tokens == ("</s>",)
    assert found[2].words.tolist() == [0, 1, 2, -1] and found[2].tokens[1] == "<unk>"
    assert np.array_equal(found[0].by_word(), found[0].log_probs[:3])
    with pytest.raises(lmtools.UserError, match=r"write \[text\]"):
        lm.score("the king came")


def test_words_have_their_pieces(tmp_path, tiny):
    """Of pieces several are of a word; a word that the normaliser drops has none."""
    out = str(tmp_path / "lm")
    subword = f"subword --text {tiny}/train.txt --type char --normaliser librispeech"
    assert main([*subword.split(), "--out", f"{tmp_path}/sw"]) == 0
    ngram = f"ngram --text {tiny}/train.txt --order 2 --out {out} --subword {tmp_path}/sw"
    assert main(ngram.split()) == 0
    (found,) = lmtools.load(out).token_scores(["The - king"])
    assert found.words.tolist()[-1] == -1 and found.words.max() == 2
    counts = np.bincount(found.words[:-1], minlength=3)
    assert counts[1] == 0 and counts[0] >= 3 and counts[2] >= 4
    assert found.by_word()[1] == 0
    assert np.isclose(found.by_word()[0], found.log_probs[: counts[0]].sum())


def test_options_of_scoring_reach_the_model(trained):
    lm = lmtools.load(trained["causal"], engine="prepared", oov_penalty=2.0, device="cpu")
    assert (lm.signature["engine"], lm.signature["oov"]) == ("prepared", "2.0")
    with pytest.raises(lmtools.UserError, match="no such language model"):
        lmtools.load("nowhere")


def test_measures_take_texts_and_lists():
    assert lmtools.wer(["a b c d"], ["a x c d"]).score == 25
    assert lmtools.cer({"u": "ab"}, {"u": "ab"}).score == 0
    lists = [lmtools.NBest.of("u", ["a b", "a"], "a b"), lmtools.NBest.of("v", [], "c d")]
    result = lmtools.wer(lists)
    assert result.score == 50 and result.interval() == (0, 100)
    assert lmtools.wer(lists, {"u": "a b", "v": "c d"}).score == 0
    assert lmtools.measure(["a b"], ["a b"], "ter").score == 0
    for wrong in ("a b", lists[0]):
        with pytest.raises(lmtools.UserError, match="alone"):
            lmtools.wer(wrong)
    with pytest.raises(lmtools.UserError, match="hyps: missing"):
        lmtools.wer(["a"])


def test_files_of_lists_and_lattices(tmp_path):
    lists = [lmtools.NBest.of("u", ["a b", "a"], am=[1, 2], lm=[3.5, -1])]
    assert lists[0].hyps[1].scores == {"am": 2.0, "lm": -1.0}
    lmtools.write(iter(lists), tmp_path / "l.srilm", "srilm")
    lmtools.write(lists, tmp_path / "l.jsonl")
    assert lmtools.read(tmp_path / "l.jsonl") == [*lmtools.stream(tmp_path / "l.jsonl")] == lists
    arcs = [lmtools.Arc(0, 1, word, {"am": score}) for word, score in (("a", -1), ("b", -2))]
    lattice = lmtools.Lattice.of("u", 2, 0, arcs, [lmtools.Final(1)])
    lmtools.write([lattice], tmp_path / "u.slf", "slf")
    (read,) = lmtools.read(tmp_path / "u.slf", lmtools.Lattice)
    assert lmtools.lattice.best(read, {"am": 1.0}).words == ("a",)
    assert [path.words for path in lmtools.lattice.nbest(read, {"am": -1.0}, 2)] == [("b",), ("a",)]
    with pytest.raises(lmtools.UserError, match="utterance 'u': am: 2 numbers for 1 texts"):
        lmtools.NBest.of("u", ["a"], am=[1, 2])


@pytest.mark.parametrize("model", ["causal", "masked", "tta"])
def test_a_model_goes_to_other_processes_as_its_place(trained, model):
    lm = lmtools.load(trained[model], device="cpu")
    again = pickle.loads(pickle.dumps({"lm": lm}))["lm"]
    assert again.signature == lm.signature and again.computing == lm.computing
    assert again.score(["the king came"]).tolist() == lm.score(["the king came"]).tolist()
