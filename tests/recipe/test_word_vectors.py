"""egs/stsb/local/word_vectors.py: counts and PPMI by brute force, words of equal contexts, equal
bytes, and wrong input.
"""

import contextlib
import importlib.util
import io
import math
import random
import runpy
import sys
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmtools.vectors.static import StaticVectors

SCRIPT = Path(__file__).parents[2] / "egs/stsb/local/word_vectors.py"
LINES = st.lists(st.lists(st.sampled_from("abcde"), max_size=7), min_size=1, max_size=9)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("word_vectors", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(*options) -> tuple[int, str]:
    """The script run to its end in this process: its exit status and what it said."""
    said = io.StringIO()
    with (
        mock.patch.object(sys, "argv", [str(SCRIPT), *map(str, options)]),
        contextlib.redirect_stderr(said),
    ):
        try:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        except SystemExit as end:
            return (
                (end.code, said.getvalue()) if isinstance(end.code, int) else (1, f"{end.code}\n")
            )
    return 0, said.getvalue()


def write(path: Path, lines) -> Path:
    path.write_text("".join(f"{' '.join(line)}\n" for line in lines))
    return path


def brute_counts(lines: list[list[str]], window: int, min_count: int) -> Counter[tuple[str, str]]:
    """How often each word has each other near it, one token at a time."""
    total = Counter(word for line in lines for word in line)
    pairs = Counter()
    for line in lines:
        kept = [word for word in line if total[word] >= min_count]
        for i, word in enumerate(kept):
            pairs.update((word, kept[j]) for j in range(len(kept)) if 0 < abs(i - j) <= window)
    return pairs


def brute_ppmi(pairs: Counter[tuple[str, str]], word: str, context: str) -> float:
    """Positive pointwise mutual information by definition, context counts to the 0.75."""
    if not pairs[word, context]:
        return 0.0
    everything = sum(pairs.values())
    of_word = sum(count for (w, _), count in pairs.items() if w == word)
    smoothed = Counter()
    for (_, c), count in pairs.items():
        smoothed[c] += count
    share = smoothed[context] ** 0.75 / sum(count**0.75 for count in smoothed.values())
    return max(0.0, math.log(pairs[word, context] / everything / (of_word / everything * share)))


@given(lines=LINES, window=st.integers(1, 4), min_count=st.integers(1, 3))
def test_counts_and_ppmi_by_brute_force(script, tmp_path_factory, lines, window, min_count):
    path = write(tmp_path_factory.getbasetemp() / "tiny.txt", lines)
    words, ids, places = script.frequent(str(path), min_count)
    total = Counter(word for line in lines for word in line)
    assert words == [word for word, count in total.most_common() if count >= min_count]
    counts = script.cooccurrences(ids, places, len(words), window)
    expected = brute_counts(lines, window, min_count)
    np.testing.assert_array_equal(
        counts.toarray(),
        np.array([[expected[a, b] for b in words] for a in words]).reshape(counts.shape),
    )
    values = np.array([[brute_ppmi(expected, a, b) for b in words] for a in words]).reshape(
        counts.shape
    )
    np.testing.assert_allclose(script.ppmi(counts).toarray(), values, atol=1e-12)


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """Lines about animals and tools; `cat` and `dog` share contexts, never a line."""
    draw = random.Random(1)
    about = [
        (["cat", "dog"], ["fur", "tail", "paws", "barn", "milk"]),
        (["saw", "axe"], ["wood", "steel", "edge", "bench", "oil"]),
    ]
    lines = []
    for _ in range(600):
        names, contexts = draw.choice(about)
        lines.append(
            [draw.choice(names), "The", *draw.sample(contexts, 3), draw.choice(["and,", "or."])]
        )
    return write(tmp_path_factory.mktemp("words") / "text.txt", lines)


def test_words_of_equal_contexts_have_similar_vectors(text, tmp_path):
    out = tmp_path / "v.txt"
    assert call("--text", text, "--out", out, "--dim", 5) == (0, "")
    vector = {
        word: np.array(rest, dtype=float)
        for word, *rest in map(str.split, out.read_text().splitlines()[1:])
    }

    def cosine(one: str, other: str) -> float:
        return (
            vector[one]
            @ vector[other]
            / np.linalg.norm(vector[one])
            / np.linalg.norm(vector[other])
        )

    assert min(cosine("cat", "dog"), cosine("saw", "axe")) > 0.9
    assert max(cosine(a, b) for a in ("cat", "dog") for b in ("saw", "axe")) < 0.5
    encoder = StaticVectors(out)  # what it writes is what the baseline reads, header, words and all
    assert encoder.vectors(encoder.prepare(["Dog and AXE"]))[0, 0] == pytest.approx(
        (vector["dog"] + vector["and"] + vector["axe"]) / 3, rel=1e-5, abs=1e-6
    )
    assert not encoder.missing and (encoder.count, encoder.width) == (17, 5)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "bad.txt: 0 words come 3 times or more, too few for vectors of 2; "),
        (["a b c d"] * 2, "bad.txt: 0 words come 3 times"),
        (["a b"] * 9, "bad.txt: 2 words come 3 times"),
        (list("abcd") * 9, "bad.txt: no word tells of another; "),
    ],
)
def test_a_text_that_is_too_small_is_one_line(tmp_path, lines, message):
    path = write(tmp_path / "bad.txt", map(str.split, lines))
    status, said = call("--text", path, "--out", tmp_path / "none.txt", "--dim", 2)
    assert (status, said.count("\n")) == (1, 1)
    assert said.startswith(f"word_vectors.py: {tmp_path}/{message}")
    assert [file.name for file in tmp_path.iterdir()] == ["bad.txt"]


def test_options_that_are_no_numbers_are_refused(text, tmp_path):
    status, said = call("--text", text, "--out", tmp_path / "v.txt", "--window", 0)
    assert status == 2 and "--window: invalid positive value: '0'" in said
