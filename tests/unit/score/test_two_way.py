"""Scores of two-way models: both directions against the model's own states, batches, perplexity,
N-best lists, lattices.
"""

import json
from shlex import split

import numpy as np
import pytest
import torch
from scoring import ask, load_scorer
from toys import sentences

from lmtools.cli import main
from lmtools.models.checkpoint import load_model, prepare_directory, save_weights
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Settings
from lmtools.score import load, score_texts
from lmtools.score.neural import TwoWayScorer
from lmtools.score.ppl import perplexity
from lmtools.text import Normaliser
from lmtools.text.subword import BOS, EOS, train

ARCH = {
    "piece_dim": 4,
    "filters": [[1, 4], [2, 4]],
    "highway": 1,
    "dim": 8,
    "units": 12,
    "layers": 2,
    "dropout": 0.0,
}
LINES = sentences(60, 3)


@pytest.fixture(scope="module", params=["softmax", "bce-nce"])
def directory(request, tmp_path_factory):
    home = tmp_path_factory.mktemp("two-way")
    train("word", LINES, None, Normaliser(), home / "words", min_count=3)
    vocabulary = train("char", LINES, None, Normaliser(), home / "chars", words=home / "words")
    options = {} if request.param == "softmax" else {"samples": 8}
    settings = Settings("elmo", "two-way", request.param, arch=ARCH, output=options)
    torch.manual_seed(4)
    lm = LanguageModel(settings, vocabulary.size, vocabulary.words.counts, words=vocabulary.words)
    prepare_directory(home / "lm", settings, vocabulary)
    save_weights(home / "lm", lm)
    return home / "lm"


@torch.no_grad()
def plain(directory, text: str) -> tuple[np.ndarray, np.ndarray]:
    """log p of words and EOS from the left, of words and BOS from the right."""
    lm, vocabulary = load_model(directory)
    words = vocabulary.words
    split = words.split(vocabulary.encode(text))
    ids = [words.id_of(word) for word in split]
    states = lm.trunk.hidden(*lm.objective.scoring([vocabulary.encode(text)]).read)[0]
    table = lm.output.distribution(lm.trunk.head(states))  # (2 T, V)
    width = len(ids) + 2
    left = [float(table[i, target]) for i, target in enumerate([*ids, EOS])]
    right = [float(table[width + i + 1, target]) for i, target in enumerate([BOS, *ids])]
    return np.array(left), np.array(right)


def test_a_score_is_the_mean_of_both_directions(directory):
    scorer = load_scorer(str(directory), "cpu")
    assert isinstance(scorer, TwoWayScorer)
    for text in ("the king", "queen", "a city unheard of"):
        left, right = plain(directory, text)
        (values,) = scorer.log_probs(scorer.prepare([text]))
        assert len(values) == len(text.split()) + 1
        np.testing.assert_allclose(values, (left + np.append(right[1:], right[0])) / 2, atol=1e-5)


def test_scores_do_not_depend_on_the_batch(directory):
    options = ask(str(directory), cache="none", device="cpu")
    scorer = load(*options)
    together = score_texts(LINES, scorer, options.computing)
    alone = [score_texts([line], scorer, options.computing).log_prob[0] for line in LINES[:5]]
    np.testing.assert_allclose(together.log_prob[:5], alone, rtol=1e-5)
    assert together.tokens.tolist() == [len(line.split()) + 1 for line in LINES]
    assert together.kind == "two-way perplexity"


def test_perplexity_is_of_words_over_both_directions(directory):
    texts = ["the king went", "a stranger came"]
    figures = perplexity(texts, *ask(str(directory), cache="none", device="cpu"))
    sums = sum(part.sum() for text in texts for part in plain(directory, text))
    assert (
        figures["word_ppl"]
        == figures["subword_ppl"]
        == pytest.approx(np.exp(-sums / (2 * 8)), rel=1e-5)
    )
    assert (figures["words"], figures["tokens"], figures["oov"]) == (6, 8, 1)
    assert "the mean of that from the left" in figures["rules"]


def test_rescores_lists_and_lattices(directory, tmp_path, capsys):
    hyps = [{"text": text, "scores": {"am": -1.0}} for text in ("the king came", "a king")]
    (tmp_path / "lists.jsonl").write_text(
        json.dumps({"utt": "u", "ref": "a king", "hyps": hyps}) + "\n"
    )
    scores = tmp_path / "lists.scores"
    assert (
        main(
            split(
                f"score --lm {directory} --nbest {tmp_path}/lists.jsonl --out {scores} --cache none"
            )
        )
        == 0
    )
    written = [line.split("\t") for line in scores.read_text().splitlines() if line.startswith("u")]
    expected = {
        text: sum(part.sum() for part in plain(directory, text)) / 2
        for text in ("the king came", "a king")
    }
    assert [float(row[1]) for row in written] == pytest.approx(list(expected.values()), rel=1e-5)
    assert [int(row[2]) for row in written] == [4, 3]
    lattice = (
        "VERSION=1.0\nUTTERANCE=u\nN=5 L=5\nI=0 W=!NULL\nI=1 W=the\nI=2 W=a\nI=3 W=king\nI=4"
        " W=!NULL\n"
    )
    lattice += (
        "J=0 S=0 E=1 a=-1\nJ=1 S=0 E=2 a=-9\nJ=2 S=1 E=3 a=-1\nJ=3 S=2 E=3 a=-1\nJ=4 S=3 E=4 a=-1\n"
    )
    (tmp_path / "u.slf").write_text(lattice)
    out = tmp_path / "out.jsonl"
    what = ["--lm", f"new={directory}", "--weights", "am=1,new=1", "--nbest-out", str(out)]
    assert main(["lattice", "rescore", str(tmp_path / "u.slf"), *what]) == 0
    (line,) = out.read_text().splitlines()
    found = {hyp["text"]: hyp["scores"]["new"] for hyp in json.loads(line)["hyps"]}
    expected = {
        text: sum(part.sum() for part in plain(directory, text)) / 2
        for text in ("the king", "a king")
    }
    assert found["the king"] == pytest.approx(expected["the king"], rel=1e-4)  # the best path
