"""Our n-gram estimator against KenLM's lmplz: the same entries, the same probabilities and back-off
weights.
"""

import gzip
import itertools
import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.ngram import NgramModel, build, derived
from lmtools.ngram.kenlm_files import SCRIPT, find_program
from lmtools.text import Normaliser

ROOT = Path(__file__).parents[2]
MINI = ROOT / "egs/librispeech/mini/train.txt.xz"
LINES = 20_000
PROGRAM = find_program()
LMPLZ = PROGRAM and PROGRAM.with_name("lmplz")
needs_kenlm = pytest.mark.skipif(
    not (LMPLZ and LMPLZ.exists()), reason=f"no lmplz and build_binary; {SCRIPT} builds them"
)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The recipe's text where it stands, else words by Zipf's law with preferences."""
    path = tmp_path_factory.mktemp("text") / "text"
    lines = (
        [line for _, line in itertools.islice(read_lines(MINI), LINES) if line.strip()]
        if MINI.exists()
        else zipfian()
    )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def zipfian() -> list[str]:
    """LINES sentences of about 12 words."""
    draw = np.random.default_rng(1)
    words = [draw.zipf(1.3, size=draw.integers(1, 24)) % 5000 for _ in range(LINES)]
    for sentence in words:
        follow = draw.random(len(sentence) - 1) < 0.5
        # half of the words follow from the one before
        sentence[1:][follow] = (sentence[:-1][follow] * 7 + 1) % 5000
    return [" ".join(f"w{word}" for word in sentence) for sentence in words]


def lmplz(text: Path, order: int, arpa: Path, *more: str) -> None:
    """Write lmplz's model of `text`."""
    options = [*f"-o {order} -S 200M --discount_fallback -T {arpa.parent}/".split(), *more]
    command = [LMPLZ, *options, "--text", text, "--arpa", arpa]
    subprocess.run(command, check=True, capture_output=True)


def columns(path: Path) -> tuple[list[str], np.ndarray]:
    """The words of each entry of an ARPA file, and (entries, 2) its numbers or 0."""
    rows = [line.split("\t") for _, line in read_lines(path) if "\t" in line]
    return [row[1] for row in rows], np.array(
        [(row[0], row[2] if len(row) > 2 else 0) for row in rows], dtype=np.float64
    )


def agree(ours: Path, theirs: Path) -> None:
    """Both files have the same entries, with numbers that differ by less than 1e-4."""
    (words, numbers), (their_words, their_numbers) = columns(ours), columns(theirs)
    assert words == their_words
    np.testing.assert_allclose(numbers, their_numbers, rtol=0, atol=1e-5)


@needs_kenlm
@pytest.mark.parametrize("order", range(1, 6))
def test_equal_on_text_of_real_size(text, tmp_path, order):
    made = build([text], order, tmp_path / "lm", Normaliser(), kenlm="none")
    assert not made.fallback
    lmplz(text, order, tmp_path / "theirs.arpa")
    agree(tmp_path / "lm/lm.arpa", tmp_path / "theirs.arpa")


@needs_kenlm
@pytest.mark.parametrize(("order", "least"), [(3, (1, 1, 2)), (4, (1, 2, 2, 3)), (2, (1, 4))])
def test_equal_with_cut_offs(text, tmp_path, order, least):
    build([text], order, tmp_path / "lm", Normaliser(), kenlm="none", min_counts=least)
    lmplz(text, order, tmp_path / "theirs.arpa", "--prune", *(str(one - 1) for one in least))
    agree(tmp_path / "lm/lm.arpa", tmp_path / "theirs.arpa")


