"""What a glossary changes in right text, and bounds on it that hold."""

import lzma
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

import lmtools
from lmtools.cli import main
from lmtools.phrases.clean import Harm, bound_share, count_edits

NOVEL = Path(__file__).parents[3] / "egs/librispeech/mini-real/valid.txt.xz"
NAMES = ["Wright | right", "Knight | night", "Wood | would", "New Holm | no home | new home"]


def make_harm(edits, words) -> Harm:
    changes = tuple((row, "", "") for row, count in enumerate(edits) if count)
    return Harm(changes, tuple(map(int, edits)), tuple(map(int, words)))


@pytest.mark.parametrize(("count", "total"), [(0, 1), (0, 700), (1, 30), (17, 200), (99, 100)])
def test_bounds_are_those_of_scipy(count, total):
    wanted = binomtest(count, total, alternative="less").proportion_ci(0.95, "exact").high
    assert bound_share(count, total) == pytest.approx(wanted, rel=1e-9)
    harm = make_harm(np.arange(total) < count, np.ones(total))  # a word a sentence: no clusters
    assert harm.bound() == pytest.approx(wanted, rel=1e-9)
    assert harm.word_bound() == pytest.approx(wanted, rel=0.05)
    assert bound_share(total, total) == bound_share(0, 0) == make_harm([], []).word_bound() == 1.0


def count_held(edits: np.ndarray, words: np.ndarray, rng, splits=100) -> tuple[int, int]:
    """In how many random halves both bounds are at least the shares of the whole."""
    shares, held = ((edits > 0).mean(), edits.sum() / words.sum()), [0, 0]
    for _ in range(splits):
        half = rng.permutation(len(edits))[: len(edits) // 2]
        some = make_harm(edits[half], words[half])
        held[0] += some.bound() >= shares[0]
        held[1] += some.word_bound() >= shares[1]
    return held[0], held[1]


@pytest.mark.parametrize(("share", "together"), [(0.002, 0), (0.02, 0), (0.1, 3), (0.3, 6)])
def test_bounds_hold_in_random_splits_of_simulated_edits(share, together):
    """Also where edits come together, several in a sentence."""
    rng = np.random.default_rng(1)
    words = rng.integers(3, 40, 4000)
    edits = (rng.random(4000) < share) * (1 + rng.binomial(np.minimum(together, words - 1), 0.5))
    assert min(count_held(edits, words, rng)) >= 95


def test_bounds_hold_in_random_splits_of_a_glossary_s_edits():
    lines = lzma.decompress(NOVEL.read_bytes()).decode().splitlines()
    harm = lmtools.measure_harm(lines, NAMES)
    assert harm.sentences == len(lines) and 20 < harm.changed < 100
    assert sum(harm.edits) >= harm.changed == len(harm.changes)
    held = count_held(np.array(harm.edits), np.array(harm.words), np.random.default_rng(1))
    assert min(held) >= 95


def test_what_a_glossary_changes():
    texts = ["all right, then", "the wright came", "there is no home, and no home", "nothing"]
    harm = lmtools.measure_harm(texts, NAMES)
    assert harm.edits == (1, 0, 2, 0) and harm.words == (3, 3, 7, 1) and harm.changed == 2
    assert harm.changes[1] == (3, texts[2], "there is New Holm, and New Holm")
    assert lmtools.measure_harm(texts, ["Zanzibar"]).changes == ()
    assert count_edits(["a", "b", "c", "d"], ["x", "y", "c", "e", "d"]) == 2


def test_the_verb(tmp_path, capsys):
    (tmp_path / "text").write_text("all right then\n\nnothing\n" * 20)
    (tmp_path / "names").write_text("\n".join(NAMES) + "\n")
    words = f"harm --text {tmp_path}/text --phrases {tmp_path}/names --out {tmp_path}/c.tsv"
    assert main([*words.split(), "--most", "0.9"]) == 0
    out = capsys.readouterr().out
    assert "20 of 40 sentences changed" in out and "20 false edits in 80 words" in out
    assert f"at most {bound_share(20, 40):.3%} of such sentences" in out
    assert len((tmp_path / "c.tsv").read_text().splitlines()) == 20
    assert main([*words.split(), "--most", "0.5"]) == 1
    assert "is above --most 50.000%" in capsys.readouterr().err
    assert main(["harm", "--text", f"{tmp_path}/text"]) == 1
    assert "--phrases: what may change the text?" in capsys.readouterr().err
