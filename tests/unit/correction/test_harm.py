"""Harm on clean text: bounds that hold, what counts as a change, what chooses."""

import lzma
from pathlib import Path

import numpy as np
import pytest
from needs import needs
from scipy.stats import binomtest
from writers import answers

import lmtools
from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.correction.harm import Harm, HarmPlan, count_edits, vary_texts
from lmtools.correction.lists import Corrector
from lmtools.correction.share import bound_clustered, bound_share

NOVEL = Path(__file__).parents[3] / "egs/librispeech/mini-real/valid.txt.xz"
NAMES = ["Wright | right", "Knight | night", "Wood | would", "New Holm | no home | new home"]


@pytest.mark.parametrize(("count", "total"), [(0, 1), (0, 700), (1, 30), (17, 200), (99, 100)])
def test_bounds_are_those_of_scipy(count, total):
    wanted = binomtest(count, total, alternative="less").proportion_ci(0.95, "exact").high
    assert bound_share(count, total) == pytest.approx(wanted, rel=1e-9)
    rows = np.arange(total) < count  # a cluster an observation has no design effect
    assert bound_clustered(rows, np.ones(total)) == pytest.approx(wanted, rel=0.05)
    assert bound_share(total, total) == bound_share(0, 0) == bound_clustered([], []) == 1.0


def count_held(edits: np.ndarray, words: np.ndarray, rng, splits=100) -> tuple[int, int]:
    """In how many random halves both bounds are at least the shares of the whole."""
    shares, held = ((edits > 0).mean(), edits.sum() / words.sum()), [0, 0]
    for _ in range(splits):
        half = rng.permutation(len(edits))[: len(edits) // 2]
        some = Harm((), tuple(edits[half].tolist()), tuple(words[half].tolist()))
        held[0] += some.bound() >= shares[0]
        held[1] += some.word_bound() >= shares[1]
    return held[0], held[1]


@pytest.mark.parametrize(("share", "together"), [(0.002, 0), (0.02, 0), (0.1, 3), (0.3, 6)])
def test_bounds_hold_in_random_splits_of_simulated_edits(share, together):
    """Also where edits come together, several in a sentence."""
    rng = np.random.default_rng(1)
    words = rng.integers(3, 40, 4000)
    edits = (rng.random(4000) < share) * (1 + rng.binomial(np.minimum(together, words - 1), 0.5))
    assert min(count_held(edits, words, rng)) >= 95


@needs("phrases")
def test_bounds_hold_in_random_splits_of_a_glossary_s_edits():
    lines = lzma.decompress(NOVEL.read_bytes()).decode().splitlines()
    harm = lmtools.measure_harm(lines, phrases=NAMES)
    assert harm.sentences == len(lines) and 20 < harm.changed < 100
    assert sum(harm.edits) >= harm.changed == len(harm.changes)
    assert {change.source for change in harm.changes} == {"spelled"}
    held = count_held(np.array(harm.edits), np.array(harm.words), np.random.default_rng(1))
    assert min(held) >= 95


@needs("phrases")
def test_what_a_glossary_changes():
    texts = ["all right, then", "the wright came", "there is no home, and no home", "nothing"]
    harm = lmtools.measure_harm(texts, phrases=NAMES)
    assert harm.edits == (1, 0, 2, 0) and harm.words == (3, 3, 7, 1) and harm.changed == 2
    assert harm.changes[1].chosen == "there is New Holm, and New Holm"
    assert lmtools.measure_harm(texts, phrases=["Zanzibar"]).changes == ()
    assert count_edits(["a", "b", "c", "d"], ["x", "y", "c", "e", "d"]) == 2


def tuned(near: float, lm=None):
    """Weights of `am`, `near` and perhaps a language model, as tune would have found them."""
    lists = [lmtools.NBest.of("u", ["a b", "a"], "a b", am=[-1.0, -2.0], near=[0.0, 0.0])]
    columns = {"lm": lm.score_lists(lists)} if lm else {}
    return lmtools.tune(
        lists, columns, fix={"near": near, "words": 0.0, **dict.fromkeys(columns, 1)}
    )


def test_answers_are_chosen_beyond_the_margin(tmp_path):
    texts = ["the king came", "the queen came", "the city"]
    said = "the king came", "the green came", "the king ants the city"
    raw = HarmPlan(corrector=Corrector(answers(*said)[0], free=True)).measure(texts, "F")[0]
    assert raw.edits == (0, 1, 0)  # the last is too far
    (tmp_path / "text").write_text("the green came\n" * 9 + "the queen came\n")
    made = ["ngram", "--text", f"{tmp_path}/text", "--order", "2", "--out", f"{tmp_path}/lm"]
    assert main(made) == 0
    lm = lmtools.load(tmp_path / "lm")
    for margin, changed in ((0.1, 1), (50.0, 0)):
        plan = HarmPlan(
            corrector=Corrector(answers(*said)[0], free=True),
            weights=tuned(margin, lm), lms={"lm": lm.scorer.spec},
        )  # fmt: skip
        harm = plan.measure(texts, "F")[0]
        assert harm.changed == changed
        assert all(change.margin > 0 for change in harm.changes)
    with pytest.raises(UserError, match="no margin `near`, so nothing new"):
        HarmPlan(NAMES, weights=tuned(0.0)).measure(texts, "F")
    with pytest.raises(UserError, match="phrases, correct: what may change"):
        lmtools.measure_harm(texts)


def test_variants_are_of_near_words_of_the_text():
    texts = ["the queen came", "the green game", "the king"] * 20
    lists = vary_texts(texts)
    assert lists == vary_texts(texts) and [nbest.hyps[0].text for nbest in lists] == texts
    words = {word for nbest in lists for hyp in nbest.hyps for word in hyp.text.split()}
    assert words == {*" ".join(texts).split()}
    assert sum(len(nbest.hyps) > 1 for nbest in lists) > 20


@needs("phrases")
def test_the_verb(tmp_path, capsys):
    (tmp_path / "text").write_text("all right then\n\nnothing\n" * 20)
    (tmp_path / "names").write_text("\n".join(NAMES) + "\n")
    words = f"harm --text {tmp_path}/text --phrases {tmp_path}/names --out {tmp_path}/c.tsv"
    assert main([*words.split(), "--most", "0.9"]) == 0
    out = capsys.readouterr().out
    assert "20 of 40 sentences changed" in out and "20 false edits in 80 words" in out
    assert f"at most {bound_share(20, 40):.3%} of such sentences" in out
    assert len((tmp_path / "c.tsv").read_text().splitlines()) == 21
    assert main([*words.split(), "--most", "0.5"]) == 1
    assert "is above --most 50.000%" in capsys.readouterr().err
    for wrong, said in (
        (["--free"], "--free: of which model"),
        (["--lm", "lm=x"], "--lm: chooses by --weights"),
    ):
        assert main([*words.split(), *wrong]) == 1
        assert said in capsys.readouterr().err