@needs_kenlm
def test_equal_on_tiny_texts(tmp_path):
    """Here fallback discounts, orders without entries and single counts of counts matter."""
    for seed in range(40):
        draw = random.Random(seed)
        vocabulary = draw.choice([1, 2, 5, 30])
        lines = draw.choice([1, 3, 20, 200, 1000])
        longest = draw.choice([1, 3, 12])
        words = (f"w{int(vocabulary * draw.random() ** 3)}" for _ in itertools.count())
        text = tmp_path / f"text{seed}"
        text.write_text(
            "".join(
                " ".join(itertools.islice(words, draw.randint(1, longest))) + "\n"
                for _ in range(lines)
            )
        )
        order = draw.randint(1, 6)
        build([text], order, tmp_path / f"lm{seed}", Normaliser(), kenlm="none")
        lmplz(text, order, tmp_path / "theirs.arpa")
        agree(tmp_path / f"lm{seed}/lm.arpa", tmp_path / "theirs.arpa")


@needs_kenlm
def test_equal_on_awkward_text(text, tmp_path):
    """As of what lmplz gets without reserved words and empty lines; lm.bin scores as lm.arpa."""
    awkward, clean = tmp_path / "awkward", tmp_path / "clean"
    awkward.write_text("W1 <s> w2\n\n<unk>\nw3 w4\n")
    clean.write_text(text.read_text().lower() + "w1 w2\nw3 w4\n")
    made = build([text, awkward], 3, tmp_path / "ours", Normaliser(case="lower"))
    assert made.reserved == 2 and made.file == "lm.bin"
    lmplz(clean, 3, tmp_path / "theirs.arpa")
    agree(tmp_path / "ours/lm.arpa", tmp_path / "theirs.arpa")
    sentences = [line.lower() for _, line in itertools.islice(read_lines(text), 500)]
    sentences += ["", "nothing known here"]
    binary, plain = (NgramModel.load(tmp_path / name) for name in ("ours", "ours/lm.arpa"))
    np.testing.assert_array_equal(binary.score(sentences)[0], plain.score(sentences)[0])


@needs_kenlm
def test_older_models_have_a_compressed_arpa_file(text, tmp_path):
    """What lmplz left beside lm.bin is read still."""
    made = build([text], 3, tmp_path / "ours", Normaliser(), min_counts=(1, 1, 2))
    arpa = tmp_path / "ours/lm.arpa"
    (tmp_path / "ours/lm.arpa.gz").write_bytes(gzip.compress(arpa.read_bytes()))
    arpa.unlink()
    assert derived.prune(tmp_path / "ours", tmp_path / "same", 0.0, "none")[1] == made.counts
    assert derived.quantize(tmp_path / "ours", tmp_path / "q").counts == made.counts
    assert not list((tmp_path / "q").glob("*arpa*"))
    (tmp_path / "ours/lm.arpa.gz").unlink()
    with pytest.raises(UserError, match="lists no n-grams; estimate the model again"):
        derived.prune(tmp_path / "ours", tmp_path / "no", 0.0, "none")


@needs_kenlm
@pytest.mark.parametrize("order", [1, 2])
def test_build_binary_takes_the_smallest_models(tmp_path, order):
    (tmp_path / "text").write_text("a\n")
    assert build([tmp_path / "text"], order, tmp_path / "lm", Normaliser()).file == "lm.bin"
    plain, binary = (
        NgramModel.load(tmp_path / name).score(["a b", ""]) for name in ("lm/lm.arpa", "lm")
    )
    np.testing.assert_array_equal(plain, binary)


def test_the_installer_names_what_is_missing(tmp_path):
    """With a compiler that finds no header."""
    done = subprocess.run(
        [ROOT / SCRIPT, tmp_path],
        env={**os.environ, "CXX": "false"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "boost/program_options.hpp" in done.stderr or "missing: cmake" in done.stderr
    assert "apt-get install g++ cmake make libboost-program-options-dev" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@needs_kenlm
def test_the_installer_does_nothing_twice():
    done = subprocess.run(
        [ROOT / SCRIPT, LMPLZ.parents[1]], capture_output=True, text=True, check=True
    )
    assert "has lmplz and build_binary" in done.stdout
