import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limited
from hypothesis import strategies as st
from lattices import all_paths, named_sums, random_lattice
from scoring import load_scorer, walk
from toys import WORDS, sentences

from lmtools.base.errors import UserError
from lmtools.lattice.expand import expand
from lmtools.ngram import build
from lmtools.text import Normaliser
from lmtools.text.subword import train

ODD = [
    *["KING", "zzz", "...", "<s>", "</s>", "<unk>", "▁", "of▁the", "kings", "ö", "king-queen"],
    "q\0q",
    "half\udce9",
]
PIECES = ("bare", "word", "bpe", "unigram", "char")
KINDS = dict.fromkeys(PIECES, 3) | {"words alone": 1, "characters alone": 1}  # and their order


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """n-gram models over words and all kinds of pieces, and some that never look back."""
    root = tmp_path_factory.mktemp("ngrams")
    lines = sentences(400, 5)
    (root / "text").write_text("\n".join(lines) + "\n")
    normaliser = Normaliser(case="lower", punctuation="strip")
    sizes = {"bpe": 40, "unigram": 35, "char": None}
    tokens = {
        kind: train(kind, lines, size, normaliser, root / "sw" / kind)
        for kind, size in sizes.items()
    }
    tokens |= {"word": normaliser, "words alone": normaliser, "characters alone": tokens["char"]}
    for kind, tokenise in tokens.items():
        build([root / "text"], KINDS[kind], root / kind, tokenise, kenlm="none")
    return {
        kind: load_scorer(root / kind if kind != "bare" else root / "word" / "lm.arpa")
        for kind in KINDS
    }


@pytest.mark.parametrize("kind", KINDS)
def test_words_in_a_row_score_as_their_sentence(models, kind):
    scorer, draw = models[kind], random.Random(3)
    prefixes = scorer.prefixes()
    for _ in range(60):
        words = draw.choices(WORDS, k=draw.randrange(7)) + draw.choices(ODD, k=draw.randrange(4))
        draw.shuffle(words)
        expected = scorer.model.query(scorer.model.tokens(" ".join(words)))[0].sum()
        assert sum(walk(prefixes, words)) == pytest.approx(expected, abs=1e-9), words


def test_a_word_that_normalises_to_nothing_changes_nothing(models):
    prefixes = models["char"].prefixes()
    _, king = prefixes.words(np.array([prefixes.start]), ["king"])
    for node in (np.array([prefixes.start]), king):
        score, after = prefixes.words(node, ["..."])
        assert score.tolist() == [0.0] and after.tolist() == node.tolist()
    assert prefixes.words(np.zeros(0, dtype=np.int64), [])[0].shape == (0,)


def test_histories_with_one_future_are_one_node(models):
    """A trigram model forgets all but two words, and more where it never saw what follows them."""
    prefixes = models["word"].prefixes()

    def after(text):
        node = np.array([prefixes.start])
        for word in text.split():
            node = prefixes.words(node, [word])[1]
        return node.item()

    assert after("the a king") == after("city of a king") != after("queen king")
    assert after("zzz king") == after("qqq king") == after("king zzz king")
    assert after("zzz") == after("king yyy") != prefixes.start


@limited(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**9))
@pytest.mark.parametrize("kind", ["word", "char"])
def test_a_lattice_is_rescored_as_each_of_its_paths(models, kind, seed):
    scorer = models[kind]
    lattice = random_lattice(seed, words=(*WORDS[:4], "...", "zzz"))
    expanded, messages = expand(lattice, {"ng": scorer.prefixes()}, {"am": 1, "ng": 2})
    assert messages == []
    found = sorted(
        (words, *rounded(named_sums(expanded, arcs, end)))
        for words, arcs, end in all_paths(expanded)
    )
    expected = []
    for words, arcs, end in all_paths(lattice):
        score = scorer.model.score([" ".join(words)])[0][0]
        expected.append((words, *rounded(named_sums(lattice, arcs, end) | {"ng": score})))
    assert found == sorted(expected)


def rounded(sums):
    """The sums in whole millionths, which rounding in the last digits leaves alone."""
    return [round(value * 1e6) for value in sums.values()]


def test_models_of_every_kind_are_opened_or_refused(models, trained):
    for scorer in (models["word"], load_scorer(trained["causal"])):
        assert scorer.by_word is scorer and scorer.prefixes().start == 0
    for model in ("masked", "tta"):
        with pytest.raises(UserError, match="left-to-right"):
            load_scorer(trained[model]).prefixes()
