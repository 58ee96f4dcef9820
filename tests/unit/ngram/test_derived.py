"""Mixing, pruning and quantising against their definitions, by brute force on toy models."""

import itertools
import math
import random

import numpy as np
import pytest

from lmtools import cli
from lmtools.base.errors import UserError
from lmtools.base.seal import read_json
from lmtools.ngram import (
    Description,
    NgramModel,
    arpa,
    arrays,
    backoff,
    build,
    derived,
    interpolation,
)
from lmtools.ngram.kenlm_files import find_program
from lmtools.text import Normaliser
from lmtools.text.subword import load_subword

WORDS = [f"w{i}" for i in range(7)]


def draw_lines(seed, words, number=40):
    draw = random.Random(seed)
    return [
        " ".join(words[int(len(words) * draw.random() ** 2)] for _ in range(draw.randrange(8)))
        for _ in range(number)
    ]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Two trigram models, a and b, whose vocabularies differ by a word each; and a tuning text."""
    home = tmp_path_factory.mktemp("mix")
    for name, seed, words in (("a", 1, WORDS[:6]), ("b", 2, WORDS[:0:-1]), ("t", 3, WORDS)):
        lines = [" ".join(words), *draw_lines(seed, words)]
        (home / f"{name}.txt").write_text("\n".join(lines) + "\n")
    for name in "ab":
        build([home / f"{name}.txt"], 3, home / name, Normaliser(), kenlm="none")
    return home


def brute(path):
    """p(word | history) by the definition of back-off, in dicts; 0 of words that are not there."""
    orders = arpa.read(path)

    def prob(*words):
        if words in orders[len(words) - 1]:
            return 10 ** orders[len(words) - 1][words][0]
        if len(words) == 1:
            return 0.0
        context = orders[len(words) - 2].get(words[:-1])
        return (10 ** context[1] if context else 1) * prob(*words[1:])

    return prob, orders


def histories(path):
    """All that precede a word in an ARPA file, and two that none has."""
    orders = arpa.read(path)
    found = {words[:-1] for order in orders for words in order}
    return sorted(found | {("w0", "w0"), ("<unk>", "w1")})


def sums(path):
    """The sum of probabilities of all words but <s> after each history."""
    prob, orders = brute(path)
    words = [word for (word,) in orders[0] if word != "<s>"]
    return [sum(prob(*history, word) for word in words) for history in histories(path)]


def test_the_static_mixture_is_the_mean_of_every_ngram(home):
    made, weights = derived.mix([home / "a", home / "b"], home / "fixed", [0.3], kenlm="none")
    assert weights.tolist() == pytest.approx([0.3, 0.7])
    (a, a_orders), (b, b_orders) = brute(home / "a/lm.arpa"), brute(home / "b/lm.arpa")
    orders = arpa.read(home / "fixed/lm.arpa")
    assert made.counts == [len(order) for order in orders]
    for order, mine, other in zip(orders, a_orders, b_orders, strict=True):
        assert set(order) == set(mine) | set(other)
        for words, (log_prob, _) in order.items():
            if words != ("<s>",):
                expected = 0.3 * a(*words) + 0.7 * b(*words)
                assert 10**log_prob == pytest.approx(expected, rel=3e-6)
    np.testing.assert_allclose(sums(home / "fixed/lm.arpa"), 1, atol=2e-5)


def test_weights_are_those_of_greatest_probability(home):
    _, weights = derived.mix(
        [home / "a", home / "b"], home / "tuned", texts=[home / "t.txt"], kenlm="none"
    )
    a, b = brute(home / "a/lm.arpa")[0], brute(home / "b/lm.arpa")[0]
    pairs = []
    for line in (home / "t.txt").read_text().splitlines():
        words = ["<s>", *line.split(), "</s>"]
        if line.split():
            windows = [words[max(0, i - 2) : i + 1] for i in range(1, len(words))]
            pairs += [(a(*window), b(*window)) for window in windows]
    mine, other = np.array(pairs).T
    low, high = 0.0, 1.0  # of the derivative, which falls in the weight
    for _ in range(60):
        middle = (low + high) / 2
        slope = ((mine - other) / (middle * mine + (1 - middle) * other)).sum()
        low, high = (middle, high) if slope > 0 else (low, middle)
    assert 0.01 < low < 0.99
    assert weights[0] == pytest.approx(low, abs=1e-6)


def pruned_by_definition(path, threshold):
    """The n-grams that stay: each taken out alone, the relative entropy summed over all words."""
    prob, orders = brute(path)
    words = [word for (word,) in orders[0] if word != "<s>"]

    def chance(history):
        first = "</s>" if history[0] == "<s>" else history[0]
        value = prob(first)
        for i in range(1, len(history)):
            value *= prob(*history[: i + 1])
        return value

    def change(gram):
        history = gram[:-1]
        listed = [word for word in words if (*history, word) in orders[len(gram) - 1]]
        left = [word for word in listed if word != gram[-1]]
        weight = (1 - sum(prob(*history, word) for word in left)) / (
            1 - sum(prob(*history[1:], word) for word in left)
        )
        entropy = 0.0
        for word in words:
            p = prob(*history, word)
            q = p if word in left else weight * prob(*history[1:], word)
            entropy += p * math.log(p / q)
        return math.expm1(chance(history) * entropy)

    kept = [set(orders[0])]
    above = set()
    for order in reversed(orders[1:]):
        stay = {gram for gram in order if change(gram) >= threshold or gram in above}
        above = {gram[:-1] for gram in stay}
        kept.insert(1, stay)
    return kept, orders


@pytest.mark.parametrize("threshold", [1e-4, 1e-3, 4e-3])
def test_pruning_is_by_definition(home, tmp_path, threshold):
    made, before = derived.prune(home / "a", tmp_path / "out", threshold, kenlm="none")
    kept, orders = pruned_by_definition(home / "a/lm.arpa", threshold)
    result = arpa.read(tmp_path / "out/lm.arpa")
    assert before == [len(order) for order in orders]
    assert 0 < sum(map(len, kept[1:])) < sum(before[1:])
    assert [set(order) for order in result] == kept[: made.order]
    assert all(
        result[n][words][0] == orders[n][words][0] for n in range(made.order) for words in kept[n]
    )
    np.testing.assert_allclose(sums(tmp_path / "out/lm.arpa"), 1, atol=2e-5)


def test_pruning_by_nothing_changes_nothing(home, tmp_path):
    made, before = derived.prune(home / "a", tmp_path / "out", 0.0, kenlm="none")
    assert made.counts == before
    prob, again = brute(home / "a/lm.arpa")[0], brute(tmp_path / "out/lm.arpa")[0]
    for words in itertools.product(["<s>", *WORDS], WORDS, [*WORDS, "</s>"]):
        assert again(*words) == pytest.approx(prob(*words), rel=1e-4)


def test_the_results_are_models_as_any(home, tmp_path):
    derived.mix([home / "a", home / "b"], tmp_path / "c", [0.5, 0.5], kenlm="none")
    model = NgramModel.load(tmp_path / "c")
    ids = arrays.new_vocabulary()
    mine = arrays.read_arpa(tmp_path / "c/lm.arpa", ids)
    sentence = ["w1", "w2", "w6", "w0"]
    found = interpolation.token_probabilities([mine], [[ids[word] for word in sentence]])
    np.testing.assert_allclose(
        np.exp(model.conditional(" ".join(sentence))[0]), found[0], rtol=1e-4
    )


def test_perplexity_is_that_of_the_mixture_at_run_time(home, tmp_path):
    text, subword = str(home / "t.txt"), str(tmp_path / "subword")
    words = ["--vocab-size", "12", "--out", subword]
    assert cli.main(["subword", "--text", text, "--type", "word", *words]) == 0
    both = []
    for name, seed in (("a", 4), ("b", 5)):
        large = tmp_path / f"{name}.txt"
        large.write_text("\n".join(draw_lines(seed, WORDS, 400)) + "\n")
        build([large], 3, tmp_path / name, load_subword(subword), kenlm="none", closed=True)
        both.append(str(tmp_path / name))
    found = []
    for lms in (both, [str(tmp_path / "c")]):
        out = tmp_path / "ppl.json"
        options = [word for lm in lms for word in ("--lm", lm)]
        tuned = ["--tune-on", text] if len(lms) > 1 else []
        call = ["ppl", "--text", text, *options, *tuned, "--cache", "none", "--out", str(out)]
        if len(lms) == 1:
            more = ["--text", text, "--kenlm", "none", "--out", *lms]
            assert cli.main(["ngram", "mix", *both, *more]) == 0
        assert cli.main(call) == 0
        found.append(read_json(out))
    assert found[1]["word_ppl"] == pytest.approx(found[0]["word_ppl"], rel=1e-3)
    weights = [part["weight"] for part in found[0]["mixture"]]
    facts = Description.load(tmp_path / "c").facts["mixture"]
    assert [part["weight"] for part in facts] == pytest.approx(weights, abs=1e-4)


def test_order_and_size_may_differ(home, tmp_path):
    build([home / "b.txt"], 1, tmp_path / "uni", Normaliser(), kenlm="none")
    made, _ = derived.mix([home / "a", tmp_path / "uni"], tmp_path / "c", [0.5], kenlm="none")
    assert made.order == 3
    np.testing.assert_allclose(sums(tmp_path / "c/lm.arpa"), 1, atol=2e-5)
    bare, _ = derived.mix(
        [home / "a/lm.arpa", home / "b/lm.arpa"], tmp_path / "bare", [0.5], kenlm="none"
    )
    assert bare.tokens == 0 and load_subword(tmp_path / "bare/subword").size > len(WORDS)


def test_bigrams_of_other_words_are_mixed(tmp_path):
    for name in "ab":
        lines = [" ".join(f"{name}{i * j % 97}" for j in range(5)) for i in range(200)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        build([tmp_path / name], 2, tmp_path / f"{name}.lm", Normaliser(), kenlm="none")
    lms = tmp_path / "a.lm", tmp_path / "b.lm"
    texts = [tmp_path / "a", tmp_path / "a", tmp_path / "b"]
    _, weights = derived.mix(lms, tmp_path / "mixed", texts=texts, kenlm="none")
    assert weights == pytest.approx([2 / 3, 1 / 3], abs=0.05)
    mixed = arpa.read(tmp_path / "mixed/lm.arpa")
    alone = [arpa.read(lm / "lm.arpa") for lm in lms]
    assert set(mixed[1]) == set(alone[0][1]) | set(alone[1][1])
    bigram = next(words for words in mixed[1] if words[1].startswith("a"))
    expected = math.log10(weights[0] * 10 ** alone[0][1][bigram][0])
    assert mixed[1][bigram][0] == pytest.approx(expected, abs=2e-6)


def test_blocks_do_not_change_a_mixture(home, tmp_path, monkeypatch):
    lms = home / "a", home / "b"
    derived.mix(lms, tmp_path / "whole", [0.3, 0.7], kenlm="none")
    monkeypatch.setattr("lmtools.ngram.backoff.CHUNK", 7)
    monkeypatch.setattr("lmtools.ngram.backoff.STEP", 3)
    monkeypatch.setattr("lmtools.ngram.arrays.TOGETHER", 5)
    derived.mix(lms, tmp_path / "pieces", [0.3, 0.7], kenlm="none")
    first, second = (tmp_path / name / "lm.arpa" for name in ("whole", "pieces"))
    assert first.read_bytes() == second.read_bytes()


def test_an_ngram_that_is_there_twice_is_refused(tmp_path):
    path = tmp_path / "lm.arpa"
    path.write_text(
        "\\data\\\nngram 1=3\nngram 2=3\n\n\\1-grams:\n-1\t<unk>\n-1\t</s>\n-0.5\ta\n\n"
        "\\2-grams:\n-0.5\ta a\n-0.6\ta </s>\n-0.7\ta a\n\n\\end\\\n"
    )
    with pytest.raises(UserError, match=r"lm.arpa: its section of order 2 has an n-gram twice"):
        derived.prune(path, tmp_path / "out", 1e-8, kenlm="none")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size", [0, 1, 5, 2000])
def test_sorted_keys_are_found_in_parts(size):
    keys = np.random.default_rng(size).integers(0, 500, (2, size))
    keys.sort()
    assert np.array_equal(backoff.search_sorted(*keys), np.searchsorted(*keys))


def test_long_models_are_read_in_pieces(home, monkeypatch):
    whole = arrays.read_arpa(home / "a/lm.arpa", arrays.new_vocabulary())
    monkeypatch.setattr("lmtools.ngram.arrays.CHUNK", 100)
    monkeypatch.setattr("lmtools.ngram.backoff.CHUNK", 7)
    again = arrays.read_arpa(home / "a/lm.arpa", arrays.new_vocabulary())
    for one, other in zip(whole.levels, again.levels, strict=True):
        assert np.array_equal(one.key, other.key) and np.array_equal(one.prob, other.prob)


@pytest.mark.parametrize(
    "change, cause",
    [
        (("w0 w1\t", "w0 w1 x\t"), ": expected log10 probability, TAB, 2 words"),
        (("ngram 2=", "ngram 2=9"), ": "),
        (("\\3-grams:", "\\4-grams:"), ": "),
    ],
)
def test_damaged_files_are_named(home, tmp_path, change, cause):
    path = tmp_path / "lm.arpa"
    text = (home / "a/lm.arpa").read_text()
    assert change[0] in text
    path.write_text(text.replace(*change))
    with pytest.raises(UserError, match=f"lm.arpa{cause}|lm.arpa:[0-9]+{cause}"):
        arrays.read_arpa(path, arrays.new_vocabulary())


def test_other_tokens_are_refused(home, tmp_path):
    build([home / "b.txt"], 2, tmp_path / "upper", Normaliser(case="upper"), kenlm="none")
    with pytest.raises(UserError, match="models other tokens than"):
        derived.mix([home / "a", tmp_path / "upper"], tmp_path / "c", [0.5], kenlm="none")
    assert not (tmp_path / "c").exists()


def test_commands(home, tmp_path, capsys):
    a, b, text = (str(home / name) for name in ("a", "b", "t.txt"))
    out = str(tmp_path / "c")
    more = ["--kenlm", "none", "--out", out]
    assert cli.main(["ngram", "mix", a, b, "--text", text, *more]) == 0
    printed = capsys.readouterr().out
    assert f" {a}\n" in printed and "3-gram mixture, n-grams " in printed
    more = ["--kenlm", "none", "--out", str(tmp_path / "d")]
    assert cli.main(["ngram", "prune", out, "--threshold", "1e-3", *more]) == 0
    assert " of " in capsys.readouterr().out
    assert cli.main(["ngram", "mix", a, b, "--mix", "2", *more]) == 1
    assert "give a weight from 0 for each of 2 models" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["ngram", "--text", text])
    assert "required: --order, --out" in capsys.readouterr().err


@pytest.mark.skipif(find_program() is None, reason="KenLM's build_binary is not installed")
def test_quantised_tries_are_smaller_and_close(home, tmp_path, capsys):
    large = tmp_path / "large.txt"
    words = [f"x{i}" for i in range(300)]
    large.write_text("\n".join(draw_lines(5, words, 3000)) + "\n")
    build([large], 3, tmp_path / "lm", Normaliser())
    call = ["ngram", "quantize", str(tmp_path / "lm"), "--out", str(tmp_path / "q")]
    assert cli.main(call) == 0
    assert "'probability': 8" in capsys.readouterr().out
    sizes = [(tmp_path / name / "lm.bin").stat().st_size for name in ("lm", "q")]
    assert sizes[1] < sizes[0] / 2
    line = "x1 x5 x0 x7 x200"
    found, close = (NgramModel.load(tmp_path / name).conditional(line)[0] for name in ("lm", "q"))
    np.testing.assert_allclose(close, found, atol=0.1)
    assert not np.array_equal(close, found)


FEW = """\\data\\
ngram 1=4
ngram 2=1
ngram 3=1

