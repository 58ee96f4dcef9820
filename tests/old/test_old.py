"""What older versions wrote is read by this one: models, corpora, scores, weights, lists.

tests/old/make.sh wrote each directory with that version itself.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

import lmtools
from lmtools.cli import main
from lmtools.formats import kaldi_text, scores
from lmtools.text.corpus import Corpus
from lmtools.text.subword import load_subword

HOME = Path(__file__).parent
VERSIONS = ("0.4.0", "0.5.0", "0.7.0", "1.0.0")
MODELS = ("ngram", "causal", "masked", "tta", "lstm")
versions = pytest.mark.parametrize("version", VERSIONS)


@versions
@pytest.mark.parametrize("model", MODELS)
def test_a_model_scores_as_it_did(version, model):
    lists = lmtools.read(HOME / version / "test.jsonl")
    table = lmtools.load(HOME / version / "lm" / model).score_lists(lists)
    before = scores.read(HOME / version / f"{model}.test.scores")
    assert before.log_prob.keys() == table.log_prob.keys() == {nbest.utt for nbest in lists}
    for utt, values in before.log_prob.items():
        np.testing.assert_allclose(table.log_prob[utt], values, atol=2e-4)
        np.testing.assert_array_equal(table.tokens[utt], before.tokens[utt])


@versions
def test_weights_choose_as_they_did(version):
    home = HOME / version
    lists = lmtools.read(home / "test.jsonl")
    columns = {name: home / f"{name}.test.scores" for name in MODELS}
    chosen = lmtools.rescore(lists, lmtools.Weights.load(home / "weights.json"), columns)
    before = kaldi_text.read(home / "test.txt")
    assert {nbest.utt: nbest.hyps[0].text for nbest in chosen} == before


@versions
def test_scores_are_tuned(version):
    home = HOME / version
    columns = {name: home / f"{name}.dev.scores" for name in MODELS}
    weights = lmtools.tune(lmtools.read(home / "dev.jsonl"), columns)
    assert {*MODELS, "am"} <= {*weights.features}


@versions
def test_a_corpus_is_trained_on(version, tmp_path):
    home = HOME / version
    corpus = Corpus.open(home / "text.bin")
    subword = load_subword(home / "bpe")
    assert len(corpus) == 80
    assert subword.decode(list(corpus[0])) == "the cat sat on the mat"
    conf = tmp_path / "conf.yaml"
    arch = "arch: {layers: 1, dim: 8, units: 8}"
    conf.write_text(f"model: lstm\nobjective: causal\n{arch}\nepochs: 1\n")
    data = f"--train {home}/text.bin --valid {home}/text.bin"
    assert main(f"train --conf {conf} {data} --out {tmp_path}/lm".split()) == 0


@versions
def test_a_training_goes_on_from_its_weights(version, tmp_path):
    """As `--init`, which reads settings and weights of the old directory."""
    shutil.copytree(HOME / version / "lm/tta", tmp_path / "tta")
    conf = tmp_path / "conf.yaml"
    arch = "arch: {layers: 1, dim: 8, heads: 2, ffn: 16, positions: 32}"
    conf.write_text(f"model: tta\nobjective: autoencoding\n{arch}\nepochs: 1\n")
    data = f"--train {HOME / version}/text.bin --valid {HOME / version}/text.bin"
    command = f"train --conf {conf} {data} --init {tmp_path}/tta --out {tmp_path}/lm"
    assert main(command.split()) == 0
