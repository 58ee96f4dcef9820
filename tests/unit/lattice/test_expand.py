import math
import zlib
from collections import Counter, defaultdict
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limited
from hypothesis import strategies as st
from lattices import all_paths, named_sums, random_lattice

from lmtools.base.batching import Numbering
from lmtools.base.errors import UserError
from lmtools.lattice import expand as module
from lmtools.lattice.expand import expand
from lmtools.lattice.histories import Mixture, MixtureLM
from lmtools.lattice.order import trim
from lmtools.types import Arc, Final, Lattice

END = "</s>"
SEEDS = st.integers(0, 10**9)


class Toy:
    """An LM that draws p(word | last `length` words) from a hash (None: all words)."""

    start = 0

    def __init__(self, salt: int, length: int | None = None):
        self.salt, self.length = salt, length
        self.prefixes, self.asked = Numbering(()), []

    def lacks(self, word):
        return False

    def probability(self, prefix: tuple[str, ...], word: str) -> float:
        """Between 0.05 and 1; not normalised, which nothing needs."""
        known = prefix[max(0, len(prefix) - self.length) :] if self.length is not None else prefix
        return 0.05 + 0.95 * zlib.crc32(f"{self.salt} {known} {word}".encode()) / 2**32

    def words(self, nodes, words):
        self.asked += zip(nodes.tolist(), words, strict=True)
        prefixes = [self.prefixes.things[node] for node in nodes.tolist()]
        longer = [(*prefix, word) for prefix, word in zip(prefixes, words, strict=True)]
        kept = [
            prefix[max(0, len(prefix) - self.length) :] if self.length is not None else prefix
            for prefix in longer
        ]
        scores = [
            math.log(self.probability(prefix, word))
            for prefix, word in zip(prefixes, words, strict=True)
        ]
        return np.array(scores), np.array(
            [self.prefixes(prefix) for prefix in kept], dtype=np.int64
        )

    def end(self, nodes):
        return np.log(
            [self.probability(self.prefixes.things[node], END) for node in nodes.tolist()]
        )

    def sentence(self, words: tuple[str, ...]) -> float:
        return sum(
            math.log(self.probability(words[:i], word)) for i, word in enumerate((*words, END))
        )


def marked(lattice: Lattice) -> Lattice:
    """The lattice whose arcs and finals bear their number as extras."""
    arcs, finals = (
        tuple(map(str, range(size))) for size in (len(lattice.words), len(lattice.finals))
    )
    return replace(lattice, extra={"at": arcs}, final_extra={"at": finals})


def by_origin(lattice: Lattice) -> dict[tuple, tuple[tuple, dict]]:
    """Words and score sums of each path, by where in the marked lattice it came from."""
    paths = all_paths(lattice)
    result = {
        (*(lattice.extra["at"][arc] for arc in arcs), lattice.final_extra["at"][final]): (
            words,
            named_sums(lattice, arcs, final),
        )
        for words, arcs, final in paths
    }
    assert len(result) == len(paths), "a path came out twice"
    return result


def assert_same_sums(sums: dict[str, float], expected: dict[str, float]) -> None:
    assert sums.keys() == expected.keys()
    assert all(sums[name] == pytest.approx(expected[name], abs=1e-9) for name in sums), (
        sums,
        expected,
    )


@limited(max_examples=60, deadline=None)
@given(SEEDS)
def test_exact_expansion_equals_rescoring_every_path(seed):
    """Two models, one never forgetting; impossible scores, epsilons, several ends."""
    lattice = marked(random_lattice(seed, impossible=0.05))
    toys = {"bi": Toy(seed, 1), "all": Toy(seed + 1)}
    expanded, messages = expand(
        lattice, toys, {"am": 1, "lm": 0.5, "bi": 2, "all": -1, "words": 0.3}
    )
    assert messages == []
    expected, found = by_origin(lattice), by_origin(expanded)
    assert found.keys() == expected.keys()
    for path, (words, sums) in found.items():
        assert words == expected[path][0]
        assert_same_sums(
            sums, expected[path][1] | {name: toy.sentence(words) for name, toy in toys.items()}
        )
    assert all(len(toy.asked) == len(set(toy.asked)) for toy in toys.values()), (
        "asked the same twice"
    )


