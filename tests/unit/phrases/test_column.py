"""The column of phrases, and its weight under a bound on harm, against a search that tries many."""

import json

import numpy as np
import pytest

import lmtools
from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text
from lmtools.phrases.column import add_phrases, score_phrases
from lmtools.phrases.evaluate import count_texts
from lmtools.phrases.glossary import make_glossary
from lmtools.phrases.harm import bound_weights, measure_harm
from lmtools.rescoring.features import ScoreColumns, best, gather
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
    columns, _ = add_phrases((ScoreColumns({}, {}, {}), {}), lists, glossary, "lists")
    features = gather(lists, columns.values, "lists", [])
    harm = measure_harm(lists, columns.values["phrases"], glossary)
    note = bound_weights(features.column("am"), features, harm)
    assert (note["weight"], note["lists"]) == (0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_bound(seed):
    lists, glossary = draw_lists(seed), make_glossary(["New York", "Kubernetes :2", "york times"])
    columns, _ = add_phrases((ScoreColumns({}, {}, {}), {}), lists, glossary, "lists")
    features = gather(lists, columns.values, "lists", [])
    harm = measure_harm(lists, columns.values["phrases"], glossary)
    rest = features.column("am")
    note = bound_weights(rest, features, harm)

    refs = {nbest.utt: nbest.ref for nbest in lists}

    def measure(weight):
        places = best(rest + weight * features.column("phrases"), features.valid)
        texts = {n.utt: n.hyps[place].text for n, place in zip(lists, places, strict=True)}
        rows = count_texts(refs, texts, glossary)
        return rows[:, 0], rows[:, 2], (rows[:, 6] - rows[:, 4]).sum()

    before = measure(0.0)

    def harmless(row):
        errors = sum(map(np.sum, row[:2])), sum(map(np.sum, before[:2]))
        return errors[0] <= errors[1]

    tried = [measure(weight) for weight in np.linspace(0, 3, 601)]
    allowed = [row for row in tried if harmless(row)]
    chosen = measure(note["weight"])
    assert harmless(chosen)
    assert (chosen[0] + chosen[1]).sum() <= min((row[0] + row[1]).sum() for row in allowed)
    for weight, *counts in note["curve"]:
        changes = np.subtract(counts, note["curve"][0][1:])
        assert [*changes] == [
            np.sum(row) - np.sum(b) for row, b in zip(measure(weight), before, strict=True)
        ]
    assert note["weight"] in [row[0] for row in note["curve"]]
    gained = [note["without"][name] - note["with"][name] for name in note["with"]]
    assert gained == [np.sum(left - right) for left, right in zip(before, chosen, strict=True)]


def test_default_weight_reaches_far_down():
    """One word of the glossary lifts a hypothesis from among the first 54, no other."""
    for place, name in ((54, "kubernetes"), (55, "net 0")):
        hyps = [f"net {i}" for i in range(place - 1)]
        lists = [NBest.of("u", [*hyps, "kubernetes"])]
        (chosen,) = lmtools.rescore(lists, "default:phrases", phrases=["Kubernetes"])
        assert chosen.hyps[0].text == name


def test_a_false_alarm_is_weighed(tmp_path, capsys):
    """Nine names gained are worth one that is wrong."""
    names, other = ("to kubernetes", "to nets"), ("to us", "to kubernetes")
    lists = [NBest.of(f"u{i}", names[::-1], names[0]) for i in range(9)]
    lists.append(NBest.of("u9", other, other[0]))
    jsonl.write(lists, tmp_path / "dev")
    (tmp_path / "g").write_text("Kubernetes\n")
    command = ["tune", "--nbest", str(tmp_path / "dev"), "--phrases", str(tmp_path / "g")]
    command += ["--out", str(tmp_path / "w")]
    assert main(command) == 0
    assert "errors of all words 9 -> 1, change -8" in capsys.readouterr().err
    assert lmtools.Weights.load(tmp_path / "w").features["phrases"] > 0


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
    told = capsys.readouterr().err
    note = json.loads((here / "w").read_text())["search"]["phrases"]
    counts = [sum([*note[key].values()][:2]) for key in ("without", "with")]
    assert f"differ in them: errors of all words {counts[0]} -> {counts[1]}, change -" in told
    head = "weight  errors in phrases  in other words  false alarms"
    rows = [row.split() for row in told[told.index(head) :].splitlines()[1:]]
    starred = next(row for row in rows if row[-1] == "*")
    assert [*map(int, starred[1:4])] == [*note["with"].values()]
    assert [*map(int, rows[0][1:4])] == [*note["without"].values()]
    rescore = ["rescore", "--nbest", "dev.jsonl", "--weights", "w", "--out", "out", "--phrases"]
    assert main([*rescore, "g"]) == 0
    assert not (here / "out.written").exists()
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
