"""KenLM's Python module, which PyPI has as ufal-kenlm and as kenlm."""

from types import SimpleNamespace

import kenlm
import numpy as np
import pytest
from scoring import load_scorer

from lmtools.base.errors import UserError
from lmtools.ngram import NgramModel, kenlm_files
from lmtools.ngram import model as module
from lmtools.score import ngram

# what both packages have, read off kenlm 0.3.0 and ufal-kenlm 26.4.1
MODULE = {"ARPALoadComplain", "Config", "LoadMethod", "Model", "State"}
MODEL = {"BaseFullScore", "BaseScore", "BeginSentenceWrite", "NullContextWrite"}
MODEL |= {"full_scores", "order", "path", "perplexity", "score"}


class Shared:
    """A model that has nothing but what both packages' have."""

    def __init__(self, path, config):
        self.model = kenlm.Model(path, config)

    def __contains__(self, word):
        return word in self.model

    def __getattr__(self, name):
        if name not in MODEL:
            raise AttributeError(name)
        return getattr(self.model, name)


def score(directory) -> list[float]:
    """log p of whole sentences, and of one word by word."""
    scorer = load_scorer(str(directory), "cpu")
    grown = scorer.prefixes()
    (first,), nodes = grown.words(np.array([grown.start]), ["w0"])
    (second,), nodes = grown.words(nodes, ["zzz"])
    by_word = float(first + second + grown.end(nodes)[0])
    whole = scorer.model.score(["w0 zzz", "w1\vw2"])[0].tolist()
    assert by_word == pytest.approx(whole[0])
    return [*whole, by_word]


def test_what_both_packages_have_is_enough(directory, monkeypatch):
    expected = score(directory)
    both = SimpleNamespace(**{name: getattr(kenlm, name) for name in MODULE})
    both.Model = Shared
    for user in (module, kenlm_files, ngram):
        monkeypatch.setattr(user, "kenlm", both)
    assert score(directory) == expected


def test_without_either_the_remedy_is_told(directory, monkeypatch):
    monkeypatch.setattr(kenlm_files, "kenlm", None)
    with pytest.raises(UserError, match=r"need KenLM's Python module; pip install -e .*\[ngram"):
        NgramModel.load(directory)
