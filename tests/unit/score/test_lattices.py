import pickle
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limited
from hypothesis import strategies as st
from lattices import all_paths, named_sums, random_lattice
from scoring import load_scorer
from toys import WORDS

from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.lattice.forward import prune
from lmtools.ngram import build
from lmtools.score import lattices as module
from lmtools.score.lattices import LatticeOptions, Rescorer
from lmtools.text import Normaliser
from lmtools.types import Arc, Final, Lattice


@pytest.fixture(scope="module")
def scorers(trained, tiny, tmp_path_factory):
    """A tiny scorer a kind, by name."""
    out = tmp_path_factory.mktemp("ngram") / "lm"
    build([tiny / "train.txt"], 3, out, Normaliser(), kenlm="none")
    return {
        "ngram": load_scorer(str(out)),
        **{name: load_scorer(str(path), "cpu") for name, path in trained.items()},
        "mix": load_scorer(f"mix:{out}=0.3,{trained['causal']}=0.7", "cpu"),
    }


def rescorer(scorers, *names, old=None, **changes) -> Rescorer:
    """The rescorer of these models, with weight 2 each."""
    weights = {"am": 1, **dict.fromkeys(names, 2.0)}
    named = {name: scorers[name] for name in names}
    settings = LatticeOptions(
        **{"lms": dict.fromkeys(names, "-"), "weights": weights, "old": old and "-", **changes}
    )
    return Rescorer(settings, named, old and scorers[old])


def word_scores(scorer, words) -> np.ndarray:
    """What the model says of each word, a token here, and of the end (W + 1,)."""
    return scorer.log_probs(scorer.prepare([" ".join(words)]))[0]


def paths(lattice) -> dict[tuple, list[dict]]:
    """The score sums of each path, by its words and its score `am`."""
    result: dict[tuple, list[dict]] = {}
    for words, arcs, final in all_paths(lattice):
        sums = named_sums(lattice, arcs, final)
        result.setdefault((words, round(sums["am"], 6)), []).append(sums)
    return result


