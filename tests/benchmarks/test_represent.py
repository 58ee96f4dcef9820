"""The sentence vectors whose making is timed, what is written of it, and what is counted (never how
fast it was).
"""

import json

import pytest
import torch
from bench import main
from hypothesis import given
from hypothesis import strategies as st
from measures.lm import multiply_adds
from measures.represent import embed_intact, embed_masked, embed_one_by_one, measure_batches
from measures.score import FAMILIES, format_ratios, random_family, random_sentences
from scoring import CPU

from lmtools.text.subword import BOS, EOS, MASK

ARCH = {"layers": 2, "dim": 16, "heads": 2, "ffn": 32, "positions": 64}
SIZE = 50
WAYS = ("tta", "masked", "masked-shared", "masked-intact", "causal")
SENTENCES = st.lists(st.integers(6, SIZE - 1), min_size=1, max_size=9).map(tuple)


@pytest.fixture(scope="module")
def scorers():
    return {family: random_family(family, ARCH, SIZE, CPU) for family in FAMILIES}


def states(scorer, ids: list[int]) -> torch.Tensor:
    """The last layer's states (T, D) of one input without padding."""
    with torch.inference_mode():
        return scorer.lm.trunk.hidden(torch.tensor([ids]), torch.tensor([len(ids)]))[0]


@given(sentence=SENTENCES)
def test_masked_vectors_are_means_of_states_each_masked_alone(scorers, sentence):
    scorer, ids = scorers["masked"], [BOS, *sentence, EOS]
    alone = [states(scorer, [*ids[:i], MASK, *ids[i + 1 :]])[i] for i in range(1, len(ids) - 1)]
    for way in (embed_one_by_one, embed_masked):
        torch.testing.assert_close(way(scorer, sentence), torch.stack(alone).mean(0))


def test_papers_make_a_copy_a_token(scorers, monkeypatch):
    trunk, seen = scorers["masked"].lm.trunk, []
    hidden = trunk.hidden
    monkeypatch.setattr(
        trunk, "hidden", lambda tokens, lengths: (seen.append(tokens), hidden(tokens, lengths))[1]
    )
    embed_one_by_one(scorers["masked"], tuple(range(10, 34)))
    (copies,) = seen
    assert copies.shape == (24, 26) and torch.equal(
        (copies == MASK).nonzero(), torch.stack([torch.arange(24), torch.arange(1, 25)], 1)
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_operations_are_those_that_torch_counts(scorers, family):
    row, (sentence,) = measure_batches(scorers[family], 7, 4, 64), random_sentences(7, 1, SIZE)
    counted = 2 * multiply_adds(lambda: embed_intact(scorers[family], [sentence]))
    assert row["gflops"] / row["sentences_per_second"] * 1e9 == pytest.approx(counted)


def test_what_is_written_has_the_ratio_at_each_length(tmp_path, trained, capsys):
    out = tmp_path / "speed.json"
    lms = [word for name, path in trained.items() for word in ("--lm", f"{name}={path}")]
    words = ["score", "--representation", "--length", "2,5", "--repeats", "3"]
    assert main([*words, *lms, "--out", str(out)]) == 0
    figures, printed = json.loads(out.read_text()), capsys.readouterr().out
    seconds = {(row["lm"], row["words"]): row["seconds_median"] for row in figures["rows"]}
    assert {row["task"] for row in figures["rows"]} == {"represent"} and {
        lm for lm, _ in seconds
    } >= set(WAYS)
    assert [row["words"] for row in figures["ratios"]] == [2, 5]
    for row in figures["ratios"]:
        expected = {
            lm: seconds[lm, row["words"]] / seconds["tta", row["words"]]
            for lm in WAYS
            if lm != "tta"
        }
        assert row["lm"] == "tta" and row["times"] == pytest.approx(expected)
    # of 16 positions
    assert (
        all(line in printed for line in format_ratios(figures["rows"]))
        and "sentences of 14 tokens a second" in printed
    )


def test_lengths_that_a_model_cannot_read_are_refused(trained, tmp_path, capsys):
    out = tmp_path / "speed.json"
    some = f"--representation --length 5,50 --lm tta={trained['tta']} --out {out}".split()
    assert main(["score", *some]) == 1
    assert (
        "length=50: 60 tokens, but tta takes 14 at most; give shorter lengths"
        in capsys.readouterr().err
        and not out.exists()
    )
