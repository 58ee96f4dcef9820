"""Networks of lists, new hypotheses out of a list's own words, and the verbs of both."""

import json
import math

import numpy as np
import pytest

from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text, scores
from lmtools.networks import files as networks
from lmtools.networks.lists import NetworkPlan, build_networks, rank_lists
from lmtools.types import Hypothesis, NBest, ScoreTable

TEXTS = ["x b c", "a y c", "a b z", "x b c"]
SHARES = [0.3, 0.3, 0.3, 0.1]
LIST = NBest.of("u", TEXTS, "a b c", am=[math.log(share) for share in SHARES])


def network_of(nbest, **plan):
    (network,) = build_networks(rank_lists([nbest], None, None, "F"), NetworkPlan(**plan))
    return network


def test_words_of_a_list():
    """Those of the best hypothesis; by consensus two of three in each place, which none has all."""
    network = network_of(LIST, consensus=True)
    assert (network.text, network.ref) == ("a b c", "a b c")
    assert [slot.confidence for slot in network.slots] == pytest.approx([0.6, 0.7, 0.7])
    best = network_of(LIST)
    assert best.text == "x b c"
    assert [slot.confidence for slot in best.slots] == pytest.approx([0.4, 0.7, 0.7])
    assert network_of(LIST, depth=1).text == "x b c"


@pytest.mark.parametrize("texts", [["a b"], ["a b", "a b"], [""], ["", ""], []])
def test_one_hypothesis_is_itself(texts):
    network = network_of(NBest.of("u", texts))
    assert network.text == "".join(texts[:1])
    assert all(slot.words == {slot.chosen: 1.0} for slot in network.slots)