@limited(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_every_path_gets_the_scores_of_its_sentence(scorers, seed):
    """Several models and a mixture of two in one pass."""
    lattice = random_lattice(seed, words=WORDS[:4])
    done, messages = rescorer(scorers, "ngram", "causal", "mix").rescore(lattice)
    found, expected = paths(done), paths(lattice)
    assert messages == [] and found.keys() == expected.keys()
    for (words, am), rows in found.items():
        assert len(rows) == len(expected[words, am])
        ngram, causal = (word_scores(scorers[name], words) for name in ("ngram", "causal"))
        mix = np.log(0.3 * np.exp(ngram) + 0.7 * np.exp(causal)).sum()
        for sums in rows:
            assert list(sums) == ["am", "lm", "ngram", "causal", "mix"]
            new = sums["ngram"], sums["causal"], sums["mix"]
            assert new == pytest.approx((ngram.sum(), causal.sum(), mix), abs=1e-4)


@pytest.mark.parametrize("model", ["tta", "masked"])
def test_models_that_read_both_sides_score_the_rescored_lattice(scorers, model):
    lattice = random_lattice(4, words=WORDS[:4])
    done, messages = rescorer(scorers, "ngram", model).rescore(lattice)
    assert list(done.scores) == list(done.final_scores) == ["am", "lm", "ngram", model]
    assert messages == []
    alone, _ = rescorer(scorers, model).rescore(lattice)
    assert list(alone.scores) == ["am", "lm", model]


def test_the_best_context_is_judged_by_all_scores_so_far(scorers, monkeypatch):
    given = {}

    def recorded(lattice, scorer, weights, name, **_):
        given[name] = dict(weights)
        return replace(lattice, scores={**lattice.scores, name: lattice.scores["am"]})

    monkeypatch.setattr(module, "rescore_cover", recorded)
    weights = {"am": 1, "ngram": 3, "tta": 4, "masked": 5, "words": 6}
    rescorer(scorers, "ngram", "tta", "masked", weights=weights).rescore(ladder(2))
    assert given == {"tta": {"am": 1, "ngram": 3, "tta": 4, "words": 6}, "masked": weights}


def test_one_order_is_for_models_that_never_forget(scorers):
    assert rescorer(scorers, "ngram", "causal", "mix", order=4).order == {"causal": 4, "mix": 4}


def test_signatures_name_the_models(scorers):
    made = rescorer(scorers, "mix", "tta", weights={})
    named = {name: signature["lm"] for name, signature in made.signatures.items()}
    assert named == {"mix": "mixture", "tta": "tta"}
    first, second = (scorers[name].signature["model"] for name in ("ngram", "causal"))
    assert made.signatures["mix"]["model"] == f"0.3*{first}+0.7*{second}"


def test_what_is_broken_is_repaired_with_a_message(scorers):
    arcs = [
        Arc(0, 1, "a", {"am": -1.0}),
        Arc(1, 0, "king", {"am": -1.0}),
        Arc(0, 1, "the", {"am": float("nan")}),
    ]
    done, messages = rescorer(scorers, "ngram").rescore(Lattice.of("u7", 2, 0, arcs, [Final(1)]))
    assert done.words == ("a",)
    assert messages == ["u7: dropped 1 arc with impossible scores, cut 1 arc that closed cycles"]
    dead = Lattice.of("u7", 3, 0, [Arc(0, 1, "a"), Arc(0, 2, "the")], [Final(1)])
    done, messages = rescorer(scorers, "ngram").rescore(
        replace(dead, scores={"am": np.zeros(2)}, final_scores={"am": np.zeros(1)})
    )
    assert done.words == ("a",) and messages == []


def ladder(rungs: int) -> Lattice:
    """2^rungs paths; the first word of each rung is better."""
    arcs = [
        Arc(i, i + 1, WORDS[2 * i + n], {"am": -0.5 * n - i / 100})
        for i in range(rungs)
        for n in range(2)
    ]
    return Lattice.of("u8", rungs + 1, 0, arcs, [Final(rungs)])


def test_the_lattice_is_pruned_before(scorers):
    lattice = ladder(6)
    done, messages = rescorer(scorers, "ngram", prune_beam=0.7).rescore(lattice)
    assert set(done.words) == set(prune(lattice, {"am": 1}, beam=0.7).words)
    assert messages == []


def test_bounds_of_the_expansion_are_passed_on(scorers):
    whole = rescorer(scorers, "causal").rescore(ladder(6))[0]
    assert whole.states == 2**7 - 1
    assert rescorer(scorers, "causal", order={"causal": 2}).rescore(ladder(6))[0].states == 13
    assert rescorer(scorers, "causal", order=2).rescore(ladder(6))[0].states == 13
    assert rescorer(scorers, "causal", tokens=3).rescore(ladder(6))[0].states <= 19
    assert rescorer(scorers, "causal", beam=0.0).rescore(ladder(6))[0].states == 7
    done, messages = rescorer(scorers, "causal", states=40).rescore(ladder(6))
    assert done.states <= 40 and "splits into more than 40 states" in messages[0]


class Forgetful:
    """The n-gram model in a memory for `room` pairs of history and word."""

    def __init__(self, lm, room: int):
        self.lm, self.room, self.signature = lm, room, lm.signature

    def prefixes(self):
        prefixes, room = self.lm.prefixes(), [self.room]
        words = prefixes.words

        def counted(nodes, some):
            room[0] -= len(some)
            if room[0] < 0:
                raise RuntimeError(
                    "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to"
                    " allocate 8 bytes"
                )
            return words(nodes, some)

        prefixes.words = counted
        return prefixes


def test_what_does_not_fit_the_memory_is_pruned_with_a_message(scorers):
    made = rescorer(scorers, "causal")
    made.left["causal"] = Forgetful(made.left["causal"], 30)
    done, messages = made.rescore(ladder(6))
    (message,) = messages
    assert message.startswith("u8: too large for the memory; pruned from 12 to ")
    assert set(WORDS[0:12:2]) <= set(done.words) and "causal" in done.scores
    made.left["causal"] = Forgetful(made.left["causal"].lm, 5)
    with pytest.raises(UserError, match="u8: not even its best path fits into memory"):
        made.rescore(ladder(6))


def test_other_errors_are_not_taken_for_a_lack_of_memory(scorers, monkeypatch):
    made = rescorer(scorers, "ngram")
    monkeypatch.setattr(made.left["ngram"], "prefixes", Mock(side_effect=RuntimeError("a defect")))
    with pytest.raises(RuntimeError, match="a defect"):
        made.rescore(ladder(2))


def test_the_old_model_is_taken_out_of_the_graph_score(scorers):
    lattice = ladder(3)
    lattice = replace(
        lattice,
        scores={**lattice.scores, "graph": np.arange(6.0)},
        final_scores={"am": np.zeros(1), "graph": np.ones(1)},
    )
    weights = {"am": 1, "graph": 1, "causal": 1}
    done, _ = rescorer(scorers, "causal", old="ngram", weights=weights).rescore(lattice)
    assert set(done.scores) == {"am", "graph", "causal", "lm"}
    for words, arcs, final in all_paths(done):
        sums = named_sums(done, arcs, final)
        graph = 1 + sum(2 * i + (word == WORDS[2 * i + 1]) for i, word in enumerate(words))
        assert sums["lm"] == pytest.approx(word_scores(scorers["ngram"], words).sum())
        assert sums["graph"] + sums["lm"] == pytest.approx(graph)
    alone, _ = rescorer(scorers, old="ngram", weights={"am": 1, "graph": 1}).rescore(lattice)
    assert set(alone.scores) == {"am", "graph", "lm"}


@pytest.mark.parametrize(
    ("names", "changes", "cause"),
    [
        ([], {}, "no language model to rescore lattices with"),
        (["ngram"], {"weights": {"am": 1}}, "no weight for 'ngram'"),
        (["ngram"], {"order": {"causal": 3}}, "order of 'causal': no language model"),
        (["ngram"], {"old": "tta"}, "left-to-right"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(scorers, names, changes, cause):
    with pytest.raises(UserError, match=cause):
        rescorer(scorers, *names, **changes)


def test_errors_name_the_utterance(scorers):
    made = rescorer(scorers, "ngram", weights={"am": 1, "ngram": 1, "nn": 2})
    with pytest.raises(UserError, match=r"^u8: no score 'nn'"):
        made.rescore(ladder(2))
    taken = ladder(2)
    taken = replace(
        taken, scores={"ngram": taken.scores["am"]}, final_scores={"ngram": np.zeros(1)}
    )
    with pytest.raises(UserError, match=r"^u8: the lattice has a score 'ngram' already"):
        rescorer(scorers, "ngram").rescore(taken)


def test_models_are_loaded_once(trained, tmp_path):
    spec = LMSpec(str(trained["causal"]))
    settings = LatticeOptions({"a": spec, "b": spec}, {"am": 1, "a": 1, "b": 0})
    made = pickle.loads(pickle.dumps(settings)).load()  # as a worker process gets them
    assert made.left["a"] is made.left["b"]
    done, _ = made.rescore(ladder(2))
    np.testing.assert_array_equal(done.scores["a"], done.scores["b"])
    with pytest.raises(UserError, match="no such language model"):
        LatticeOptions({"a": LMSpec(str(tmp_path / "none"))}, {}).load()
