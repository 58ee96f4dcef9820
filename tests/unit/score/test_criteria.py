"""Models of every criterion are scored by the posterior that it stands for, with and without its
normaliser, everywhere alike.
"""

import json
from shlex import split

import numpy as np
import pytest
import torch
from scoring import ask, load_scorer, walk
from toys import OBJECTIVE, save_rough, sentences, settings

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.cli import main
from lmtools.lattice.paths import nbest
from lmtools.models.outputs import CRITERIA
from lmtools.models.outputs.base import in_precision
from lmtools.ngram import build
from lmtools.score import load, score_texts
from lmtools.score.lattices import LatticeOptions
from lmtools.text import Normaliser
from lmtools.text.subword import load_subword
from lmtools.types import Arc, Final, Lattice

OUTPUT = {"adaptive": {"cutoffs": [6, 12], "divide": 2.0}} | {
    name: {"rival": 0.5} for name in ("bce", "mse", "mse-sigmoid")
}
# the last does not fit the positions
TEXTS = [*sentences(5, 5), "", "xylophone king", " ".join(sentences(6, 6))]


def output(criterion: str) -> dict:
    """Options that differ from the defaults, for a vocabulary of two dozen ids."""
    sampled = {} if criterion == "softmax" else {"samples": 6, "noise": "unigram"}
    return OUTPUT.get(criterion, sampled)


@pytest.fixture(scope="module")
def made(tiny, tmp_path_factory):
    """A function: a directory with random weights, by family and criterion."""
    home, subword = tmp_path_factory.mktemp("criteria"), load_subword(tiny / "sw")

    def make(model: str, criterion: str) -> str:
        how = settings(model, criterion=criterion, output=output(criterion))
        return save_rough(home / f"{model}-{criterion}", how, subword)

    return make


@pytest.fixture(params=CRITERIA)
def criterion(request):
    return request.param


def scored(lm: str, **how):
    options = ask(lm, device="cpu", cache="none", **how)
    return score_texts(TEXTS, load(*options), options.computing)


def by_hand(scorer, sentence, normalise: str) -> np.ndarray:
    """Scores of a sentence's tokens out of the output layer's answer for every id."""
    examples = scorer.lm.objective.scoring([sentence])
    with torch.inference_mode():
        heads = scorer.lm.trunk.head(scorer.lm.predicting_states(examples, scorer.masked))
        scores = scorer.lm.output.distribution(heads)[torch.arange(len(heads)), examples.targets]
        if normalise == "none":
            scores = scores + scorer.lm.output.log_normaliser(heads)
        return scores.double().numpy()


@pytest.mark.parametrize("normalise", ["full", "none"])
def test_scores_are_those_of_the_output_layer(made, criterion, normalise):
    for model in OBJECTIVE if criterion in ("softmax", "bce-nce") else ("causal", "tta"):
        scorer = load_scorer(made(model, criterion), "cpu", normalise=normalise)
        some = [s for s in scorer.prepare(TEXTS) if len(s) <= scorer.lm.longest]
        for sentence, values in zip(some, scorer.log_probs(some), strict=True):
            due = by_hand(scorer, sentence, normalise)
            np.testing.assert_allclose(values, due, rtol=0, atol=2e-4)
        assert scorer.signature.get("normalise") == (None if normalise == "full" else "none")


def test_only_the_normaliser_is_between_both(made, criterion):
    lm = made("causal", criterion)
    scorer = load_scorer(lm, "cpu")
    log_z = scorer.compute(scorer.prepare(TEXTS), lambda x, _: scorer.output.log_normaliser(x))
    full, none = scored(lm), scored(lm, normalise="none")
    between = [values.sum() for values in log_z]
    np.testing.assert_allclose(none.log_prob - full.log_prob, between, rtol=1e-5, atol=1e-3)
    assert np.allclose(none.log_prob, full.log_prob) == (criterion == "adaptive")


@pytest.mark.parametrize(
    ("normalise", "precision"), [("full", "float32"), ("none", "float32"), ("full", "bfloat16")]
)
def test_word_by_word_and_in_sentences(made, criterion, normalise, precision, monkeypatch):
    scorer = load_scorer(made("lstm", criterion), "cpu", precision, normalise=normalise)
    if normalise == "none":
        monkeypatch.setattr(
            scorer.output, "log_normaliser", lambda heads: pytest.fail("a pass over the vocabulary")
        )
    exact = [values.sum() for values in scorer.log_probs(scorer.prepare(TEXTS))]
    prefixes = scorer.prefixes()
    total = [sum(walk(prefixes, text.split())) for text in TEXTS]
    coarse = (
        {"rtol": 0.05, "atol": 0.5} if precision == "bfloat16" else {"rtol": 1e-5, "atol": 1e-3}
    )
    np.testing.assert_allclose(total, exact, **coarse)


def test_matrices_are_converted_once_and_nothing_else(made, criterion):
    output = load_scorer(made("causal", criterion), "cpu").output
    assert in_precision(output, torch.float32) is output
    before = {name: tensor.clone() for name, tensor in output.state_dict().items()}
    half = in_precision(output, torch.bfloat16)
    for name, tensor in half.state_dict().items():
        assert tensor.dtype == (torch.bfloat16 if tensor.dim() == 2 else before[name].dtype), name
    assert all(torch.equal(tensor, before[name]) for name, tensor in output.state_dict().items())
    heads = torch.randn(7, 16, generator=torch.Generator().manual_seed(1)).bfloat16()
    targets = torch.arange(1, 8) * 3 % 20
    targets[targets == 4] = 5
    for what in ("log_prob", "unnormalised"):
        found, due = (getattr(layer, what)(heads, targets) for layer in (half, output))
        assert torch.equal(found, due)
    assert torch.equal(half.log_normaliser(heads), output.log_normaliser(heads))