@limited(max_examples=30, deadline=None)
@given(SEEDS)
def test_the_rest_of_the_lattice_is_kept(seed):
    lattice = marked(replace(random_lattice(seed), header={"base": "1.0001"}))
    expanded, _ = expand(lattice, {"toy": Toy(seed)}, {"am": 1, "toy": 1})
    origin = np.array([int(at) for at in expanded.extra["at"]], dtype=np.int64)
    final = np.array([int(at) for at in expanded.final_extra["at"]], dtype=np.int64)
    taken = lattice.take(origin, final)
    assert expanded.words == taken.words
    assert expanded.header == lattice.header
    assert expanded.utt == lattice.utt
    for name in lattice.scores:
        np.testing.assert_array_equal(expanded.scores[name], taken.scores[name])
        np.testing.assert_array_equal(expanded.final_scores[name], taken.final_scores[name])
    if lattice.times is not None:
        np.testing.assert_array_equal(expanded.times[expanded.source], lattice.times[taken.source])
        np.testing.assert_array_equal(expanded.times[expanded.target], lattice.times[taken.target])
        np.testing.assert_array_equal(expanded.times[expanded.finals], lattice.times[taken.finals])
    trimmed = trim(expanded)
    assert (trimmed.states, len(trimmed.words)) == (expanded.states, len(expanded.words)), (
        "dead states"
    )
    assert (expanded.source < expanded.target).all()
    assert (np.diff(expanded.source) >= 0).all()
    assert expanded.start == 0


def merged_by_hand(lattice: Lattice, toy: Toy, order: int, weight: float):
    """{(arc, before, after): score} and {(final, suffix): score}, by words."""
    ways = defaultdict(lambda: defaultdict(list))  # state -> suffix -> [(total, prefix)]
    ways[lattice.start][()].append((0.0, ()))
    arcs, finals = {}, {}
    for state in sorted(range(lattice.states), key=lambda state: (depth(lattice, state), state)):
        for suffix, found in ways[state].items():
            total, prefix = max(found, key=lambda way: way[0])
            for arc in np.flatnonzero(lattice.source == state).tolist():
                word = lattice.words[arc]
                score = 0.0 if word is None else math.log(toy.probability(prefix, word))
                longer = prefix if word is None else (*prefix, word)
                after = (
                    suffix if word is None else (*suffix, word)[max(0, len(suffix) + 2 - order) :]
                )
                arcs[arc, suffix, after] = score
                ways[int(lattice.target[arc])][after].append(
                    (total + lattice.scores["am"][arc] + weight * score, longer)
                )
            for final in np.flatnonzero(lattice.finals == state).tolist():
                finals[final, suffix] = math.log(toy.probability(prefix, END))
    return arcs, finals


def depth(lattice: Lattice, state: int) -> int:
    """The most arcs that lead to a state."""
    before = lattice.source[lattice.target == state].tolist()
    return 1 + max((depth(lattice, other) for other in before), default=0)


@limited(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 3))
def test_order_merges_histories_by_their_last_words(seed, order):
    lattice = trim(random_lattice(seed))
    noise = np.random.default_rng(seed).normal(size=len(lattice.words))  # no ties
    lattice = marked(replace(lattice, scores={**lattice.scores, "am": noise}))
    expanded, _ = expand(lattice, {"toy": Toy(seed)}, {"am": 1, "toy": 0.7}, order={"toy": order})
    arcs, finals = merged_by_hand(lattice, Toy(seed), order, 0.7)
    # every (arc, suffix before) once, as often as by hand, with its score
    found = Counter(
        (int(at), round(score, 9))
        for at, score in zip(expanded.extra["at"], expanded.scores["toy"], strict=True)
    )
    ends = Counter(
        (int(at), round(score, 9))
        for at, score in zip(expanded.final_extra["at"], expanded.final_scores["toy"], strict=True)
    )
    assert found == Counter((arc, round(score, 9)) for (arc, *_), score in arcs.items())
    assert ends == Counter((final, round(score, 9)) for (final, _), score in finals.items())
    assert by_origin(expanded).keys() == by_origin(lattice).keys()


@limited(max_examples=30, deadline=None)
@given(SEEDS)
def test_a_high_order_and_an_open_beam_are_exact(seed):
    lattice = marked(random_lattice(seed))
    toys = {"all": Toy(seed), "bi": Toy(seed + 1, 1)}
    expanded, _ = expand(
        lattice, toys, {"am": 1, "all": 3}, order={"all": 20, "bi": 2}, beam=1e9, tokens=10**6
    )
    expected = by_origin(lattice)
    for path, (words, sums) in by_origin(expanded).items():
        assert_same_sums(
            sums, expected.pop(path)[1] | {name: toy.sentence(words) for name, toy in toys.items()}
        )
    assert not expected


@limited(max_examples=40, deadline=None)
@given(SEEDS, st.sampled_from([{"tokens": 1}, {"tokens": 2}, {"beam": 0.0}, {"beam": 0.8}]))
def test_beam_and_tokens_drop_histories_and_nothing_else(seed, bounds):
    lattice, toy = marked(random_lattice(seed)), Toy(seed)
    weights = {"am": 1, "toy": 2.0}
    expanded, _ = expand(lattice, {"toy": toy}, weights, **bounds)
    everything, kept = by_origin(expand(lattice, {"toy": toy}, weights)[0]), by_origin(expanded)
    for path, (words, sums) in kept.items():
        assert_same_sums(sums, everything[path][1])
        assert words == everything[path][0]
    if bounds == {"tokens": 1}:
        assert expanded.states <= lattice.states


