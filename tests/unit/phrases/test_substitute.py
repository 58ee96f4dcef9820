"""New hypotheses with phrases in the place of near words, against all windows one by one, and the
margin by which they win.
"""

import itertools
import json

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein

import lmtools
from lmtools.cli import main
from lmtools.formats import jsonl
from lmtools.phrases.glossary import make_glossary
from lmtools.phrases.harm import own_hypotheses
from lmtools.phrases.substitute import FARTHEST, MARK, NEAREST, SOURCES, substitute_lists
from lmtools.rescoring.features import gather
from lmtools.types import Hypothesis, NBest

NAMES = ["kubernetes", "fauchelevent", "new york", "abbey"]


def substitute(nbest, phrases, most=10):
    """One list with its new hypotheses."""
    (longer,) = substitute_lists([nbest], make_glossary(phrases), most)
    return longer


@pytest.mark.parametrize("seed", range(10))
def test_all_near_windows(seed):
    """Every window of the first hypotheses beside every phrase, measured one by one."""
    rng = np.random.default_rng(seed)
    words = ["cooper", "netties", "fort", "fosh", "element", "new", "yolk", "a", "abby", "york"]
    texts = [" ".join(rng.choice(words, size=rng.integers(0, 7))) for _ in range(5)]
    nbest = NBest.of("u", texts, am=[-1.0, -2, -3, -4, -5])
    longer = substitute(nbest, NAMES, 1000)
    expected = {}
    for place, text in enumerate(texts[:SOURCES]):
        said = text.split()
        held = {at for at in range(len(said)) for near in (at - 1, at)
                if said[max(near, 0) : near + 2] == ["new", "york"]}  # fmt: skip
        for start, end in itertools.combinations(range(len(said) + 1), 2):
            if end - start > 4 or held & {*range(start, end)}:
                continue
            for name in NAMES:
                letters = name.replace(" ", "")
                heard = "".join(said[start:end])
                share = Levenshtein.distance(heard, letters) / max(len(heard), len(letters))
                new = " ".join([*said[:start], name, *said[end:]])
                if share <= FARTHEST and new not in texts:
                    entry = (max(share, NEAREST), place)
                    expected[new] = min(entry, expected.get(new, entry))
    found = {hyp.text: hyp for hyp in longer.hyps[5:]}
    assert {text: -hyp.scores["near"] for text, hyp in found.items()} == pytest.approx(
        {text: share for text, (share, _) in expected.items()}
    )
    shares = [-hyp.scores["near"] for hyp in longer.hyps]
    assert shares[5:] == sorted(shares[5:]) and shares[:5] == [0] * 5
    assert len(substitute(nbest, NAMES, 2).hyps) == 5 + min(2, len(found))


def test_words_scores_and_writing():
    hyps = (
        Hypothesis("we like fosh element", {"am": -2.0}, written='We like "Fosh element".'),
        Hypothesis("we like fortune", {"am": -3.0}),
    )
    nbest = NBest("u", hyps, "we like fauchelevent")
    longer = substitute(nbest, ["Fauchelevent"], 1)
    (new,) = longer.hyps[2:]
    assert new.text == "we like fauchelevent" and new.extra == {MARK: "fosh element"}
    assert new.display == 'We like "Fauchelevent".'
    assert new.scores == {"am": -2.0, "near": pytest.approx(-1 / 3)}
    # a spoken form is what is near; the phrase is what is written
    (new,) = substitute(nbest, ["Kubernetes | fosh elements"], 1).hyps[2:]
    assert new.text == "we like kubernetes"
    for phrases in ([], ["zanzibar"]):
        assert [hyp.text for hyp in substitute(nbest, phrases).hyps] == [h.text for h in hyps]


def test_lists_that_have_new_hypotheses_are_refused(tmp_path, capsys):
    jsonl.write([NBest.of("u", ["the abby shines"], "the abbey", am=[-1.0])], tmp_path / "n.jsonl")
    (tmp_path / "g").write_text("abbey\n")
    command = f"network substitute --phrases {tmp_path}/g --out {tmp_path}/o.jsonl --nbest"
    assert main([*command.split(), f"{tmp_path}/n.jsonl"]) == 0
    assert "1 new hypotheses in 1 of 1 lists" in capsys.readouterr().err
    assert main([*command.split(), f"{tmp_path}/o.jsonl"]) == 1
    assert "the lists have a score 'near'" in capsys.readouterr().err


def draw_lists(true, false):
    """Lists in which a name was heard as a near word (`true`) or was not (`false`)."""
    lists = []
    for row in range(true + false):
        ref, heard = ("kubernetes", "kubernettes") if row < true else ("governments",) * 2
        texts = [f"we run {heard} here", f"we ran {heard} here", f"we run {heard} hear"]
        lists.append(NBest.of(f"u{row}", texts, f"we run {ref} here", am=[-1.0, -1.5, -3.0]))
    return lists


def test_margin_is_of_what_saves_errors(tmp_path):
    lists, phrases = draw_lists(20, 20), ["Kubernetes"]
    glossary = make_glossary(phrases)
    longer = list(substitute_lists(lists, glossary, 10))
    alone = lmtools.tune(lists, phrases=phrases)
    tuned = lmtools.tune(longer, phrases=phrases)
    note = tuned.search["phrases"]
    assert note["new"] and note["with"] == {
        "phrase_errors": 0, "other_errors": 0, "false_alarms": 0
    }  # fmt: skip
    chosen = lmtools.rescore(longer, tuned, phrases=phrases)
    assert [nbest.hyps[0].text for nbest in chosen] == [nbest.ref for nbest in lists]
    assert tuned.features["am"] == alone.features["am"]
    fixed = lmtools.tune(longer, phrases=phrases, fix={"near": 7.0})
    assert fixed.features["near"] == 7 and "margin" not in fixed.search["phrases"]


@pytest.mark.parametrize("true", [0, 1, 3])
def test_few_gains_are_noise(true):
    """Up to three errors saved are within two standard errors: nothing new wins."""
    lists, phrases = draw_lists(true, 30), ["Kubernetes"]
    longer = list(substitute_lists(lists, make_glossary(phrases), 10))
    tuned, alone = (lmtools.tune(some, phrases=phrases) for some in (longer, lists))
    assert not tuned.search["phrases"]["new"]
    assert {**tuned.features, "near": 0} == {**alone.features, "near": 0}
    for weights in (tuned, "default:phrases"):
        chosen = lmtools.rescore(longer, weights, phrases=phrases)
        assert [nbest.hyps[0].text for nbest in chosen] == [n.hyps[0].text for n in lists]


def test_own_hypotheses():
    features = gather(
        list(substitute_lists(draw_lists(1, 1), make_glossary(["kubernetes"]), 10)), {}, "F"
    )
    own = own_hypotheses(features)
    assert own.valid.sum() == 6 < features.valid.sum()
    assert json.dumps(own.names) == json.dumps(features.names)


def test_letters_are_replaced_where_no_blanks_part_words():
    nbest = NBest.of("u", ["我们去海滨公元玩"], am=[-1.0])
    (found,) = substitute_lists([nbest], make_glossary(["海滨公园"]), 3)
    assert "我们去海滨公园玩" in [hyp.text for hyp in found.hyps]
