"""Noise at scoring time other than in training corrects MCS and CPS, and nothing else."""

import numpy as np
import pytest
import torch
from scoring import ask, load_scorer
from toys import save_rough, sentences, settings

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.models.objectives import OBJECTIVES, count_targets, excluded_ids
from lmtools.models.outputs.noise import NOISES
from lmtools.models.outputs.sampled import SAMPLED
from lmtools.score import load, score_texts
from lmtools.text.corpus import Corpus
from lmtools.text.subword import load_subword

TEXTS = sentences(5, 5)
CORRECTED = {"bce-mcs", "bce-cps", "ce-mcs", "ce-cps"}


@pytest.fixture(scope="module")
def made(tiny, tmp_path_factory):
    """A function: the directory of a causal model with random weights, by criterion."""
    home, subword = tmp_path_factory.mktemp("noise"), load_subword(tiny / "sw")

    def make(criterion: str) -> str:
        how = settings("causal", criterion=criterion, output={"samples": 6})
        return save_rough(home / criterion, how, subword)

    return make


def scored(lm, **how):
    options = ask(lm, device="cpu", cache="none", **how)
    return score_texts(TEXTS, load(*options), options.computing)


@pytest.mark.parametrize("criterion", sorted(CORRECTED))
def test_scores_differ_by_the_ratio_of_the_noises(made, tiny, criterion):
    lm, corpus = made(criterion), Corpus.open(tiny / "train.bin")
    how = {"normalise": "none"}
    own = scored(lm, **how)
    other = scored(lm, noise=f"unigram={tiny / 'train.bin'}", **how)
    scorer, causal = load_scorer(lm, "cpu"), OBJECTIVES["causal"]()
    counts = count_targets(causal, corpus, scorer.lm.size)
    noise = NOISES["unigram"](counts, excluded_ids(causal), 0.75)
    before = scorer.lm.output.noise.double().numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.log(noise.probability / before)
    ids = [[*sentence, causal.ends[0]] for sentence in scorer.prepare(TEXTS)]
    np.testing.assert_allclose(
        other.log_prob - own.log_prob, [shift[list(one)].sum() for one in ids], atol=1e-3
    )
    assert np.abs(other.log_prob - own.log_prob).max() > 1
    assert other.signature["noise"].startswith("unigram ") and "noise" not in own.signature
    full = scored(lm, noise=f"unigram={tiny / 'train.bin'}")
    assert not np.allclose(full.log_prob, other.log_prob)  # normalised again


def test_a_noise_has_one_signature(made, tiny):
    lm = made("bce-mcs")
    scorer = load_scorer(lm, "cpu", noise=f"log-uniform={tiny / 'train.bin'}")
    again = load_scorer(lm, "cpu", noise=f"log-uniform={tiny / 'train.bin'}")
    assert scorer.signature == again.signature
    assert not torch.equal(scorer.output.noise, load_scorer(lm, "cpu").output.noise)  # other counts
    kept = load_scorer(lm, "cpu", noise=f"uniform={tiny / 'train.bin'}").output.noise
    assert kept.unique().numel() == 2  # alike, but for what is never predicted


def test_which_criteria_it_corrects():
    assert {name for name, kind in SAMPLED.items() if kind.corrected} == CORRECTED


def test_what_has_no_noise_is_refused(made, tiny, trained, tmp_path):
    path = tiny / "train.bin"
    for lm in (made("bce-nce"), made("ce-is"), made("ce-nce"), str(trained["causal"])):
        with pytest.raises(UserError, match=r"noise.* out"):
            load_scorer(lm, "cpu", noise=f"unigram={path}")
    with pytest.raises(UserError, match=r"noise.* out"):
        load_scorer(f"hf:{tmp_path}", "cpu", noise=f"unigram={path}")
    with pytest.raises(UserError, match="known: log-uniform"):
        load_scorer(made("ce-mcs"), "cpu", noise=f"zipf={path}")
    with pytest.raises(UserError, match="KIND=F"):
        load_scorer(made("ce-mcs"), "cpu", noise="unigram")


def test_a_corpus_of_another_vocabulary_is_refused(made, tiny, tmp_path, capsys):
    text = tmp_path / "text"
    text.write_text("other words\n" * 3)
    told = ["subword", "--text", str(text), "--type", "word", "--out", str(tmp_path / "sw")]
    assert main(told) == 0
    told = ["corpus", "--text", str(text), "--subword", str(tmp_path / "sw")]
    assert main([*told, "--out", str(tmp_path / "a.bin")]) == 0
    with pytest.raises(UserError, match="another vocabulary"):
        load_scorer(made("bce-cps"), "cpu", noise=f"unigram={tmp_path / 'a.bin'}")