def test_a_beam_keeps_what_is_within_it():
    """Two histories meet; the worse one is 1 + log 2 below."""
    arcs = [Arc(0, 1, "a", {"am": -1.0}), Arc(0, 1, "b", {"am": -2.0}), Arc(1, 2, "c")]
    lattice = Lattice.of("u", 3, 0, arcs, [Final(2)])

    class Half(Toy):
        def probability(self, prefix, word):
            return 0.25 if word == "b" else 0.5

    for beam, states in ((1.69, 3), (1.7, 5)):
        expanded, _ = expand(lattice, {"toy": Half(0)}, {"am": 1, "toy": 1}, beam=beam)
        assert expanded.states == states
    # now b is better
    expanded, _ = expand(lattice, {"toy": Half(0)}, {"am": 1, "toy": -2}, tokens=1)
    assert expanded.words == ("b", "c")


@pytest.mark.parametrize(("weight", "word"), [(1, "a"), (-1, "a"), (0, "b")])
def test_what_a_model_finds_impossible_is_worst_unless_it_does_not_count(weight, word):
    arcs = [Arc(0, 1, "a", {"am": -9.0}), Arc(0, 1, "b", {"am": -1.0}), Arc(1, 2, "c")]

    class Sure(Toy):
        def words(self, nodes, words):
            return (
                np.array([-math.inf if word == "b" else -1.0 for word in words]),
                super().words(nodes, words)[1],
            )

    expanded, _ = expand(
        Lattice.of("u", 3, 0, arcs, [Final(2)]),
        {"toy": Sure(0)},
        {"am": 1, "toy": weight},
        tokens=1,
    )
    assert expanded.words == (word, "c")


def ladder(rungs: int) -> Lattice:
    """2^rungs paths, no two with the same words."""
    arcs = [
        Arc(i, i + 1, f"{word}{i}", {"am": -number / 3})
        for i in range(rungs)
        for number, word in enumerate("ab")
    ]
    return Lattice.of("tall", rungs + 1, 0, arcs, [Final(rungs)])


def test_what_would_not_fit_is_pruned_with_a_message():
    lattice, toy = marked(ladder(12)), Toy(1)
    expanded, messages = expand(lattice, {"toy": toy}, {"am": 1, "toy": 0.1}, states=50)
    assert expanded.states <= 50
    (message,) = messages
    assert message.startswith(
        "tall: splits into more than 50 states and 800 arcs; pruned from 24 to "
    )
    assert "\n" not in message
    paths = by_origin(expanded)
    assert ("0", *map(str, range(2, 24, 2)), "0") in paths, "the best path must stay"
    for words, sums in paths.values():
        assert sums["toy"] == pytest.approx(toy.sentence(words))


def test_a_single_path_fits_any_budget():
    expanded, messages = expand(ladder(12), {"toy": Toy(1)}, {"am": 1}, states=1)
    assert expanded.words == tuple(f"a{i}" for i in range(12))
    assert messages


def test_the_budget_bounds_arcs_too(monkeypatch):
    monkeypatch.setattr(module, "ARCS", 1)
    arcs = [Arc(0, 1, "a", {"am": -float(i)}) for i in range(100)]
    lattice = Lattice.of("wide", 2, 0, arcs, [Final(1)])
    expanded, messages = expand(lattice, {"toy": Toy(1)}, {"am": 1}, states=30)
    assert len(expanded.words) == 25 and messages
    assert expanded.scores["am"].min() == -24


@limited(max_examples=30, deadline=None)
@given(SEEDS)
def test_an_old_model_is_parted_from_the_graph_score(seed):
    lattice = random_lattice(seed)
    lattice = marked(
        replace(
            lattice,
            scores={"am": lattice.scores["am"], "graph": lattice.scores["lm"]},
            final_scores={"am": lattice.final_scores["am"], "graph": lattice.final_scores["lm"]},
        )
    )
    old, new = Toy(seed, 2), Toy(seed + 1)
    expanded, _ = expand(lattice, {"new": new}, {"am": 1, "graph": 1, "new": 1}, old=old)
    expected = by_origin(lattice)
    for path, (words, sums) in by_origin(expanded).items():
        before = expected.pop(path)[1]
        assert sums["graph"] + sums["lm"] == pytest.approx(before["graph"], abs=1e-9)
        assert_same_sums(
            sums,
            before
            | {"graph": sums["graph"], "lm": old.sentence(words), "new": new.sentence(words)},
        )
    assert not expected


