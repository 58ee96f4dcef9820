"""Perplexity of linear interpolations: against probabilities added by hand, single models, and the
known optimum of the weights.
"""

import json

import numpy as np
import pytest
import torch
from toys import sentences, settings

from lmtools.checkpoint import prepare_directory, save_weights
from lmtools.cli import main
from lmtools.lm import LanguageModel
from lmtools.ngram import build
from lmtools.score import ScoreOptions, mixture_perplexity, perplexity
from lmtools.score.mixture import tune_mixture
from lmtools.subword import load_subword, train
from lmtools.text import Normaliser

TEXTS = [*sentences(20, 8), "the king zebra came", "the king"]  # a word that is unknown to both
PLAIN = ScoreOptions("", device="cpu", cache="none")


@pytest.fixture(scope="module")
def lms(tmp_path_factory):
    """An LSTM and a masked model with random weights, n-grams of its vocabulary and of words."""
    home = tmp_path_factory.mktemp("mixture")
    lines = sentences(60, 3)
    (home / "train.txt").write_text("".join(f"{line}\n" for line in lines))
    (home / "valid.txt").write_text("".join(f"{line}\n" for line in sentences(40, 4)))
    (home / "test.txt").write_text("".join(f"{line}\n" for line in TEXTS))
    vocabulary = train("word", lines, None, Normaliser(), home / "words", min_count=2)
    for name in ("lstm", "masked"):
        torch.manual_seed(6)
        lm = LanguageModel(settings(name), vocabulary.size)
        prepare_directory(home / name, settings(name), vocabulary)
        save_weights(home / name, lm)
    closed = load_subword(home / "words")
    build([home / "train.txt"], 2, home / "ngram", closed, "none", closed=True)
    build([home / "valid.txt"], 2, home / "other", train_fewer(home), "none")
    return home


def train_fewer(home):
    """A vocabulary of some words of the text."""
    return train("word", sentences(60, 3), 12, Normaliser(), home / "fewer")


def paths(lms, *names):
    return [str(lms / name) for name in names]


def by_hand(path: str) -> np.ndarray:
    """The probability of every token and end of TEXTS under one model."""
    scorer = ScoreOptions(path, device="cpu").load()
    return np.exp(
        np.concatenate([scorer.token_log_probs([one])[0] for one in scorer.prepare(TEXTS)])
    )


def test_probabilities_are_added_token_by_token(lms):
    pair = paths(lms, "lstm", "ngram")
    figures = mixture_perplexity(TEXTS, PLAIN, pair, [0.3])
    mixed = 0.3 * by_hand(pair[0]) + 0.7 * by_hand(pair[1])
    count = sum(len(line.split()) + 1 for line in TEXTS)
    assert len(mixed) == count == figures["tokens"]
    assert figures["word_ppl"] == pytest.approx(np.exp(-np.log(mixed).sum() / count), rel=1e-6)
    assert [part["weight"] for part in figures["mixture"]] == pytest.approx([0.3, 0.7])
    assert figures["oov"] == 1 and "0.3*" in figures["signature"]["model"]
    penalised = ScoreOptions("", device="cpu", cache="none", oov_penalty=2.0)
    less = mixture_perplexity(TEXTS, penalised, pair, [0.3])
    assert less["log_prob"] == pytest.approx(figures["log_prob"] - 2.0)


@pytest.mark.parametrize(("place", "weights"), [(0, [1.0, 0.0]), (1, [0.0])])
def test_all_the_weight_is_the_single_model_to_the_digit(lms, place, weights):
    pair = paths(lms, "lstm", "ngram")
    figures = mixture_perplexity(TEXTS, PLAIN, pair, weights)
    alone = perplexity(TEXTS, ScoreOptions(pair[place], device="cpu", cache="none"))
    same = ("log_prob", "word_ppl", "subword_ppl", "tokens", "words", "oov", "bits_per_char")
    assert [figures[name] for name in same] == [alone[name] for name in same]
    part = figures["mixture"][place]
    assert part["word_ppl"] == alone["word_ppl"] and part["signature"] == alone["signature"]


