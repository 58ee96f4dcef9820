"""A sentence's score and vector have the same bits whatever goes through with them, on any
processor, with any number of threads.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scoring import make_scorer, score_sentences

from lmtools.base import batching
from lmtools.base.computing import Computing
from lmtools.base.doors import find_doors
from lmtools.models.device import onednn_computes_bfloat16
from lmtools.models.engine import multiplies_int8
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Settings
from lmtools.score.neural import NeuralScorer
from lmtools.score.texts import open_cache, run_threads
from lmtools.types import NUMERICS

SIZE = 1000
ARCH = {"layers": 2, "dim": 128, "heads": 2, "ffn": 512, "positions": 32}
FAMILIES = {
    "causal": ("causal", ARCH),
    "tta": ("autoencoding", ARCH),
    "masked": ("masked", ARCH),
    "lstm": ("causal", {"layers": 2, "dim": 128, "units": 256}),
    "gcnn": ("causal", {"dim": 128, "blocks": ("[4, 128] x 2",)}),
}
CRITERIA = {"softmax": {}, "ce-nce": {"samples": 64}}
# What makes one processor compute as others do: torch's own kernels, oneDNN's, MKL's.
PROCESSORS = [
    {"ATEN_CPU_CAPABILITY": "default", "DNNL_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE"},
    {"ATEN_CPU_CAPABILITY": "avx2", "DNNL_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "AVX2"},
    {"ATEN_CPU_CAPABILITY": "avx512", "DNNL_MAX_CPU_ISA": "AVX512_CORE"},
]


class Ids:
    """A vocabulary whose texts are token ids."""

    hash = "0" * 64

    def encode_batch(self, texts):
        return [list(map(int, text.split())) for text in texts]


def model(family: str, criterion: str = "softmax") -> LanguageModel:
    """A random model whose scores differ from sentence to sentence."""
    torch.manual_seed(0)
    objective, arch = FAMILIES[family]
    given = {"criterion": criterion, "output": CRITERIA[criterion]}
    lm = LanguageModel(Settings(model=family, objective=objective, arch=arch, **given), SIZE)
    for parameter in lm.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    return lm


def random_sentences(count: int, longest: int) -> list[tuple[int, ...]]:
    """Distinct sentences, a few of no token or one."""
    rng = np.random.default_rng(1)
    drawn = (rng.integers(5, SIZE, rng.integers(0, longest + 1)).tolist() for _ in range(count))
    return list(dict.fromkeys(map(tuple, drawn)))


def check(families, threads, precisions=("float32", "bfloat16"), engine="torch"):
    """Assert that order, company, the cache and threads change no score or vector."""
    before = torch.get_num_threads()
    try:
        for family, criterion in families:
            for precision in precisions:
                agree(model(family, criterion), precision, threads, engine)
    finally:
        torch.set_num_threads(before)


def load_embed(scorer):
    """A function of texts that gives their vectors; zeros where lmtools has no vectors/."""
    if "vectors" not in find_doors():
        return lambda texts: np.zeros((len(texts), 1))
    from lmtools.vectors.encoders import ContextualEncoder, PoolingOptions, encode

    encoder = ContextualEncoder(scorer, PoolingOptions("all"))
    return lambda texts: encode(texts, encoder)


def agree(lm: LanguageModel, precision: str, threads, engine: str) -> None:
    """`check` for one model in one precision."""
    # some are read in windows
    sentences = random_sentences(40 if lm.settings.model == "masked" else 90, 40)
    scorer = make_scorer(NeuralScorer, lm, Ids(), "0" * 16, precision=precision, engine=engine)
    embed = load_embed(scorer)
    computing, expected = Computing(cache="none"), {}
    for number, count in enumerate(threads):
        torch.set_num_threads(count)
        rng = np.random.default_rng(number)
        for size in (len(sentences), 7):
            some = [sentences[i] for i in rng.permutation(len(sentences))[:size]]
            vectors = embed([" ".join(map(str, sentence)) for sentence in some])
            scores = score_sentences(some, scorer, computing, open_cache(scorer, computing))
            for sentence, score, vector in zip(some, scores, vectors, strict=True):
                first = expected.setdefault(sentence, (score, vector))
                case = lm.settings.model, lm.settings.criterion, precision, count, len(sentence)
                assert score == first[0], case
                assert np.array_equal(vector, first[1]), ("vector of", *case)
        assert torch.get_num_threads() == count  # put back


@pytest.mark.parametrize("family", FAMILIES)
def test_bits_do_not_depend_on_company_order_or_threads(family):
    check([(family, "softmax")], (1, 2, 3))


PREPARED = {"float32": "causal", "bfloat16": "masked", "int8": "tta"}


@pytest.mark.parametrize("precision", PREPARED)
def test_nor_with_prepared_weights(precision):
    if precision == "int8" and not multiplies_int8():
        pytest.skip("this processor has no AVX2 or VNNI instructions")
    if precision == "bfloat16" and not onednn_computes_bfloat16():
        pytest.skip("oneDNN has no bfloat16 kernels for this processor")
    check([(PREPARED[precision], "softmax")], (1, 2), [precision], "prepared")


def test_nor_do_those_of_a_sampled_criterion():
    check([("causal", "ce-nce")], (1, 2), ["float32"])


@pytest.mark.parametrize(
    "processor", PROCESSORS, ids=lambda processor: processor["ATEN_CPU_CAPABILITY"]
)
def test_nor_on_another_processor(processor):
    """As this one can stand for it: without instruction sets that it has."""
    if processor["ATEN_CPU_CAPABILITY"] == "avx512" and not torch.cpu._is_avx512_supported():
        pytest.skip("this processor has no AVX-512 instructions")
    command = (
        "import test_numerics as t; t.check([('masked', 'softmax'), ('causal', 'softmax')], (1, 2),"
        " ['float32'])"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", command],
        env={**os.environ, **processor, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_what_numerics_depend_on_is_in_the_signature():
    lm = model("causal")
    one, other = (
        make_scorer(NeuralScorer, lm, Ids(), "0" * 16, rows=rows).signature for rows in (None, 64)
    )
    assert {name for name in one if one[name] != other[name]} == {"rows"} and set(NUMERICS) <= set(
        one
    )


def random_lists(longest: int = 29) -> list[tuple[int, ...]]:
    """Distinct hypotheses of lists that share beginnings; some have more than `longest` tokens."""
    rng = np.random.default_rng(2)
    lists = []
    for stem in random_sentences(6, longest):
        for place in rng.integers(0, len(stem) + 1, 12):
            lists.append((*stem[:place], *rng.integers(5, SIZE, 4).tolist()))
    return list(dict.fromkeys(lists))


def one_by_one(scorer: NeuralScorer, sentences) -> np.ndarray:
    return np.array([scorer.log_probs([sentence])[0].sum() for sentence in sentences])


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("family", ["causal", "lstm", "gcnn"])
def test_what_lists_share_is_computed_once(family, criterion, monkeypatch):
    lm, sentences = model(family, criterion), random_lists(40)
    monkeypatch.setattr(type(lm.trunk), "tree_tokens", 600)
    grown, memory = [], type(lm.trunk).memory

    def noting(trunk):
        made = memory(trunk)
        grow = made.grow
        made.grow = lambda parents, tokens: grown.append(len(tokens)) or grow(parents, tokens)
        return made

    monkeypatch.setattr(type(lm.trunk), "memory", noting)
    computing = Computing(cache="none")
    for normalise in ("full", "none"):
        scorer = make_scorer(NeuralScorer, lm, Ids(), "0" * 16, normalise=normalise)
        scorer = scorer.with_oov_penalty(2.0)
        trees = scorer.plan_trees(sentences)
        short = [i for i, s in enumerate(sentences) if len(s) <= lm.longest]
        assert len(trees) > 1 and {i for tree in trees for i in tree} <= set(short)
        assert len(short) < len(sentences) or family != "causal"
        grown.clear()
        made = score_sentences(sentences, scorer, computing, open_cache(scorer, computing))
        tokens = sum(len(sentences[i]) + 1 for tree in trees for i in tree)
        assert len(grown) == len(trees) and sum(grown) < 0.8 * tokens
        assert np.allclose(made, one_by_one(scorer, sentences), rtol=0, atol=1e-4)


@pytest.mark.parametrize("family", ["causal", "lstm", "gcnn"])
def test_a_killed_run_goes_on_with_equal_bits_of_lists(family, tmp_path, monkeypatch):
    lm, sentences = model(family), random_lists()
    monkeypatch.setattr(type(lm.trunk), "tree_tokens", 200)
    scorer = make_scorer(NeuralScorer, lm, Ids(), "0" * 16)
    assert len(scorer.plan_trees(sentences)) > 2
    computing = Computing(cache=str(tmp_path))
    expected = score_sentences(sentences, scorer, computing, open_cache(scorer, computing))
    for seed in range(3):  # what a run may have left behind
        some = np.random.default_rng(seed).random(len(sentences)) < 0.5
        cache = open_cache(scorer, Computing(cache=str(tmp_path / str(seed))))
        cache.put((s, v) for s, v, kept in zip(sentences, expected, some, strict=True) if kept)
        assert np.array_equal(score_sentences(sentences, scorer, computing, cache), expected)
        cache.close()


def test_texts_that_share_little_make_no_trees():
    scorer = make_scorer(NeuralScorer, model("causal"), Ids(), "0" * 16)
    assert scorer.plan_trees(random_sentences(90, 20)) == []
    assert make_scorer(NeuralScorer, model("tta"), Ids(), "0" * 16).plan_trees(random_lists()) == []


@pytest.mark.parametrize("rows", [1, 7, 100, 256, 4096])
def test_batches_have_one_shape(rows):
    costs = np.random.default_rng(0).integers(1, 40, 500).tolist()
    plan = batching.plan_batches(costs, rows)
    assert sorted(i for batch in plan for i in batch) == list(range(500))
    for batch in plan:
        (cost,) = {costs[i] for i in batch}
        size = batching.batch_size(cost, rows)
        assert len(batch) <= size and (size % 8 == 0 or size == 1)
        assert size * cost <= max(4 * rows, cost)


def test_an_error_in_a_thread_ends_the_rest():
    done = []

    def compute(batch, size):
        if batch == [(3,)]:
            raise ValueError("three")
        done.append(batch)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ValueError, match="three"):
            list(run_threads(compute, [[(i,)] for i in range(1000)], [1] * 1000))
        assert len(done) < 1000 and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
