"""What is taken of rescored lattices, by one process and by several."""

import dataclasses

import pytest
from lattices import random_lattice
from lattices import sentences as of_lattice
from toys import WORDS

from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.ngram import build
from lmtools.score.lattices import LatticeOptions, LatticeOutputs, run_lattices
from lmtools.text import Normaliser

WEIGHTS = {"am": 2.0, "lm": 0.5, "ngram": 3.0, "words": -0.25}


@pytest.fixture(scope="module")
def settings(tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("lattice_run") / "lm"
    build([tiny / "train.txt"], 2, out, Normaliser(), kenlm="none")
    return LatticeOptions({"ngram": LMSpec(str(out))}, WEIGHTS)


@pytest.fixture(scope="module")
def lattices():
    return [
        dataclasses.replace(random_lattice(seed, words=WORDS[:4]), utt=f"u{seed}")
        for seed in range(7)
    ]


def test_each_part_is_taken_of_the_same_lattice(settings, lattices):
    results = run_lattices(lattices, settings, LatticeOutputs(True, 3, text=True))
    for old, one in zip(lattices, results, strict=True):
        sizes = len(old.words), len(one.lattice.words)
        assert (one.utt, one.arcs, one.rescored_arcs) == (old.utt, *sizes)
        assert one.seconds > 0 and one.speech >= 0 and not one.approximation
        by_score = sorted(of_lattice(one.lattice, WEIGHTS).items(), key=lambda item: -item[1])
        assert len(one.nbest.hyps) == min(3, len(by_score))
        for hyp, (_, score) in zip(one.nbest.hyps, by_score, strict=False):
            features = {**hyp.scores, "words": len(hyp.text.split())}
            total = sum(weight * features[name] for name, weight in WEIGHTS.items())
            assert total == pytest.approx(score)
        assert one.text == one.nbest.hyps[0].text


def test_only_what_is_wanted(settings, lattices):
    one, *_ = run_lattices(lattices, settings, LatticeOutputs(text=True))
    assert one.text is not None and one.lattice is None and one.nbest is None


@pytest.mark.parametrize(("into", "keep", "unit"), [("graph", ("am",), 2.0), ("am", (), 1.0)])
def test_folded_scores_rank_paths_alike(settings, lattices, into, keep, unit):
    """The plain sum, over the weight of the first kept, is what the weights say."""
    whole, folded = (
        list(run_lattices(lattices, settings, LatticeOutputs(True, merge=how and (how, keep))))
        for how in (None, into)
    )
    for one, other in zip(whole, folded, strict=True):
        assert [*other.lattice.scores] == [*keep, into]
        expected = of_lattice(one.lattice, WEIGHTS)
        found = of_lattice(other.lattice, dict.fromkeys(other.lattice.scores, 1.0))
        assert found == pytest.approx({words: score / unit for words, score in expected.items()})


def test_several_processes_give_the_same_in_order(settings, lattices):
    wanted = LatticeOutputs(True, 2, text=True)
    alone = list(run_lattices(lattices, settings, wanted))
    spread = list(run_lattices(iter(lattices), settings, wanted, nj=2))
    assert [dataclasses.replace(one, seconds=0.0) for one in spread] == [
        dataclasses.replace(one, seconds=0.0) for one in alone
    ]


def test_a_worker_without_its_model_says_so(settings, lattices):
    gone = dataclasses.replace(settings, lms={"ngram": LMSpec("/no/such/model")})
    with pytest.raises(UserError, match="/no/such/model: no such language model"):
        list(run_lattices(lattices, gone, LatticeOutputs(), nj=2))


def test_lattices_are_taken_one_by_one(settings, lattices):
    """The first result is there before the second lattice is asked for."""
    asked = []

    def source():
        for lattice in lattices:
            asked.append(lattice.utt)
            yield lattice

    results = run_lattices(source(), settings, LatticeOutputs(text=True))
    assert next(results).utt == "u0" and asked == ["u0"]