\\1-grams:
-1 <unk>
-1 <s> -0.3
-1 </s>
-1 the -0.2

\\2-grams:
-0.5 <s> the -0.1

\\3-grams:
-0.2 <s> the </s>

\\end\\
"""


def test_an_order_of_one_ngram(tmp_path):
    """Its suffixes are looked up, or absent, and no index."""
    lm = tmp_path / "x.arpa"
    lm.write_text(FEW)
    description, _ = derived.mix([lm, lm], tmp_path / "mixed", [0.5], kenlm="none")
    assert description.counts == [4, 1, 1]
    pruned, before = derived.prune(lm, tmp_path / "pruned", 0, kenlm="none")
    assert pruned.counts == before == [4, 1, 1]
    prob, _ = brute(tmp_path / "mixed/lm.arpa")
    assert prob("<s>", "the", "</s>") == pytest.approx(10**-0.2)
    assert prob("the", "</s>") == pytest.approx(10**-1, rel=1e-5)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2"])
def test_an_arpa_file_is_written_where_one_is_named(home, tmp_path, capsys, suffix):
    """It has the n-grams that the directory has, and keeps no pieces and no normaliser."""
    text, a, b = home / "a.txt", home / "a", home / "b"
    for typed in (
        f"--text {text} --order 2",
        f"--text {text} --order 2 --normaliser librispeech",
        f"mix {a} {b} --mix 0.5",
        f"prune {a} --threshold 1e-3",
    ):
        command = f"ngram {typed} --kenlm none".split()
        out, plain = tmp_path / f"words.arpa{suffix}", tmp_path / "plain"
        assert cli.main([*command, "--out", str(out)]) == 0
        assert ("keeps no normaliser" in capsys.readouterr().err) == ("librispeech" in typed)
        assert cli.main([*command, "--out", str(plain)]) == 0
        assert out.is_file() and arpa.read(out) == arpa.read(plain / "lm.arpa")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plain", out.name]
    subword = ["subword", "--text", str(text), "--type", "word", "--out", str(tmp_path / "list")]
    assert cli.main(subword) == 0
    closed = f"ngram --text {text} --order 2 --subword {tmp_path / 'list'} --unk --out {out}"
    assert cli.main(closed.split()) == 1
    assert "cannot hold the vocabulary that --unk closes" in capsys.readouterr().err
