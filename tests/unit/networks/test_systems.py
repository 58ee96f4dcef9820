"""Systems combined: read, voted, tuned; `lmtools network rover` and `tune`."""

import json
import random
from dataclasses import replace

import pytest
from rapidfuzz.distance import Levenshtein

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import ctm, jsonl, kaldi_text
from lmtools.networks import files as networks
from lmtools.networks.lists import NetworkPlan, build_networks, rank_lists
from lmtools.networks.rover import VOTES, Vote
from lmtools.networks.systems import (
    SystemOutput,
    VoteTrial,
    combine_systems,
    join_systems,
    load_vote,
    order_systems,
    save_vote,
)
from lmtools.types import NBest

REFS = {"u": "a b c", "v": "d e"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Outputs of three systems in three formats, one error each, and a bad fourth."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.trn").write_text("a b x (u)\nd e (v)\n")
    rows = ["u 1 0.0 0.5 a 0.9", "u 1 0.5 0.5 y 0.3", "u 1 1.0 0.5 c 0.8", "v 1 0 1.0 d 0.7"]
    (tmp_path / "two.ctm").write_text("\n".join([*rows, "v 1 1.0 0.5 e 0.6"]) + "\n")
    lists = [NBest.of("u", ["b c", "a b c"], am=[0.0, -1.0]), NBest.of("v", ["d f", "d e"])]
    lists[1] = NBest.of("v", ["d f", "d e"], am=[0.0, -0.1])
    jsonl.write(lists, "three.jsonl")
    (tmp_path / "four.trn").write_text("q q q (u)\nq q (v)\n")
    kaldi_text.write(REFS, "ref")
    return tmp_path


SYSTEMS = ["one.trn", "two.ctm", "three.jsonl"]


@pytest.mark.parametrize("method", VOTES)
def test_vote_of_three_has_no_error(here, method):
    command = ["network", "rover", *SYSTEMS, "--method", method, "--alpha", "0.7", "--to", "text"]
    assert main([*command, "--out", "text"]) == 0
    assert kaldi_text.read("text") == REFS


def test_confidences_and_times(here):
    assert main(["network", "rover", *SYSTEMS, "--out", "n.ctm", "--to", "ctm"]) == 0
    (first, _) = ctm.read("n.ctm")
    assert first.hyps[0].extra["times"].splitlines()[0] == "1 0.00 0.50 0.666667"
    assert main(["network", "rover", *SYSTEMS, "--out", "n.json"]) == 0
    (first, _) = networks.read("n.json")
    assert first.slots[1].words == pytest.approx({"b": 2 / 3, "y": 1 / 3})
    # networks are systems, too
    assert main(["network", "rover", "n.json", "four.trn", "--out", "t", "--to", "text"]) == 0
    assert kaldi_text.read("t") == REFS


def test_tuned_on_references(here, capsys):
    """A bad system in front is found out."""
    systems = ["four.trn", *SYSTEMS]
    assert main(["network", "tune", *systems, "--ref", "ref", "--out", "vote.json"]) == 0
    printed = capsys.readouterr().err
    assert "four.trn: WER 100.00" in printed and "vote.json: WER 0.00" in printed
    command = ["network", "rover", *systems, "--weights", "vote.json", "--to", "text"]
    assert main([*command, "--out", "text"]) == 0
    assert kaldi_text.read("text") == REFS
    assert main(["network", "rover", *SYSTEMS[:2], "--weights", "vote.json", "--out", "x"]) == 1
    assert "weights of 4 systems for 2" in capsys.readouterr().err
    assert main(["network", "tune", *systems, "--out", "x"]) == 1
    assert "no reference of utterance 'u'; give --ref" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("known", "given", "ordered", "told"),
    [
        (
            "good.dev.txt poor.dev.txt",
            "poor.test.txt good.test.txt",
            "good.test.txt poor.test.txt",
            "by name",
        ),
        (
            "exp/a/dev.json exp/b/dev.json",
            "b/test.json a/test.json",
            "a/test.json b/test.json",
            "by name",
        ),
        ("a.txt b.txt", "x.txt y.txt", "x.txt y.txt", "in the order of tuning (a.txt, b.txt)"),
        ("", "x.txt y.txt", "x.txt y.txt", "in the order of tuning (unnamed)"),
        ("a.txt a2.txt", "a.txt a.txt", "a.txt a.txt", "in the order of tuning (a.txt, a2.txt)"),
    ],
)
def test_trust_is_of_systems_by_name(known, given, ordered, told):
    vote = Vote(trust=(2.0, 0.5), systems=tuple(known.split()))
    paths, (line,) = order_systems(vote, given.split())
    one, two = paths
    assert " ".join(paths) == ordered and line == f"trust {told}: {one} 2, {two} 0.5"


