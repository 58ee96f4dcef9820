"""Perplexity of linear interpolations: against probabilities added by hand, single models, and the
known optimum of the weights.
"""

import json

import numpy as np
import pytest
import torch
from scoring import ask, walk
from toys import sentences, settings

import lmtools
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.cli import main
from lmtools.models.checkpoint import prepare_directory, save_weights
from lmtools.models.lm import LanguageModel
from lmtools.ngram import NgramModel, build
from lmtools.ngram.derived import mix
from lmtools.ngram.interpolation import tune_mixture
from lmtools.score import load, score_texts
from lmtools.score.mixture import MixtureScorer
from lmtools.score.ppl import mixture_perplexity, perplexity
from lmtools.text import Normaliser
from lmtools.text.subword import load_subword, train

TEXTS = [*sentences(20, 8), "the king zebra came", "the king"]  # a word that is unknown to both
PLAIN = ask("", device="cpu", cache="none")


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
    build([home / "train.txt"], 2, home / "ngram", closed, kenlm="none", closed=True)
    build([home / "valid.txt"], 2, home / "other", train_fewer(home), kenlm="none")
    return home


def train_fewer(home):
    """A vocabulary of some words of the text."""
    return train("word", sentences(60, 3), 12, Normaliser(), home / "fewer")


def paths(lms, *names):
    return [str(lms / name) for name in names]


def by_hand(path: str) -> np.ndarray:
    """The probability of every token and end of TEXTS under one model."""
    scorer = load(*ask(path, device="cpu"))
    return np.exp(np.concatenate([scorer.log_probs([one])[0] for one in scorer.prepare(TEXTS)]))


def test_probabilities_are_added_token_by_token(lms):
    pair = paths(lms, "lstm", "ngram")
    figures = mixture_perplexity(TEXTS, list(map(LMSpec, pair)), PLAIN.computing, [0.3])
    mixed = 0.3 * by_hand(pair[0]) + 0.7 * by_hand(pair[1])
    count = sum(len(line.split()) + 1 for line in TEXTS)
    assert len(mixed) == count == figures["tokens"]
    assert figures["word_ppl"] == pytest.approx(np.exp(-np.log(mixed).sum() / count), rel=1e-6)
    assert [part["weight"] for part in figures["mixture"]] == pytest.approx([0.3, 0.7])
    assert figures["oov"] == 1 and "0.3*" in figures["signature"]["model"]
    penalised = [LMSpec(lm, oov_penalty=2.0) for lm in pair]
    less = mixture_perplexity(TEXTS, penalised, PLAIN.computing, [0.3])
    assert less["log_prob"] == pytest.approx(figures["log_prob"] - 2.0)


@pytest.mark.parametrize(("place", "weights"), [(0, [1.0, 0.0]), (1, [0.0])])
def test_all_the_weight_is_the_single_model_to_the_digit(lms, place, weights):
    pair = paths(lms, "lstm", "ngram")
    figures = mixture_perplexity(TEXTS, list(map(LMSpec, pair)), PLAIN.computing, weights)
    alone = perplexity(TEXTS, *ask(pair[place], device="cpu", cache="none"))
    same = ("log_prob", "word_ppl", "subword_ppl", "tokens", "words", "oov", "bits_per_char")
    assert [figures[name] for name in same] == [alone[name] for name in same]
    part = figures["mixture"][place]
    assert part["word_ppl"] == alone["word_ppl"] and part["signature"] == alone["signature"]


def test_tuned_weights_are_the_known_optimum():
    """Two symbols: a share x of the first is most probable where it has x."""
    first, second, share = 0.9, 0.2, 0.41
    seen = np.arange(1000) < 1000 * share
    logs = np.log([np.where(seen, one, 1 - one) for one in (first, second)])
    expected = (share - second) / (first - second)
    np.testing.assert_allclose(tune_mixture(logs), [expected, 1 - expected], atol=1e-5)


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
        other = mixture_perplexity(
            held_out, [LMSpec(lstm), LMSpec(ngram)], PLAIN.computing, [weight]
        )
        assert figures["held_out"]["word_ppl"] <= other["word_ppl"] + 1e-9


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        (("lstm", "masked"), "--mix 0.5", "masked: gives a pseudo-perplexity"),
        (("lstm", "ngram"), "", "a mixture; give its weights"),
        (("lstm", "ngram"), "--mix 0.5 0.6", "--mix 0.5 0.6: give a weight from 0 for each of 2"),
        (("lstm", "ngram"), "--mix 1.5", "--mix 1.5: give a weight from 0"),
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


