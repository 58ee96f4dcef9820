"""Prefix by prefix, word by word, a left-to-right model says what it says of whole sentences."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scoring import load_scorer
from toys import WORDS, sentences

from lmtools.base.errors import UserError
from lmtools.models import memory
from lmtools.score.base import WordTokens
from lmtools.text import NORMALISERS
from lmtools.text.subword import BOS, SUBWORDS, train

LEFT_TO_RIGHT = ("causal", "lstm")


@pytest.fixture(params=LEFT_TO_RIGHT)
def lm(request, trained):
    return load_scorer(trained[request.param])


@pytest.fixture(params=LEFT_TO_RIGHT)
def spelling(request, trained):
    """Words of two or three tokens, the first word otherwise than later ones."""
    lm = load_scorer(trained[request.param])
    ids = {
        word: tuple(lm.subword.encode(" ".join(sentences(1, i, 3)))) for i, word in enumerate(WORDS)
    }
    learn = lm.words.learn
    lm.words.learn = lambda words: (
        learn([]) or lm.words.known.update({w: (ids[w][:2], (*ids[w], 9)) for w in words})
    )
    lm.spelt = lambda line: tuple(
        i for at, w in enumerate(line) for i in lm.words.tokens(w, at == 0)
    )
    return lm


def walked(prefixes, lines):
    """Sums of log p over all lines at once, word by word; nodes before each end."""
    nodes, total = np.full(len(lines), prefixes.start), np.zeros(len(lines))
    for place in range(max(map(len, lines))):
        some = [i for i, line in enumerate(lines) if place < len(line)]
        log_p, nodes[some] = prefixes.words(nodes[some], [lines[i][place] for i in some])
        total[some] += log_p
    return total + prefixes.end(nodes), nodes


def test_sums_equal_the_scores_of_sentences(lm):
    lines = [line.split() for line in [*sentences(40, 5), "xylophone king", "king"]]
    exact = [
        scores.sum() for scores in lm.log_probs(lm.prepare([" ".join(line) for line in lines]))
    ]
    total, _ = walked(lm.prefixes(), lines)
    np.testing.assert_allclose(total, exact, rtol=0, atol=1e-4)


def test_each_word_of_several_tokens_has_their_sum(spelling):
    lines = [line.split()[:4] for line in sentences(30, 8)]
    prefixes = spelling.prefixes()
    total, nodes = walked(prefixes, lines)
    spelt = [spelling.spelt(line) for line in lines]
    assert len({len(s) for s in spelt}) > 4
    np.testing.assert_allclose(
        total, [scores.sum() for scores in spelling.log_probs(spelt)], rtol=0, atol=1e-4
    )
    assert [nodes[spelt.index(s)] for s in spelt] == nodes.tolist(), "equal prefixes are one node"
    assert len(set(nodes.tolist())) == len(set(spelt))


@pytest.mark.parametrize("together", [1, 3, 128])
def test_batch_and_order_of_the_questions_change_nothing(lm, together, monkeypatch):
    monkeypatch.setattr(memory, "TOGETHER", together)
    lines = [line.split() for line in sentences(12, 3)]
    expected, _ = walked(lm.prefixes(), lines)
    alone, rng = lm.prefixes(), random.Random(together)
    order = rng.sample(range(12), 12)
    for i in order:
        assert walked(alone, [lines[i]])[0] == pytest.approx(expected[i], abs=1e-4)
    np.testing.assert_allclose(walked(alone, lines)[0], expected, rtol=0, atol=1e-4)


def test_a_state_is_computed_once_and_only_when_extended(lm, monkeypatch):
    grown, prefixes = [], lm.prefixes()
    grow = prefixes.tree.memory.grow
    monkeypatch.setattr(
        prefixes.tree.memory,
        "grow",
        lambda parents, tokens: grown.append(len(tokens)) or grow(parents, tokens),
    )
    _, nodes = prefixes.words(np.zeros(3, dtype=np.int64), ["king", "queen", "king"])
    assert grown == [1] and nodes[0] == nodes[2] != nodes[1]
    _, longer = prefixes.words(nodes[[0, 1, 2, 1]], ["the", "the", "the", "of"])
    assert grown == [1, 2] and longer[0] == longer[2] != longer[1]
    prefixes.end(nodes)
    assert grown == [1, 2]
    prefixes.end(longer)
    assert grown == [1, 2, 3]


def test_a_word_that_normalises_to_nothing_changes_nothing(lm):
    prefixes = lm.prefixes()
    _, node = prefixes.words(np.array([0]), ["king"])
    log_p, nodes = prefixes.words(np.array([0, node[0], 0]), ["", " ", "queen"])
    assert log_p[:2].tolist() == [0, 0] and log_p[2] < 0 and nodes[:2].tolist() == [0, node[0]]
    log_p, nodes = prefixes.words(np.array([], dtype=np.int64), [])
    assert log_p.shape == nodes.shape == prefixes.end(nodes).shape == (0,)


def test_a_prefix_that_fills_the_positions_forgets_its_oldest_half(trained):
    """By hand: 15 tokens fit; the 16th comes after the last 8 alone."""
    lm = load_scorer(trained["causal"])
    assert lm.longest == 15
    line = " ".join(sentences(20, 4)).split()[:40]
    prefixes = lm.prefixes()
    node = np.array([0])
    scores = []
    for word in line:
        log_p, node = prefixes.words(node, [word])
        scores.append(log_p[0])
    (ids,) = lm.prepare([" ".join(line)])
    assert len(ids) == 40
    begin, expected = 0, []
    for place in range(40):
        if place - begin > 15:
            begin += 7  # token 15 was the last predicted from the full window; 8 of its tokens stay
        whole = torch.tensor([[BOS, *ids[begin:place]]])
        with torch.inference_mode():
            state = lm.lm.trunk.head(
                lm.lm.trunk.hidden(whole, torch.tensor([whole.shape[1]]))[:, -1]
            )
            expected.append(float(lm.lm.output.log_prob(state, torch.tensor([ids[place]]))))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-4)
    assert begin == 28


def test_a_damaged_model_is_refused(lm):
    lm.output.bias.data[7] = np.nan
    with pytest.raises(UserError, match="damaged"):
        lm.prefixes().words(np.array([0]), ["king"])


@pytest.fixture(scope="module")
def subwords(tmp_path_factory):
    """One vocabulary of each scheme, with the normaliser that changes most."""
    out, lines = tmp_path_factory.mktemp("subwords"), sentences(200, 1)
    return [
        train(scheme, lines, 60, NORMALISERS["librispeech"], out / scheme) for scheme in SUBWORDS
    ]


TEXT = st.text(st.sampled_from("kingtheao KE'’`´-.!İßΣǆ\u0301\u0345ﬁ▁½"), max_size=24)


@settings(max_examples=100)
@given(text=TEXT)
def test_tokens_of_words_in_a_row_are_those_of_the_sentence(subwords, text):
    for subword in subwords:
        scorer = SimpleNamespace(
            prepare=lambda texts, subword=subword: [
                tuple(ids) for ids in subword.encode_batch(texts)
            ]
        )
        words, found = WordTokens(scorer), ()
        words.learn(text.split())
        for word in text.split():
            found += words.tokens(word, not found)
        assert found == tuple(subword.encode(text)), subword.scheme
