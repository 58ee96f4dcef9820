"""GGUF files in this process, against transformers on the same weights."""

import numpy as np
import pytest
from scoring import CPU

from lmtools.base.errors import UserError
from lmtools.score import load, score_texts

pytest.importorskip("llama_cpp", reason="no llama-cpp-python; pip install -e '.[gguf]'")
pytest.importorskip("gguf", reason="gguf is not installed; pip install -e '.[gguf]'")
pytest.importorskip("transformers", reason="transformers is not installed; pip install '.[hf]'")

from tiny_llm import write_gguf, write_model

TEXTS = ["He sat on the mat.", "He sat on the cat", "", "the cat looked out xyz", "é weather", "He"]


def test_scores_are_those_of_transformers(tmp_path):
    """Alone, as a tree of beginnings of any size, and longer than the room."""
    write_model(tmp_path / "hf")
    write_gguf(tmp_path / "hf", tmp_path / "tiny.gguf")
    own, far = load(f"hf:{tmp_path / 'hf'}", CPU), load(f"gguf:{tmp_path / 'tiny.gguf'}", CPU)
    wanted, got = (each.log_probs(each.prepare(TEXTS)) for each in (own, far))
    for one, other in zip(wanted, got, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-4)
    many = [f"{text} the {number} king" for number in range(40) for text in TEXTS]
    sums = [score_texts(many, each, CPU).log_prob for each in (own, far)]
    np.testing.assert_allclose(*sums, atol=1e-3)
    assert len(far.plan_trees(far.prepare(many))) > 1
    small = load(f"gguf:{tmp_path / 'tiny.gguf'},positions=64,threads=1", CPU)
    with pytest.raises(UserError, match="has 100 tokens, and there is room for"):
        small.prepare(["the " * 100])
    (tmp_path / "bad.gguf").write_bytes((tmp_path / "tiny.gguf").read_bytes()[:2000])
    for name, cause in (("bad.gguf", "llama.cpp cannot load"), ("none", "no such file"),
                        ("hf/config.json", "is no GGUF file")):  # fmt: skip
        with pytest.raises(UserError, match=cause):
            load(f"gguf:{tmp_path / name}", CPU)
