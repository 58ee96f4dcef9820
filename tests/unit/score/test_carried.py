"""Perplexity of consecutive text with the state carried: against one long pass by hand, piece
sizes, refusal.
"""

from shlex import split

import numpy as np
import pytest
import torch
from scoring import ask
from toys import sentences, settings

from lmtools.cli import main
from lmtools.models.checkpoint import load_model, prepare_directory, save_weights
from lmtools.models.lm import LanguageModel
from lmtools.score import carried, load
from lmtools.score.ppl import perplexity
from lmtools.text import Normaliser
from lmtools.text.subword import BOS, EOS, train

LINES = sentences(30, 7)


@pytest.fixture(scope="module", params=[0, 8])
def directory(request, tmp_path_factory):
    home = tmp_path_factory.mktemp("carried")
    vocabulary = train("word", LINES[:20], None, Normaliser(), home / "words", min_count=2)
    how = settings("lstm", arch={"layers": 2, "dim": 8, "units": 12, "projection": request.param})
    torch.manual_seed(6)
    lm = LanguageModel(how, vocabulary.size)
    prepare_directory(home / "lm", how, vocabulary)
    save_weights(home / "lm", lm)
    return home / "lm"


@torch.no_grad()
def by_hand(directory) -> np.ndarray:
    """log p of each line, of one pass over all lines in a row."""
    lm, vocabulary = load_model(directory)
    coded = [vocabulary.encode(line) for line in LINES]
    read = torch.tensor([token for ids in coded for token in (BOS, *ids)])
    gold = torch.tensor([token for ids in coded for token in (*ids, EOS)])
    scores = lm.output.log_prob(
        lm.trunk.head(lm.trunk.hidden(read[None], torch.tensor([len(read)]))[0]), gold
    )
    return np.array([part.sum().item() for part in scores.split([len(ids) + 1 for ids in coded])])


@pytest.mark.parametrize("positions", [4096, 7])
def test_carried_scores_are_those_of_one_pass(directory, monkeypatch, positions):
    monkeypatch.setattr(carried, "POSITIONS", positions)
    scorer = load(*ask(str(directory), device="cpu"))
    found = carried.carried_texts(LINES, scorer)
    np.testing.assert_allclose(found.log_prob, by_hand(directory), rtol=1e-5)
    assert found.tokens.tolist() == [len(line.split()) + 1 for line in LINES]


def test_perplexity_says_that_the_state_was_carried(directory):
    options = ask(str(directory), device="cpu", cache="none")
    figures, plain = perplexity(LINES, *options, carry=True), perplexity(LINES, *options)
    count = sum(len(line.split()) + 1 for line in LINES)
    assert figures["word_ppl"] == pytest.approx(np.exp(-by_hand(directory).sum() / count), rel=1e-5)
    assert "the state that the lines before it left" in figures["rules"]
    assert "lines before" not in plain["rules"]
    assert figures["word_ppl"] != plain["word_ppl"] and figures["oov"] == plain["oov"]
    dear = ask(str(directory), device="cpu", cache="none", oov_penalty=2.0)
    less = figures["log_prob"] - perplexity(LINES, *dear, carry=True)["log_prob"]
    assert less == pytest.approx(2.0 * figures["oov"]) and figures["oov"]


def test_a_model_without_state_is_refused(tmp_path, capsys):
    (tmp_path / "text").write_text("\n".join(LINES) + "\n")
    ngram = f"ngram --text {tmp_path}/text --order 2 --out {tmp_path}/lm --kenlm none"
    assert main(split(ngram)) == 0
    assert main(split(f"ppl --lm {tmp_path}/lm --text {tmp_path}/text --carry")) == 1
    assert "has no state to carry from line to line" in capsys.readouterr().err