def load_mixture(*parts, **how) -> MixtureScorer:
    given = ",".join(f"{path}={weight}" for path, weight in parts)
    return load(*ask(f"mix:{given}", device="cpu", cache="none", **how))


def test_a_named_mixture_scores_as_ppl_and_its_signature_says_all(lms, tmp_path):
    pair = paths(lms, "lstm", "ngram")
    options = ask("mix:{}=0.3,{}=0.7".format(*pair), device="cpu", cache=str(tmp_path))
    scorer = load(*options)
    given = mixture_perplexity(TEXTS, list(map(LMSpec, pair)), PLAIN.computing, [0.3])
    scores = score_texts(TEXTS, scorer, options.computing)
    assert scorer.by_token and scores.log_prob.sum() == pytest.approx(given["log_prob"], abs=1e-9)
    assert scores.tokens.sum() == given["tokens"] and scores.unknown.sum() == given["oov"]
    models = [load(*ask(path, device="cpu")).signature["model"] for path in pair]
    assert scores.signature["model"] == f"0.3*{models[0]}+0.7*{models[1]}"
    assert scores.signature["mixed"] == "by token" and scores.signature["precision"] == "float32"
    # other weights are not found in the cache of these
    other = load("mix:{}=0.3000001,{}=0.6999999".format(*pair), options.computing)
    assert (score_texts(TEXTS, other, options.computing).log_prob != scores.log_prob).any()
    again = score_texts(TEXTS, scorer, options.computing)
    assert (again.log_prob == scores.log_prob).all()
    figures = perplexity(TEXTS, *options)
    assert figures["word_ppl"] == pytest.approx(given["word_ppl"])
    assert "token by token" in figures["rules"]


def test_other_vocabularies_are_mixed_sentence_by_sentence(lms):
    options = ask("", device="cpu", cache="none")
    names = [*paths(lms, "lstm", "other/lm.arpa")]
    alone = [score_texts(TEXTS, load(lm, options.computing), options.computing) for lm in names]
    scorer = load_mixture((names[0], 0.25), (names[1], 0.75))
    mixed = score_texts(TEXTS, scorer, options.computing)
    expected = np.log(
        sum(w * np.exp(one.log_prob) for w, one in zip((0.25, 0.75), alone, strict=True))
    )
    np.testing.assert_allclose(mixed.log_prob, expected, rtol=1e-12)
    assert mixed.tokens.tolist() == alone[0].tokens.tolist()
    assert scorer.signature["mixed"] == "by sentence"
    penalised = load_mixture((names[0], 0.25), (names[1], 0.75), oov_penalty=3.0)
    less = score_texts(TEXTS, penalised, options.computing).log_prob
    assert less[-2] < mixed.log_prob[-2] and less[-1] == mixed.log_prob[-1]
    figures = mixture_perplexity(TEXTS, list(map(LMSpec, names)), PLAIN.computing, held_out=TEXTS)
    assert "sentence by sentence" in figures["rules"]
    for weight in (0.0, 0.5, 1.0):
        other = mixture_perplexity(TEXTS, list(map(LMSpec, names)), PLAIN.computing, [weight])
        assert figures["word_ppl"] <= other["word_ppl"] + 1e-6
    with pytest.raises(UserError, match="mixed by sentence, so that no token"):
        lmtools.load("mix:{}=0.25,{}".format(*names), device="cpu").token_scores(TEXTS)


