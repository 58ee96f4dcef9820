"""Mixtures of n-grams against IRSTLM's interpolate-lm (Debian's package irstlm)."""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from scoring import ask

from lmtools.ngram import arpa, build, derived
from lmtools.score.ppl import perplexity
from lmtools.text import Normaliser

PROGRAM = shutil.which("interpolate-lm", path="/usr/lib/irstlm/bin")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="no interpolate-lm; apt-get install irstlm")
WORDS = [f"w{i}" for i in range(7)]


def draw_lines(power: float) -> list[str]:
    """Sentences whose words are the more alike the higher the power is, all words in the first."""
    draw = random.Random(3)
    lines = [
        [WORDS[int(7 * draw.random() ** power)] for _ in range(draw.randrange(1, 8))]
        for _ in range(200)
    ]
    return [" ".join(line) for line in [WORDS, *lines]]


def write_by_context(source: Path, out: Path) -> None:
    """The ARPA file in the order of contexts; IRSTLM aborts on any other (util.cpp:335)."""
    orders, place = arpa.read(source), {(): 0}
    lines = ["", "\\data\\", *(f"ngram {n}={len(one)}" for n, one in enumerate(orders, 1))]
    for n, one in enumerate(orders, 1):
        words = sorted(one, key=lambda each: place[each[:-1]])
        place = {each: i for i, each in enumerate(words)}
        lines += ["", f"\\{n}-grams:"]
        for each in words:
            prob, backoff = one[each]
            lines.append(f"{prob}\t{' '.join(each)}" + (f"\t{backoff}" if n < len(orders) else ""))
    out.write_text("\n".join([*lines, "", "\\end\\", ""]))


def test_weights_and_perplexity_are_those_of_interpolate_lm(tmp_path):
    for name, power in (("a", 2), ("b", 3), ("held", 2.5)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in draw_lines(power)))
    for name in "ab":
        build([tmp_path / name], 3, tmp_path / f"lm-{name}", Normaliser(), kenlm="none")
        write_by_context(tmp_path / f"lm-{name}/lm.arpa", tmp_path / f"{name}.lm")
    lms = [tmp_path / "lm-a", tmp_path / "lm-b"]
    _, weights = derived.mix(lms, tmp_path / "mixed", None, [tmp_path / "held"], "none")
    assert 0.05 < weights[0] < 0.95
    marked = "".join(f"<s> {line} </s>\n" for line in draw_lines(2.5))
    (tmp_path / "marked").write_text(marked)
    rows = [f"{w:.8f} {tmp_path}/{name}.lm\n" for w, name in zip(weights, "ab", strict=True)]
    (tmp_path / "list").write_text("LMINTERPOLATION 2\n" + "".join(rows))
    # one step of its expectation maximisation leaves our weights where they are
    learn = [PROGRAM, "list", "list.out", "--learn=marked"]
    subprocess.run(learn, cwd=tmp_path, check=True, capture_output=True)
    learned = [
        float(line.split()[0]) for line in (tmp_path / "list.out").read_text().splitlines()[1:]
    ]
    assert learned == pytest.approx(weights.tolist(), abs=2e-6)
    done = subprocess.run(
        [PROGRAM, "list", "--eval=marked", "--dub=0"], cwd=tmp_path, capture_output=True, text=True
    )
    theirs = float(re.search(r"Nw=\d+ PP=([\d.]+)", done.stdout).group(1))
    spec = ",".join(f"{lm}={weight}" for lm, weight in zip(lms, weights, strict=True))
    for lm in (f"mix:{spec}", str(tmp_path / "mixed")):
        ours = perplexity(draw_lines(2.5), *ask(lm, device="cpu", cache="none"))
        assert ours["word_ppl"] == pytest.approx(theirs, abs=0.006)