@pytest.mark.parametrize("method", VOTES)
def test_errors_of_a_trial_are_those_of_the_combination(method):
    """What tuning counts, where systems differ alone, is what combining them gives."""
    rng = random.Random(method)
    refs = {f"u{number}": rng.choices("abcde", k=rng.randint(0, 9)) for number in range(30)}
    systems = []
    for system in range(4):
        built = {}
        for utt, ref in refs.items():
            texts = [
                " ".join(rng.choice("abcde") if rng.random() < 0.2 else word for word in ref)
                for _ in range(1 + (system == 3))
            ]
            nbest = NBest.of(utt, texts, am=[0.0, -0.5][: len(texts)])
            (built[utt],) = build_networks(
                rank_lists([nbest], None, None, "F"), NetworkPlan(consensus=True)
            )
            slots = [replace(s, confidence=rng.choice([0.25, 0.5, 1.0])) for s in built[utt].slots]
            built[utt] = replace(built[utt], slots=tuple(slots))
        systems.append(SystemOutput(str(system), built))
    trial = VoteTrial([(refs[utt], parts) for utt, parts in join_systems(systems)])
    for _ in range(20):
        alpha, null = rng.choice([0.0, 0.3, 1.0]), rng.choice([0.0, 0.5])
        vote = Vote(method, alpha, null, tuple(rng.choice([0.25, 1.0, 4.0]) for _ in systems))
        combined = combine_systems(systems, vote)
        errors = sum(Levenshtein.distance(refs[one.utt], one.text.split()) for one in combined)
        assert trial.count_errors(vote) == trial.count_errors(vote) == errors


def test_other_utterances_are_refused(here, capsys):
    (here / "short.trn").write_text("a b x (u)\n")
    assert main(["network", "rover", "one.trn", "short.trn", "--out", "x"]) == 1
    assert "short.trn: no utterance 'v'" in capsys.readouterr().err
    assert not (here / "x").exists()


def test_an_utterance_that_a_ctm_lacks_is_one_without_words(here, capsys):
    """Told, whichever place the ctm has; ids of which none is another system's are refused."""
    (here / "short.ctm").write_text("v 1 0 1.0 d 0.7\n")
    for order in (["short.ctm", "one.trn"], ["one.trn", "short.ctm"]):
        assert main(["network", "rover", *order, "--out", "n.json"]) == 0
        assert (
            "warning: short.ctm: no words of 1 of 2 utterances (the first is 'u'); they count as"
            " utterances where it heard nothing" in capsys.readouterr().err
        )
        slots = {one.utt: one.slots for one in networks.read("n.json")}
        assert [slot.words[""] for slot in slots["u"]] == [0.5] * 3
    assert main(["network", "tune", "short.ctm", "one.trn", "--ref", "ref", "--out", "v"]) == 0
    (here / "other.ctm").write_text("w 1 0 1.0 d 0.7\n")
    capsys.readouterr()
    assert main(["network", "rover", "one.trn", "other.ctm", "--out", "x"]) == 1
    assert "other.ctm: no utterance 'u'" in capsys.readouterr().err


def test_systems_that_spell_unlike_are_told(here, capsys):
    (here / "rich.trn").write_text("A b C. (u)\nD e. (v)\n")
    for systems, told in (
        (["one.trn", "four.trn"], 0),
        (["one.trn", "three.jsonl", "rich.trn"], 1),
    ):
        assert main(["network", "rover", *systems, "--out", "n.json"]) == 0
        said = "words, most in rich.trn, differ from those of other systems only by case or"
        assert (said in capsys.readouterr().err) == told
    convert = "convert rich.trn OUT.jsonl --format trn --normaliser librispeech"
    assert main(convert.split()) == 0
    assert main(["network", "rover", "one.trn", "three.jsonl", "OUT.jsonl", "--out", "n"]) == 0
    assert "case or punctuation" not in capsys.readouterr().err


def test_a_vote_worse_than_one_system_is_told(here, capsys):
    lists = [NBest.of(utt, [text], text) for utt, text in REFS.items()]
    jsonl.write(lists, "best.jsonl")
    for systems, told in ((["best.jsonl", "one.trn"], 0), (["four.trn", "best.jsonl"], 1)):
        assert main(["network", "rover", *systems, "--out", "n.json"]) == 0
        said = "warning: WER 100.00, and best.jsonl alone has 0.00; find weights of the systems on"
        assert (said in capsys.readouterr().err) == told


def test_settings_read_back(tmp_path):
    vote = Vote("share", 0.3, 0.2, (1.0, 0.5))
    save_vote(vote, tmp_path / "v.json")
    assert load_vote(tmp_path / "v.json") == vote


@pytest.mark.parametrize(
    "tree",
    [{"method": "x", "alpha": 1, "null": 0, "trust": []}]
    + [{"method": "freq", "alpha": 1, "null": 0, "trust": trust} for trust in (None, ["1"], [-1])],
)
def test_settings_that_are_none(tmp_path, tree):
    (tmp_path / "v.json").write_text(json.dumps(tree))
    with pytest.raises(UserError, match="lmtools network tune"):
        load_vote(tmp_path / "v.json")
