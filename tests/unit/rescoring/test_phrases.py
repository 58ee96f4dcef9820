"""The column of phrases, and its weight under a bound on harm, against a search that tries many."""

import json

import numpy as np
import pytest

import lmtools
from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.evaluate.phrases import count_texts
from lmtools.formats import jsonl, kaldi_text
from lmtools.rescoring import ScoreColumns, gather
from lmtools.rescoring.features import best
from lmtools.rescoring.harm import bound_weights, measure_harm
from lmtools.rescoring.phrases import add_phrases, score_phrases
from lmtools.text.phrases import make_glossary
from lmtools.types import Hypothesis, NBest

WORDS = ["york", "work", "new", "times", "kubernetes", "the"]


def draw_lists(seed, count=40, depth=5):
    """Lists in which names are behind ordinary words more often than they should be."""
    rng = np.random.default_rng(seed)
    lists = []
    for number in range(count):
        ref = [*rng.choice(WORDS, size=4)]
        hyps = []
        for rank in range(depth):
            words = [str(rng.choice(WORDS)) if rng.random() < 0.3 else str(word) for word in ref]
            hyps.append(Hypothesis(" ".join(words), {"am": -float(rank * rng.random())}))
        lists.append(NBest(f"u{number}", tuple(hyps), " ".join(map(str, ref))))
    return lists


def test_ends():
    # all lists the same in phrases: nothing is known, nothing is changed
    lists, glossary = draw_lists(1), make_glossary(["zanzibar"])
    columns, _ = add_phrases((ScoreColumns({}, {}, {}, {}), {}), lists, glossary, "lists")
    features = gather(lists, columns.values, "lists", [])
    harm = measure_harm(lists, columns.values["phrases"], glossary)
    note = bound_weights(features.column("am"), features, harm, 0)
    assert (note["weight"], note["lists"]) == (0, 0)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("more", [0, 2])
def test_bound(seed, more):
    lists, glossary = draw_lists(seed), make_glossary(["New York", "Kubernetes :2", "york times"])
    columns, _ = add_phrases((ScoreColumns({}, {}, {}, {}), {}), lists, glossary, "lists")
    features = gather(lists, columns.values, "lists", [])
    harm = measure_harm(lists, columns.values["phrases"], glossary)
    rest = features.column("am")
    note = bound_weights(rest, features, harm, more)

    refs = {nbest.utt: nbest.ref for nbest in lists}

    def measure(weight):
        places = best(rest + weight * features.column("phrases"), features.valid)
        texts = {n.utt: n.hyps[place].text for n, place in zip(lists, places, strict=True)}
        rows = count_texts(refs, texts, glossary)
        return rows[:, 0], rows[:, 2], (rows[:, 6] - rows[:, 4]).sum()

    before = measure(0.0)

    def harmless(row):
        changes = row[1] - before[1]
        return changes.sum() <= np.sqrt((changes**2).sum()) and row[2] <= before[2] + more

    tried = [measure(weight) for weight in np.linspace(0, 3, 601)]
    allowed = [row for row in tried if harmless(row)]
    chosen = measure(note["weight"])
    assert harmless(chosen)
    assert (chosen[0] + chosen[1]).sum() <= min((row[0] + row[1]).sum() for row in allowed)
    gained = [note["without"][name] - note["with"][name] for name in note["with"]]
    assert gained == [np.sum(left - right) for left, right in zip(before, chosen, strict=True)]


def test_without_is_the_system_without():
    lists = draw_lists(6)
    plain = lmtools.tune(lists)
    tuned = lmtools.tune(lists, phrases=["Kubernetes", "New York"])
    assert {k: v for k, v in tuned.features.items() if k != "phrases"} == dict(plain.features)
    assert tuned.features["phrases"] > 0
    assert tuned.system.lms == ()
    fixed = lmtools.tune(lists, phrases=["Kubernetes"], fix={"phrases": 3.0})
    assert fixed.features["phrases"] == 3.0
    # a glossary of another domain changes nothing
    chosen = lmtools.rescore(lists, tuned, phrases=["ibuprofen", "acetylsalicylic acid"])
    assert [n.hyps[0].text for n in chosen] == [
        n.hyps[0].text for n in lmtools.rescore(lists, plain)
    ]
    folded = lmtools.tune(lists, phrases=["Kubernetes"], folds=4)
    assert all("phrases" in fold.features for fold in folded.folds.parts)


def test_column():
    lists = [NBest.of("a-1", ["new york", "new work"]), NBest.of("b-1", ["york", "work", ""])]
    table = score_phrases(lists, make_glossary({"a": ["New York"], "b-1": ["york :2.5"]}))
    assert [row.tolist() for row in table.log_prob.values()] == [[2, 0], [2.5, 0, 0]]
    with pytest.raises(UserError, match="'c' and all others mean no utterance of lists"):
        lmtools.tune(lists, phrases={"c": ["york"]})
    lists = [NBest.of(f"u{i}", ["the york", "the work"], "the york") for i in range(10)]
    with pytest.warns(UserWarning, match="2 phrases are ordinary words"):
        lmtools.tune(lists, phrases=["the", "york"])
    with pytest.warns(UserWarning, match="no phrases"):
        assert lmtools.tune(lists, phrases=[]).features["phrases"] == 0


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jsonl.write(draw_lists(1), "dev.jsonl")
    test = [
        NBest.of("t1", ["we work in new york", "we york in new york"], "we work in new york"),
        NBest.of("t2", ["cooper netties runs", "cooper nettles runs"], "cooper netties runs"),
        NBest.of("t3", ["we like cooper nettles", "we like cooper netties"], "we like kubernetes"),
    ]
    jsonl.write(test, "test.jsonl")
    (tmp_path / "g").write_text("Kubernetes | cooper netties\nNew York\n")
    return tmp_path


def test_commands(here, capsys):
    assert main(["tune", "--nbest", "dev.jsonl", "--phrases", "g", "--out", "w"]) == 0
    assert "phrases: in the" in capsys.readouterr().err
    note = json.loads((here / "w").read_text())["search"]["phrases"]
    assert note["with"]["false_alarms"] <= note["without"]["false_alarms"]
    rescore = ["rescore", "--nbest", "dev.jsonl", "--weights", "w", "--out", "out", "--phrases"]
    assert main([*rescore, "g"]) == 0
    assert not (here / "out.written").exists()
    # other forms are another column
    assert main([*rescore, "g,plural=true"]) == 1
    assert "phrases 'plural' for 'as given'" in capsys.readouterr().err
    assert main([*rescore[:-1]]) == 1
    assert "no feature phrases" in capsys.readouterr().err


def test_default_and_spelling(here, capsys):
    command = "rescore --nbest test.jsonl --weights default:phrases --out out --nbest-out n.jsonl"
    assert main([*command.split(), "--phrases", "g,spelling=true"]) == 0
    texts = {"t1": "we work in new york", "t2": "cooper netties runs"}
    assert kaldi_text.read("out") == {**texts, "t3": "we like cooper netties"}
    written = {"t1": "we work in New York", "t2": "Kubernetes runs", "t3": "we like Kubernetes"}
    assert kaldi_text.read("out.written") == written
    assert [n.hyps[0].display for n in lmtools.read("n.jsonl")] == [*written.values()]
    lists = lmtools.read("test.jsonl")
    chosen = lmtools.rescore(lists, "default:phrases", phrases="g,spelling=true")
    assert [n.hyps[0].display for n in chosen] == [*written.values()]
    assert main(command.split()) == 1
    assert "--weights default:phrases: is for --phrases F" in capsys.readouterr().err