def test_tuned_weights_are_the_known_optimum():
    """Two symbols under two models: a share x of the first is most probable where the mixture gives
    it x.
    """
    first, second, share = 0.9, 0.2, 0.41
    seen = np.arange(1000) < 1000 * share
    logs = np.log([np.where(seen, one, 1 - one) for one in (first, second)])
    expected = (share - second) / (first - second)
    np.testing.assert_allclose(tune_mixture(logs), [expected, 1 - expected], atol=1e-5)


def test_a_model_that_is_worse_everywhere_gets_no_weight():
    logs = np.random.default_rng(1).normal(-4, 1, (3, 200))
    logs[1] = np.minimum(logs[0], logs[2]) - 2
    weights = tune_mixture(logs)
    assert weights[1] < 1e-6 < weights[0] and weights.sum() == pytest.approx(1)

    def likelihood(values):
        return np.logaddexp.reduce(np.log(values)[:, None] + logs[[0, 2]]).sum()

    best = likelihood(weights[[0, 2]])
    assert all(likelihood(np.array([x, 1 - x])) <= best + 1e-6 for x in np.linspace(0.01, 0.99, 99))


def test_the_verb_tunes_on_another_text_and_says_all(lms, tmp_path, capsys):
    lstm, ngram = paths(lms, "lstm", "ngram")
    call = ("ppl", "--lm", lstm, "--lm", ngram, "--text", str(lms / "test.txt"), "--device", "cpu")
    tuned = ("--tune-on", str(lms / "valid.txt"), "--out", str(tmp_path / "f.json"))
    assert main([*call, *tuned]) == 0
    figures = json.loads((tmp_path / "f.json").read_text())
    weights = [part["weight"] for part in figures["mixture"]]
    assert sum(weights) == pytest.approx(1) and weights[1] > weights[0]  # the LSTM is not trained
    assert figures["tuned_on"] == str(lms / "valid.txt")
    printed = capsys.readouterr().out
    assert (
        f"{weights[1]:.4f} {ngram}: alone word {figures['mixture'][1]['word_ppl']:.2f}" in printed
    )
    assert f"there word {figures['held_out']['word_ppl']:.2f}" in printed
    # on its own text the tuned mixture is at least as good as others
    held_out = (lms / "valid.txt").read_text().splitlines()
    for weight in (0.0, weights[0] / 2, weights[0] + 0.05, 1.0):
        other = mixture_perplexity(held_out, PLAIN, [lstm, ngram], [weight])
        assert figures["held_out"]["word_ppl"] <= other["word_ppl"] + 1e-9


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        (("lstm", "masked"), "--mix 0.5", "masked: gives a pseudo-perplexity"),
        (("lstm", "other"), "--mix 0.5", "other: predicts other tokens than"),
        (("lstm", "other/lm.arpa"), "--mix 0.5", "does not say which tokens it predicts"),
        (("lstm", "ngram"), "", "a mixture; give its weights"),
        (("lstm", "ngram"), "--mix 0.5 0.6", "--mix 0.5 0.6: give a weight from 0 for each of 2"),
        (("lstm", "ngram"), "--mix 1.5", "--mix 1.5: give a weight from 0"),
        (("lstm", "ngram"), "--mix 1 --carry", "--carry: no mixture carries"),
        (("lstm",), "--mix 1", "--mix: weights of several language models"),
        (("lstm",), "--tune-on x", "--tune-on: weights of several language models"),
    ],
)
def test_what_cannot_be_mixed_is_said(lms, capsys, names, more, message):
    call = ["ppl", "--text", str(lms / "test.txt"), "--device", "cpu", *more.split()]
    for path in paths(lms, *names):
        call += ["--lm", path]
    assert main(call) == 1
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1