def test_totals_with_an_old_model_are_those_of_the_parted_scores():
    """graph has weight 1 and the old model none, so that what it said against b must not count."""
    arcs = [Arc(0, 1, "a", {"graph": -1.0}), Arc(0, 1, "b", {"graph": -1.5}), Arc(1, 2, "c")]
    lattice = Lattice.of("u", 3, 0, arcs, [Final(2)])

    class Old(Toy):
        def probability(self, prefix, word):
            return {"b": math.exp(-1.2)}.get(word, 1.0)

    for weights, word in (
        ({"graph": 1}, "b"),
        ({"graph": 1, "lm": 1}, "a"),
        ({"lm": -1}, "b"),
        ({"lm": 1}, "a"),
    ):
        expanded, _ = expand(lattice, {}, weights, old=Old(0), tokens=1)
        assert expanded.words == (word, "c"), weights


@limited(max_examples=30, deadline=None)
@given(SEEDS)
def test_a_mixture_adds_probabilities_word_by_word(seed):
    lattice = marked(random_lattice(seed))
    parts, weights = [Toy(seed), Toy(seed + 1, 1), Toy(seed + 2, 0)], [0.5, 0.3, 0.2]
    expanded, _ = expand(lattice, {"mix": Mixture(parts, weights)}, {"am": 1, "mix": 1})
    for words, sums in by_origin(expanded).values():
        steps = [(words[:i], word) for i, word in enumerate((*words, END))]
        expected = [
            math.log(
                sum(w * part.probability(*step) for w, part in zip(weights, parts, strict=True))
            )
            for step in steps
        ]
        assert sums["mix"] == pytest.approx(math.fsum(expected), abs=1e-9)
    assert all(len(part.asked) == len(set(part.asked)) for part in parts)


def test_equal_histories_of_a_mixture_are_one():
    """Bigram and unigram toys: after the same word, the past is forgotten."""
    toys = Mixture([Toy(1, 1), Toy(2, 0)], [0.5, 0.5])
    expanded, _ = expand(ladder(5), {"mix": toys}, {})
    assert expanded.states == 1 + 2 * 5


def test_a_mixture_needs_weights_that_sum_to_one():
    one = SimpleNamespace(
        signature={"lm": "toy", "model": "t", "version": "1"}, prefixes=lambda: Toy(1)
    )
    for weights in ([0.5, 0.4], [1.0], [1.5, -0.5], [1.0, 0.0], [math.nan, 1.0]):
        with pytest.raises(UserError, match="mixture of 2 language models"):
            MixtureLM([one, one], weights)
    lm = MixtureLM([one, one], [0.25, 0.75])
    assert lm.signature == {"lm": "mixture", "model": "0.25*t+0.75*t", "version": "1"}
    assert lm.prefixes().end(np.array([0])) == pytest.approx(math.log(Toy(1).probability((), END)))


def test_refusals():
    lattice = ladder(2)
    with pytest.raises(UserError, match="tall: the lattice has a score 'am' already; give"):
        expand(lattice, {"am": Toy(1)}, {"am": 1})
    with pytest.raises(UserError, match="no score 'nn'"):
        expand(lattice, {"toy": Toy(1)}, {"nn": 1})
    cyclic = Lattice.of("u", 2, 0, [Arc(0, 1, "a"), Arc(1, 0, "b")], [Final(1)])
    with pytest.raises(UserError, match="u: cycle"):
        expand(cyclic, {"toy": Toy(1)}, {})
    dead = Lattice.of("u", 3, 0, [Arc(0, 1, "a")], [Final(2)])
    with pytest.raises(UserError, match="u: no possible path"):
        expand(dead, {"toy": Toy(1)}, {})


def test_the_empty_sentence():
    lattice = Lattice.of("u", 1, 0, [], [Final(0, {"am": -1.0})])
    expanded, _ = expand(lattice, {"toy": Toy(3)}, {"am": 1, "toy": 1}, order={"toy": 2})
    assert (expanded.states, expanded.words) == (1, ())
    assert expanded.final_scores["toy"][0] == pytest.approx(Toy(3).sentence(()))


def test_shared_words_are_one_node_whatever_arcs_they_are_on():
    """Copies of one sentence with other times collapse into as many states as the lattice has."""
    arcs = [
        Arc(i, i + 1, word, {"am": -float(copy)})
        for i, word in enumerate("abc")
        for copy in range(4)
    ]
    expanded, _ = expand(Lattice.of("u", 4, 0, arcs, [Final(3)]), {"toy": Toy(1)}, {"am": 1})
    assert (expanded.states, len(expanded.words)) == (4, 12)