def test_ngrams_of_words_are_mixed_word_by_word_whatever_they_have_seen(lms, tmp_path):
    for name, seed in (("a", 1), ("b", 2)):
        (tmp_path / name).write_text("".join(f"{line} {name}\n" for line in sentences(30, seed)))
        build([tmp_path / name], 2, tmp_path / f"lm-{name}", Normaliser(), kenlm="none")
    scorer = load_mixture((tmp_path / "lm-a", 0.5), (tmp_path / "lm-b/lm.arpa", 0.5))
    assert scorer.by_token
    parts = [NgramModel.load(tmp_path / name) for name in ("lm-a", "lm-b")]
    expected = np.log(np.mean([np.exp(one.conditional("the king a")[0]) for one in parts], axis=0))
    found = scorer.log_probs(scorer.prepare(["the king a"]))[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


UNLIKE = {"a": "the king saw the sea\nthe sea was cold\n", "b": "a queen saw the moon\nthe moon\n",
          "c": "rain fell\nthe rain was cold\n"}  # fmt: skip
SEEN = "the king saw a queen\nthe rain fell\nzzz was the moon\n"


def build_unlike(home, order):
    for name, text in UNLIKE.items():
        (home / name).write_text(text)
        build([home / name], order, home / f"lm-{name}", Normaliser(), kenlm="none")
    (home / "v").write_text(SEEN)
    return [home / f"lm-{name}" for name in UNLIKE]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("places", [(0, 1), (1, 0), (0, 1, 2), (2, 0, 1)])
def test_unlike_vocabularies_are_one(tmp_path, order, places):
    lms = [build_unlike(tmp_path, order)[place] for place in places]
    weights = [0.5, 0.3, 0.2] if len(lms) == 3 else [0.6, 0.4]
    scorer = load_mixture(*zip(lms, weights, strict=True))
    vocabulary = [*{word for place in places for word in [*UNLIKE.values()][place].split()}, "zzz"]
    for history in ("", "the", "zzz", "rain the", "a queen"):
        texts = [f"{history} {word}" for word in vocabulary]
        at = len(history.split())
        rows = scorer.log_probs(scorer.prepare([*texts, history]))
        assert sum(np.exp(row[at]) for row in rows) == pytest.approx(1, abs=1e-6)
    text = "the queen saw rain zzz"
    assert sum(walk(scorer.prefixes(), text.split())) == pytest.approx(
        scorer.log_probs(scorer.prepare([text]))[0].sum(), abs=1e-6
    )
    unknown = scorer.unknown(scorer.prepare([text])[0])
    assert unknown.tolist() == [False, 1 not in places, False, 2 not in places, True]
    # ngram mix writes the same probabilities, but for n-grams that no model has
    _, found = mix(lms, tmp_path / "m", texts=[tmp_path / "v"], kenlm="none")
    texts, specs = SEEN.splitlines(), [LMSpec(str(lm)) for lm in lms]
    figures = mixture_perplexity(texts, specs, PLAIN.computing, held_out=texts)
    given = [part["weight"] for part in figures["mixture"]]
    assert given == pytest.approx(found.tolist(), abs=1e-6)
    alone = perplexity(texts, *ask(str(tmp_path / "m"), device="cpu", cache="none"))
    assert figures["oov"] == alone["oov"]
    assert figures["word_ppl"] == pytest.approx(alone["word_ppl"], rel=1e-6 if order == 1 else 0.1)


def test_a_sentence_that_one_model_lacks_is_the_others(tmp_path):
    lm, _, _ = build_unlike(tmp_path, 2)
    text = Normaliser(case="upper")
    build([tmp_path / "b"], 2, tmp_path / "upper", text, kenlm="none")
    scorer = load_mixture((lm, 0.25), (tmp_path / "upper", 0.75))
    assert not scorer.by_token
    queen, both, none = scorer.prepare(["the moon", "the", "zzz"])
    (_, b), (c, d), (e, f) = (logs[:, 0] for logs in scorer.joint_log_probs([queen, both, none]))
    expected = [np.log(0.75) + b] + [
        np.logaddexp(np.log(0.25) + one, np.log(0.75) + two) for one, two in ((c, d), (e, f))
    ]
    found = [row[0] for row in scorer.log_probs([queen, both, none])]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_mixture_in_a_lattice_is_that_of_its_words(lms):
    """Words that are one token each: a mixture of words is one of tokens."""
    scorer = load_mixture((lms / "lstm", 0.3), (lms / "ngram", 0.7), oov_penalty=1.5)
    for text in TEXTS[-4:]:
        total = sum(walk(scorer.prefixes(), text.split()))
        assert total == pytest.approx(scorer.log_probs(scorer.prepare([text]))[0].sum(), abs=1e-4)


@pytest.mark.parametrize(
    ("spec", "more", "message"),
    [
        ("mix:{lstm}=1", {}, "one model is no mixture"),
        ("mix:{lstm}=x,{ngram}", {}, "'x' is no weight"),
        ("mix:{lstm},{ngram}=0.5", {}, "is no model with its weight"),
        ("mix:{lstm}=0.5,{ngram}=0.6", {}, "give a weight from 0 for each of 2 models"),
        ("mix:{lstm}=0.5,{masked}", {}, "masked: gives a pseudo-perplexity"),
        ("mix:{lstm}=0.5,{ngram}", {"normalise": "none"}, "leave normalise=none out"),
    ],
)
def test_a_mixture_that_cannot_be_is_said(lms, spec, more, message):
    lm = spec.format(**{name: lms / name for name in ("lstm", "ngram", "masked")})
    with pytest.raises(UserError, match=message):
        load(*ask(lm, device="cpu", **more))
