"""What a language model of each kind is asked: log-probabilities, states, prefixes."""

import numpy as np
import pytest
import torch
from scoring import load_scorer, walk
from spelled import random_elmo
from toys import sentences
from translators import random_translator
from unit.score import test_huggingface

from lmtools.base.errors import UserError
from lmtools.models.causal import Causal
from lmtools.ngram import build
from lmtools.text import Normaliser

bert, gpt = test_huggingface.bert, test_huggingface.gpt
STATES, PREFIXES = "has no states", "not a left-to-right model"
# which questions each kind answers, beside log_probs
ANSWERS = {
    **dict.fromkeys(("causal", "lstm"), ("states", "prefixes")),
    **dict.fromkeys(("masked", "tta", "elmo", "bert", "gpt"), ("states",)),
    "translator": (),
    **dict.fromkeys(("ngram", "mixture"), ("prefixes",)),
}


@pytest.fixture(scope="module")
def models(trained, bert, gpt, tmp_path_factory):
    home = tmp_path_factory.mktemp("models")
    (home / "text").write_text("\n".join(sentences(200, 5)) + "\n")
    build([home / "text"], 3, home / "ngram", Normaliser(), kenlm="none")
    return {
        **trained, "elmo": random_elmo(home / "e"), "translator": random_translator(home / "t"),
        "bert": f"hf:{bert[0]}", "gpt": f"hf:{gpt[0]}", "ngram": home / "ngram",
        "mixture": f"mix:{trained['causal']}=0.5,{home / 'ngram'}=0.5",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ANSWERS)
def test_each_kind_answers_or_refuses(models, kind):
    pairs = kind == "translator"
    model = load_scorer(models[kind], pairs=pairs)
    texts = [("the king", "a queen"), ("a city", "the")] if pairs else ["the king", "a queen came"]
    batch = model.prepare(texts)
    scores = model.log_probs(batch)
    counts = [len(model.unknown(sentence)) + 1 for sentence in batch]
    assert [len(values) for values in scores] in (counts, [1, 1])  # of mixed sentences a sum
    if "states" in ANSWERS[kind]:
        with torch.inference_mode():
            layers, lengths = model.states(batch, (0, model.depth))
            shapes = {layer: states.shape[:2] for layer, states in layers}
        assert {0, model.depth} <= shapes.keys()
        assert set(shapes.values()) == {(2, int(max(lengths)))}
        expected = [model.positions(sentence) + sum(model.boundary) for sentence in batch]
        assert lengths.tolist() == expected
    else:
        with pytest.raises(UserError, match=STATES):
            model.states(batch, (0,))
    if "prefixes" in ANSWERS[kind]:
        total = sum(walk(model.prefixes(), texts[1].split()))
        if kind != "mixture":  # which mixes word by word here
            assert total == pytest.approx(scores[1].sum(), abs=1e-4)
    else:
        with pytest.raises(UserError, match=PREFIXES):
            model.prefixes()


def test_a_family_without_a_memory_scores_without_trees(models, monkeypatch):
    """All that a new family has to have are its states."""
    model = load_scorer(models["causal"])
    batch = model.prepare(sentences(9, 3) * 2)
    assert model.plan_trees(batch)
    expected = model.log_probs(batch)
    monkeypatch.delattr(Causal, "memory")
    assert model.plan_trees(batch) == []
    np.testing.assert_array_equal(np.concatenate(model.log_probs(batch)), np.concatenate(expected))