@pytest.fixture(scope="module")
def ngram(tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("ngram") / "lm"
    build([tiny / "train.txt"], 2, out, Normaliser(), kenlm="none")
    return str(out)


def test_models_without_such_a_score_are_refused(made, ngram, tmp_path):
    with pytest.raises(UserError, match="an n-gram model has no score without normalisation"):
        load(*ask(ngram, normalise="none"))
    with pytest.raises(UserError, match="a Hugging Face model has no score without normalisation"):
        load(*ask(f"hf:{tmp_path}", normalise="none"))
    with pytest.raises(UserError, match=r"'normalise' is 'half', not one of full, none"):
        ask(made("causal", "softmax"), normalise="half")


def linear(words) -> Lattice:
    arcs = [Arc(i, i + 1, word, {"graph": 0.0}) for i, word in enumerate(words)]
    return Lattice.of("u", len(words) + 1, 0, arcs, [Final(len(words), {"graph": 0.0})])


def test_lattices_are_rescored_without_the_normalisers_of_neural_models(made, ngram):
    """Left to right, on both sides, beside an n-gram; the old model stays normalised."""
    lms = {"lstm": made("lstm", "bce-nce"), "tta": made("tta", "ce-mcs"), "ngram": ngram}
    weights = {"graph": 1.0, "lm": 1.0} | dict.fromkeys(lms, 1.0)
    specs = {
        name: LMSpec(lm, normalise="full" if name == "ngram" else "none")
        for name, lm in lms.items()
    }
    chosen = LatticeOptions(specs, weights, old=LMSpec(lms["lstm"]), computing=Computing("cpu"))
    done, _ = chosen.load().rescore(linear(["the", "king", "came"]))
    (path,) = nbest(done, weights, 1)
    arcs = list(path.arcs)
    for name in (*lms, "lm"):
        normalise = "none" if name in ("lstm", "tta") else "full"
        scorer = load_scorer(lms.get(name, lms["lstm"]), "cpu", normalise=normalise)
        (expected,) = scorer.log_probs(scorer.prepare(["the king came"]))
        found = [*done.scores[name][arcs], done.final_scores[name][path.final]]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3, err_msg=name)


@pytest.mark.parametrize("cached", [False, True])
def test_perplexity_tells_the_spread_of_the_normalisers(made, tmp_path, capsys, cached):
    lm, texts = made("causal", "ce-mcs"), [text for text in TEXTS if text] + ["the king"] * 5
    (tmp_path / "t").write_text("\n".join(texts) + "\n")
    arguments = split(f"--lm {lm} --text {tmp_path}/t --out {tmp_path}/o --device cpu --rows 60")
    arguments += ["--cache", str(tmp_path / "cache") if cached else "none"]
    for _ in range(1 + cached):  # the second time the scores are known and only log Z is computed
        assert main(["ppl", *arguments]) == 0
    figures = json.loads((tmp_path / "o").read_text())
    scorer, values = load_scorer(lm, "cpu"), []
    for sentence in scorer.prepare(texts):
        plain, none = (by_hand_long(scorer, sentence, normalise) for normalise in ("full", "none"))
        values += (none - plain).tolist()
    measures = {"mean": np.mean, "sd": np.std, "min": min, "max": max}
    expected = {name: measure(values) for name, measure in measures.items()}
    told = figures["log_normaliser"]
    assert told == pytest.approx(expected, abs=1e-3) and figures["criterion"] == "ce-mcs"
    assert expected["sd"] > 0.01 and len(values) == figures["tokens"]
    assert f"log Z of ce-mcs: mean {told['mean']:.3f}, sd" in capsys.readouterr().out


def by_hand_long(scorer, sentence, normalise: str) -> np.ndarray:
    """`by_hand`, of the scorer's own windows where a sentence does not fit."""
    if len(sentence) <= scorer.lm.longest:
        return by_hand(scorer, sentence, normalise)
    what = scorer.output.log_prob if normalise == "full" else scorer.output.unnormalised
    return scorer.compute([sentence], what)[0]


def test_perplexity_of_what_has_no_normaliser(made, ngram, tmp_path, capsys):
    (tmp_path / "t").write_text("the king came\n")
    for lm, spread in ((ngram, None), (made("causal", "softmax"), "softmax")):
        ppl = f"ppl --lm {lm} --text {tmp_path}/t --out {tmp_path}/o --cache none"
        assert main(split(ppl)) == 0
        figures = json.loads((tmp_path / "o").read_text())
        assert ("log_normaliser" in figures) == (spread is not None)
        assert figures.get("criterion") == spread
    assert "log Z" not in capsys.readouterr().out
    assert main(["ppl", "--lm", f"{ngram},normalise=none", "--text", str(tmp_path / "t")]) == 1
    assert "perplexity is of probabilities; leave normalise out" in capsys.readouterr().err