WORDS = [
    {"word": "a", "start": 2.0, "end": 2.25, "KEY": 0.5},
    {"word": "b", "start": 3.0, "end": 3.25, "KEY": 0.75},
]
VOSK = json.dumps({"text": "a b", "utt": "u", "result": WORDS}).replace("KEY", "conf")
WHISPER = json.dumps({"text": " a b", "segments": [{"words": WORDS}]}).replace("KEY", "probability")


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("ctm", "u 1 3.0 .25 b .75\nu 1 2 0.25 a 5e-1\n"),
        ("vosk", VOSK + "\n"),
        ("whisper", WHISPER),
    ],
)
def test_recognisers_confidences_and_times(tmp_path, monkeypatch, form, content):
    """Of a single hypothesis they are kept, whichever format it came in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "u.json").write_text(content)
    build = f"network build --nbest u.json --format {form} --to ctm --out out"
    assert main(build.split()) == 0
    rows = ["u 1 2.00 0.25 a 0.500000", "u 1 3.00 0.25 b 0.750000"]
    assert (tmp_path / "out").read_text().splitlines() == rows


def test_times_of_hypotheses():
    hyps = (
        Hypothesis("a b", {"am": 0.0}, {"times": "1 0.00 0.50\n1 0.50 0.50"}),
        Hypothesis("a c", {"am": 0.0}, {"times": "1 0.20 0.50\n1 0.70 0.30"}),
    )
    first, second = network_of(NBest("u", hyps)).slots
    assert first.time == pytest.approx((0.1, 0.6))
    assert second.time == pytest.approx((0.5, 1.0))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lists = [LIST, NBest.of("v", ["d", "e"], "e", am=[-1.0, -1.5]), NBest("w", (), "")]
    jsonl.write(lists, "nbest.jsonl")
    column = {"u": np.array([0.0, 0, 5, 0]), "v": np.array([0.0, 2.0]), "w": np.zeros(0)}
    counts = {utt: np.ones(len(row), dtype=np.int64) for utt, row in column.items()}
    scores.write(ScoreTable(column, counts, {"lm": "x", "model": "y"}), lists, "x.scores")
    return tmp_path


def test_weights_and_columns_as_rescore_takes_them(here, capsys):
    """The best hypothesis is that of `lmtools rescore`, and posteriors are of its totals."""
    tune = "tune --nbest nbest.jsonl --scores x=x.scores --out w.json --fix x=1 words=0"
    assert main(tune.split()) == 0
    given = ["--nbest", "nbest.jsonl", "--scores", "x=x.scores", "--weights", "w.json"]
    assert main(["rescore", *given, "--out", "chosen"]) == 0
    build = ["network", "build", *given]
    assert main([*build, "--out", "n.json"]) == 0
    assert main([*build, "--out", "text", "--to", "text"]) == 0
    assert kaldi_text.read("text") == kaldi_text.read("chosen")
    second = next(network for network in networks.read("n.json") if network.utt == "v")
    assert second.slots[0].words == pytest.approx(
        {"e": 1 / (1 + math.exp(-1.5)), "d": 1 / (1 + math.exp(1.5))}
    )
    assert "networks of 3 utterances" in capsys.readouterr().err


def test_rescored_lists_need_no_weights(here):
    """`total` of rescored lists makes the posterior."""
    total = [NBest.of("u", ["a", "b"], am=[0.0, -9.0], total=[0.0, 1.0])]
    jsonl.write(total, "t.jsonl")
    assert main(["network", "build", "--nbest", "t.jsonl", "--out", "n.json", "--scale", "2"]) == 0
    (network,) = networks.read("n.json")
    assert network.slots[0].words["b"] == pytest.approx(1 / (1 + math.exp(-2)))
    assert main(["network", "build", "--nbest", "t.jsonl", "--out", "n.json", "--score", "am"]) == 0
    (network,) = networks.read("n.json")
    assert network.text == "a"


def test_lattices(here):
    (here / "l.wcn").write_text("a:0:0.6 b:0:0.4 c:1:1\n")
    assert main(["network", "build", "--lattices", "l.wcn", "--out", "n.json"]) == 0
    (network,) = networks.read("n.json")
    assert network.text == "a c"
    assert [slot.confidence for slot in network.slots] == pytest.approx([0.6, 1.0])
    assert main(["network", "build", "--lattices", "l.wcn", "--depth", "2", "--out", "n.json"]) == 1
    assert main(["network", "build", "--lattices", "n.wcn", "--out", "x", "--to", "wcn"]) == 1


def test_lattice_formats_of_networks(here):
    build = ["network", "build", "--nbest", "nbest.jsonl"]
    assert main([*build, "--out", "n.wcn", "--to", "wcn"]) == 0
    first, *_ = (here / "n.wcn").read_text().splitlines()
    entries = [entry.rsplit(":", 2) for entry in first.split()]
    assert [(word, slot) for word, slot, _ in entries] == [*zip("axbycz", "001122", strict=True)]
    shares = [float(share) for _, _, share in entries]
    assert shares == pytest.approx([0.6, 0.4, 0.7, 0.3, 0.7, 0.3])
    assert main([*build, "--out", "n.x", "--to", "nothing"]) == 1
    assert not (here / "n.x").exists()


@pytest.mark.parametrize(
    "options",
    [
        *("--scores x=x.scores", "--weights w.json --score am", "--score none"),
        *("--nbest missing.jsonl", "--choice consensus"),
    ],
)
def test_refusals(here, options, capsys):
    (here / "w.json").write_text(json.dumps({}))
    assert main(["network", "build", "--nbest", "nbest.jsonl", "--out", "n", *options.split()]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not (here / "n").exists()


FIRST, SECOND = "the red fox", "the read fox"


@pytest.mark.parametrize("verb", ["network build --to ctm", "mbr --utility wer"])
@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (({"am": 3.5}, {"am": 4.9}), "'am' has the sign of costs: its values"),
        (({"am": -3.0, "graph": -1.0}, {"am": -4.0, "graph": -2.0}), "'am' alone, without 'graph'"),
        (({"am": -3.0}, {"am": -1e30}), "1 values of 'am' (first in 'u') are beyond 1e+10"),
        (({"am": 312.5}, {"am": 311.0}), None),
        (({"am": 3.5, "total": -3.5}, {"am": 4.9, "total": -4.9}), None),
    ],
)
def test_scores_that_make_no_posterior_are_told(here, capsys, verb, scores, said):
    """Costs, a part of Kaldi's score alone, and values that are none; not Vosk's scores."""
    hyps = (Hypothesis(FIRST, scores[0]), Hypothesis(SECOND, scores[1]))
    jsonl.write([NBest("u", hyps)], "l.jsonl")
    posterior = ["--score", "total"] if "total" in scores[0] and "wer" in verb else []
    assert main([*verb.split(), *posterior, "--nbest", "l.jsonl", "--out", "o"]) == 0
    printed = capsys.readouterr().err
    assert (said in printed) if said else ("warning" not in printed)


def test_scores_too_large_to_differ_are_refused(here, capsys):
    for hyps, status in ((((1e16, 1e16)), 0), ((1e16, 1.1e16), 1)):
        jsonl.write([NBest.of("u", [FIRST, SECOND], am=list(hyps))], "l.jsonl")
        assert main(["network", "build", "--nbest", "l.jsonl", "--out", "o"]) == status
    assert "feature 'am' of hypothesis 2 of utterance 'u' is too large, as all" in (
        capsys.readouterr().err
    )
